"""What is taken for a secret, what is not, and what a home does with it."""

from __future__ import annotations

import json
import logging
import random
import string
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepstone
from keepstone import Home, MemoryAdapter, MemoryService, SecretError, Session
from keepstone.secrets.detection import kinds_in, masked
from keepstone.secrets.kinds import KINDS
from keepstone.secrets.policy import mask

_LETTERS = string.ascii_letters + string.digits


def letters(count: int, alphabet: str = _LETTERS) -> str:
    """Letters and digits without meaning, made here so that no scanner takes this file for a leak."""
    chance = random.Random(count)
    return "".join(chance.choice(alphabet) for _ in range(count))


def hexa(count: int) -> str:
    return letters(count, "0123456789abcdef")


def capitals(count: int) -> str:
    return letters(count, string.ascii_uppercase + string.digits)


TOKEN = "ghp_" + letters(36)
KEY = f"-----BEGIN RSA PRIVATE {'KEY'}-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE {'KEY'}-----"
SECRETS = [
    ("AWS access key", "AKIA" + "ABCD2345EFGH67IJ"),
    ("GitHub token", TOKEN),
    ("GitHub token", "gho_" + letters(36)),
    ("GitHub token", "github_pat_" + letters(22) + "_" + letters(59)),
    ("GitLab token", "glpat-" + letters(20)),
    ("Anthropic key", "sk-ant-api03-" + letters(93) + "AA"),
    ("OpenRouter key", "sk-or-v1-" + "0123456789abcdef" * 4),
    ("OpenAI key", "sk-proj-" + letters(60) + "_" + letters(60)),
    ("OpenAI key", "sk-" + letters(48)),
    ("Slack token", "xoxb-123456789012-1234567890123-" + letters(24)),
    ("Slack token", "xapp-1-A012345-" + letters(24)),
    ("Stripe key", "sk_live_" + letters(24)),
    ("Stripe key", "rk_test_" + letters(24)),
    ("Stripe key", "whsec_" + letters(32)),
    ("Google API key", "AIza" + letters(35)),
    ("Google client secret", "GOCSPX-" + letters(28)),
    ("JWT", f"eyJ{letters(20)}.eyJ{letters(40)}.{letters(43)}"),
    ("private key", KEY),
    ("private key", KEY.replace("\n", "\\n")),
    ("private key", KEY.replace("RSA", "OPENSSH")),
    ("npm token", "npm_" + letters(36)),
    ("PyPI token", "pypi-AgEIcHlwaS5vcmc" + letters(80)),
    ("Hugging Face token", "hf_" + letters(34)),
    ("SendGrid key", f"SG.{letters(22)}.{letters(43)}"),
    ("keepstone token", "kst_" + letters(40) + "-_a"),
    ("AWS Bedrock key", "ABSK" + letters(120)),
    ("Google token", "ya29." + letters(120)),
    ("Google token", "1//0" + letters(60)),
    ("GitLab token", "glrt-" + letters(20)),
    ("GitLab token", "gldt-" + letters(20)),
    ("GitLab token", "glptt-" + hexa(40)),
    ("JWT", f"eyJhbGciOiJSU0EtT0FFUCJ9.{letters(80)}.{letters(16)}.{letters(60)}.{letters(22)}"),
    ("private key", "AGE-SECRET-KEY-1" + capitals(58)),
    ("Azure client secret", letters(3) + "8Q~" + letters(34)),
    ("crates.io token", "cio" + letters(32)),
    ("RubyGems key", "rubygems_" + hexa(48)),
    ("Twilio key", "SK" + hexa(32)),
    ("Mailgun key", "key-" + hexa(32)),
    ("Brevo key", f"xkeysib-{hexa(64)}-{letters(16)}"),
    ("Telegram token", "123456789:AA" + letters(33)),
    ("Discord token", f"MT{letters(24)}.G{letters(5)}.{letters(38)}"),
    ("DigitalOcean token", "dop_v1_" + hexa(64)),
    ("Shopify token", "shpat_" + hexa(32)),
    ("Square token", "sq0atp-" + letters(22)),
    ("Vault token", "hvs." + letters(90)),
    ("Databricks token", "dapi" + hexa(32)),
    ("Groq key", "gsk_" + letters(52)),
    ("xAI key", "xai-" + letters(80)),
    ("Replicate token", "r8_" + letters(37)),
    ("Perplexity key", "pplx-" + letters(48)),
    ("Grafana token", f"glsa_{letters(32)}_{hexa(8)}"),
    ("Grafana token", "glc_" + letters(90)),
    ("Linear key", "lin_api_" + letters(40)),
    ("Notion token", "ntn_" + letters(46)),
    ("Figma token", "figd_" + letters(40)),
    ("Atlassian token", "ATATT3xFf" + letters(180)),
    ("Docker token", "dckr_pat_" + letters(27)),
    ("Doppler token", "dp.pt." + letters(43)),
    ("Supabase token", "sbp_" + hexa(40)),
    ("New Relic key", "NRAK-" + capitals(27)),
    ("PlanetScale token", "pscale_tkn_" + letters(43)),
    ("Terraform token", f"{letters(14)}.atlasv1.{letters(67)}"),
    ("Fly.io token", "fo1_" + letters(43)),
    ("Fly.io token", "fm2_" + letters(200)),
    ("Heroku key", "HRKU-AA" + letters(58)),
    ("Pulumi token", "pul-" + hexa(40)),
    ("1Password token", "ops_eyJ" + letters(260)),
    ("Tailscale key", f"tskey-auth-{letters(17)}-{letters(32)}"),
    ("Sentry token", "sntryu_" + hexa(64)),
    ("Postman key", f"PMAK-{hexa(24)}-{hexa(34)}"),
]
HARMLESS = [
    "see the line -----BEGIN PRIVATE KEY----- in the file",
    "take the password from the vault, the secret: 'we meet at noon'",
    "sk-proj-your-api-key-goes-here-please and xoxb-your-token-goes-here",
    'password="${DB_PASSWORD}" or "********"',
    'api_key = os.environ["OPENAI_API_KEY"]',
    "commit 9f2c1a0b7d3e4f5a6b7c8d9e0f1a2b3c4d5e6f70",
    "0190f5e0-7b3c-7000-8000-000000000001",
    "task-force-" + "a" * 40,
    "AKIA is how such ids begin, eyJ a token, ghp_ another",
    "data:image/png;base64," + letters(400),
    "pk_live_" + letters(24),
    "AKIAIOSFODNN7EXAMPLE",
    'the secret: "keepingitsimple1"',
    'secret_key="example-value-1" password = "changeme123"',
    'access_token="$TOKEN1234" "api_key": "process.env.KEY1"',
    '"pwd": "/home/user1/proj" secret: projects/7/secrets/db1',
    'compass_secret="see_ticket_123" api_key = settings.API_KEY_2',
    "password = derive_key2(salt) secret: https://vault.example.com/v1",
    "DB_PASSWORD=${DB_PASSWORD_2} DB_PASSWORD=<password-of-8> api_key=YOUR_API_KEY_1",
    "postgres://postgres:postgres@localhost, https://user:password@example.com, http://localhost:8080/@ana",
    "Authorization: Bearer $TOKEN, then Authorization: Bearer YOUR_TOKEN_1, and the bearer of a token",
    "access_key: sha256:9f86d081884c7d65 and secret=sha512-9f86d081884c7d65",
    "token: next_page_cursor_2 token: claude-3-5-sonnet-20241022 max_tokens=123456 token: word12345678",
    "mysql -u ada -p --port 3306 db_2026_01 and mysql --protocol=tcp1234567",
    "a_pass: see_ticket_123, by-pass: none, compass=12345678a",
    "docker run --user 1000:1000 img1, the curl of a -u flag",
    "max_tokens=20000000a, monkey: banana123, primary_key: id_column1",
]


@pytest.mark.parametrize(("kind", "secret"), SECRETS)
def test_a_secret_is_found_and_only_its_kind_stays(kind: str, secret: str) -> None:
    assert kinds_in(f"use {secret}, then tell Ana") == [kind]
    assert masked(f"use {secret}, then tell Ana") == f"use [secret: {kind}], then tell Ana"


@pytest.mark.parametrize("text", HARMLESS)
def test_text_that_only_resembles_a_secret_stays(text: str) -> None:
    assert (kinds_in(text), masked(text)) == ([], text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('password = "hunter2hunter"', 'password = "[secret: password]"'),
        ('{"api_key": "abc12345xyz"}', '{"api_key": "[secret: password]"}'),
        ("DB_PWD='p4ssw0rd!'", "DB_PWD='[secret: password]'"),
        (f"aws_secret_access_key = {'a1/B' * 10}", "aws_secret_access_key = [secret: AWS secret key]"),
        ("DB_PASSWORD=hunter2hunter2", "DB_PASSWORD=[secret: password]"),
        ("DB_PASS=hunter2pass9", "DB_PASS=[secret: password]"),
        ("token: 1234567890abcdef1234", "token: [secret: password]"),
        ('"token": "1234567890abcdef1234"', '"token": "[secret: password]"'),
        ("GRAFANA_TOKEN=a1b2c3d4e5f6a7b8c9", "GRAFANA_TOKEN=[secret: password]"),
        ("mysql -uada -pwalnut99x shop", "mysql -uada -p[secret: password] shop"),
        ("mysqldump --host db -u ada -pwalnut99x", "mysqldump --host db -u ada -p[secret: password]"),
        ("PGPASSWORD=hunter22pw psql", "PGPASSWORD=[secret: password] psql"),
        ("password: hunter2hunter2\nuser: bob", "password: [secret: password]\nuser: bob"),
        ("the API key: abc12345xyz, then", "the API key: [secret: password], then"),
        ("Server=h;Password=Passw0rd1;", "Server=h;Password=[secret: password];"),
        (
            "jdbc:mysql://h/d?user=x&password=Passw0rd1&a=b",
            "jdbc:mysql://h/d?user=x&password=[secret: password]&a=b",
        ),
        (f"AWS_SESSION_TOKEN={'a1/B' * 90}", "AWS_SESSION_TOKEN=[secret: password]"),
        ("postgres://app:S3cr3tPw@db.example.com/x", "postgres://app:[secret: password]@db.example.com/x"),
        ("redis://:letmein@r:6379", "redis://:[secret: password]@r:6379"),
        ("curl -u bob:hunter22pw https://x", "curl -u bob:[secret: password] https://x"),
        ("machine h login b password hunter22pw", "machine h login b password [secret: password]"),
        (f"Authorization: Bearer {letters(40)}", "Authorization: Bearer [secret: Authorization header]"),
        (
            '"Authorization": "Basic Ym9iOmh1bnRlcjI="',
            '"Authorization": "Basic [secret: Authorization header]"',
        ),
        (f"SharedAccessKey={letters(43)}=", "SharedAccessKey=[secret: Azure access key]"),
        (f"?sv=2022&sig={letters(43)}%3D", "?sv=2022&sig=[secret: Azure signature]"),
        (f"Private-Lines: 1\n{letters(64)}", "Private-Lines: 1[secret: private key]"),
        (
            f"https://discord.com/api/webhooks/{'1' * 18}/{letters(68)}",
            f"https://discord.com/api/webhooks/{'1' * 18}/[secret: Discord webhook]",
        ),
        (
            f"https://hooks.slack.com/services/{'T0B1' * 8}",
            "https://hooks.slack.com/services/[secret: Slack webhook]",
        ),
    ],
)
def test_of_a_named_secret_only_the_value_is_masked(before: str, after: str) -> None:
    assert masked(before) == after


def test_a_payload_key_that_names_a_password_tells_of_its_value() -> None:
    record = {"id": "1", "data": {"login": {"password": "hunter2hunter", "user": "ada1815xx"}}}
    assert mask(record)["data"]["login"] == {"password": "[secret: password]", "user": "ada1815xx"}


@pytest.mark.parametrize("value", ["/home/ada/key1.pem", "see_ticket_123", "${KEY_1}", "two words 1"])
def test_a_payload_key_that_names_a_secret_may_hold_a_placeholder(value: str) -> None:
    record = {"id": "1", "data": {"api_key": value}}
    assert mask(record) is record


def test_the_token_that_the_server_makes_is_found(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "keepstone", "token", "create", "--home", str(tmp_path), "--json"]
    made = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    assert kinds_in(json.loads(made)["token"]) == ["keepstone token"]


PATTERNS = {
    kind.pattern.pattern: "".join(f"{mark}{filler}" for filler in ("a", "1", "-", " ", ".a_", "=")) + mark
    for kind in KINDS
    for mark in kind.marks
}


@pytest.mark.parametrize("piece", PATTERNS.values())
def test_no_pattern_takes_longer_than_its_text_is_long(piece: str) -> None:
    def effort(size: int) -> float:
        begin = time.process_time()
        kinds_in((piece * size)[:size])
        return time.process_time() - begin

    assert effort(200_000) < 40 * (min(effort(20_000) for _ in range(3)) + 0.001)


def test_credentials_in_a_header_of_a_payload_are_masked() -> None:
    record = {"id": "1", "data": {"headers": {"Authorization": "Basic Ym9iOmh1bnRlcjI=", "Accept": "a/b1"}}}
    assert mask(record)["data"]["headers"] == {"Authorization": "[secret: password]", "Accept": "a/b1"}


def test_a_line_without_a_secret_is_not_even_copied() -> None:
    record = {"id": "1", "data": {"content": "Use OAuth"}}
    assert mask(record) is record


def test_two_keys_that_are_secrets_do_not_become_one() -> None:
    record = {"id": "1", "data": {TOKEN: 1, "gho_" + letters(36): 2}}
    assert sorted(mask(record)["data"].values()) == [1, 2]


@given(st.text(), st.sampled_from(SECRETS), st.text())
def test_masking_twice_changes_no_more_than_once(before: str, secret: tuple[str, str], after: str) -> None:
    text = masked(f"{before} {secret[1]} {after}")
    assert secret[1] not in text
    assert masked(text) == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_what_holds_no_secret_is_left_alone(value: Any) -> None:
    assert mask({"id": "1", "data": {"value": value}}) == {"id": "1", "data": {"value": value}}


# In a home


Opening = Callable[..., Session]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Opening]:
    """Opens a session, of an id if need be, in a home with these options."""
    with ExitStack() as homes:

        def opened(name: str = "s", **options: Any) -> Session:
            home = homes.enter_context(keepstone.open(tmp_path, embedder="none", **options))
            return home.agent("a").session(name)

        yield opened


def bytes_of(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.rglob("*") if file.is_file())


PLACES: list[dict[str, Any]] = [
    {"text": TOKEN},
    {"summary": TOKEN},
    {"tags": ["ok", TOKEN]},
    {"data": {"content": TOKEN}},
    {"data": {"headers": [{"Authorization": f"Bearer {TOKEN}"}]}},
    {"data": {TOKEN: "as a key"}},
    {"links": [{"to": TOKEN, "rel": "x"}]},
]


@pytest.mark.parametrize("keys", PLACES)
def test_masked_secrets_reach_no_byte_of_the_home(
    tmp_path: Path, session: Opening, keys: dict[str, Any]
) -> None:
    target = session(secrets="mask")
    entry = target.add("note", id="it", **{"text": "note"} | keys)
    target.add_many([{"type": "note", "text": "note", **keys}])
    target.put({"id": "it", "type": "note", "text": "other", **keys})
    target.update("it", **keys)
    assert "[secret: GitHub token]" in str(entry.line)
    assert TOKEN.encode() not in bytes_of(tmp_path)


@pytest.mark.parametrize("keys", PLACES)
def test_refused_secrets_are_named_and_never_shown(
    tmp_path: Path, session: Opening, keys: dict[str, Any]
) -> None:
    with pytest.raises(SecretError, match="GitHub token") as raised:
        session(secrets="refuse").add("note", **{"text": "note"} | keys)
    assert TOKEN not in str(raised.value)
    assert bytes_of(tmp_path) == b""


def test_a_refusal_says_which_keys_lead_to_the_secret(session: Opening) -> None:
    with pytest.raises(SecretError, match=r"^data\.steps\[1\]\.token contains what looks like a secret"):
        session(secrets="refuse").add("note", {"steps": ["a", {"token": TOKEN}]})


def test_one_secret_keeps_all_of_a_batch_out(session: Opening) -> None:
    target = session(secrets="refuse")
    with pytest.raises(SecretError):
        target.add_many([{"type": "note", "text": "fine"}, {"type": "note", "text": TOKEN}])
    assert target.entries() == []


def test_a_change_that_is_refused_leaves_the_entry(session: Opening) -> None:
    target = session(secrets="refuse")
    target.add("note", text="fine", id="it")
    with pytest.raises(SecretError):
        target.update("it", text=TOKEN)
    with pytest.raises(SecretError):
        target.put({"id": "it", "text": TOKEN})
    assert [entry.text for entry in target.entries()] == ["fine"]


@pytest.mark.parametrize("policy", ["mask", "refuse"])
def test_an_id_that_is_a_secret_is_refused_either_way(session: Opening, policy: str) -> None:
    with pytest.raises(SecretError, match="choose another id|remove it") as raised:
        session(secrets=policy).add("note", text="x", id=TOKEN)
    with pytest.raises(SecretError, match="the session's id") as other:
        session(TOKEN, secrets=policy).add("note", text="x")
    assert TOKEN not in f"{raised.value} {other.value}"


def test_by_default_what_is_remembered_is_kept_as_it_is(session: Opening) -> None:
    assert session().add("note", text=TOKEN).text == TOKEN


def test_another_word_than_the_three_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'keep', 'mask' or 'refuse', not 'hide'"):
        keepstone.open(tmp_path, secrets="hide")  # type: ignore[arg-type]


def test_memory_services_on_such_a_home_mask_what_they_keep(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, secrets="mask", embedder="none") as home:
        MemoryService(home).create_memory("s", TOKEN, [1.0, 0.0], TOKEN)
        assert [memory.text for memory in MemoryService(home).get_memories_by_session("s")] == [
            "[secret: GitHub token]"
        ]
    assert TOKEN.encode() not in bytes_of(tmp_path)


def test_who_keeps_secrets_does_not_load_the_table_of_them() -> None:
    program = (
        "import sys, tempfile, keepstone\n"
        "home = keepstone.open(tempfile.mkdtemp(), embedder='none')\n"
        "home.agent('a').session('s').add('note', text='x')\n"
        "assert 'keepstone.secrets.policy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


# The program's own log


def failures(home: Home) -> None:
    """What goes wrong for a caller, with the marked text wherever one can hand text in."""
    target = home.agent("a").session("s")
    for wrong in (
        lambda: target.add("note", {"walnut": object()}),
        lambda: target.add("note", text="walnut \ud800"),
        lambda: target.add("note", text="walnut other", id="it"),
        lambda: target.update("missing", text="walnut"),
        lambda: home.agent("a").files.read("walnut.md"),
    ):
        with pytest.raises((keepstone.KeepstoneError, ValueError, TypeError)):
            wrong()


def test_the_programs_log_never_holds_what_is_remembered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("a")
        agent.session("s").add("note", {"content": "walnut"}, id="it", summary="walnut", tags=["walnut"])
        agent.files.write("x.md", "walnut")
        failures(home)
        (tmp_path / ".index/a").rename(tmp_path / ".index/gone")
        agent.recall("walnut")
        agent.context("walnut")
        with (tmp_path / "agents/a/memory/sessions/s.ndjson").open("a") as log:
            log.write("walnut is no line\n")
        home.doctor(deep=True, fix=True)
        agent.purge("it")
        home.purge_agent("a")
    MemoryAdapter(tmp_path).clear("s")
    assert "walnut" not in caplog.text


class Quoting:
    """An embedder whose errors quote what it was given, as servers do."""

    id, dim = "quoting", 2

    def embed_documents(self, texts: list[str]) -> Any:
        raise RuntimeError(f"cannot embed {texts}")

    def embed_query(self, text: str) -> Any:
        raise RuntimeError(f"cannot embed {text}")


def test_an_embedder_that_quotes_texts_does_not_bring_them_into_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with keepstone.open(tmp_path, embedder=Quoting()) as home:
        home.agent("a").session("s").add("note", text="walnut")
        home.agent("a").recall("walnut")
    assert caplog.records
    assert "walnut" not in caplog.text
