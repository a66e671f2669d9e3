"""Finding keys and tokens in text by the shapes that their issuers give them.

Only shapes that hardly anything else has are in the table: what is masked by mistake
is lost, and a warning that is often wrong is soon not read any more. Nothing here looks
at how random a string is (docs/decisions/0011).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from keepstone.errors import SecretError
from keepstone.model import Record


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of secret."""

    name: str
    marks: tuple[str, ...]
    """Every such secret has one of these in it. Looking for them first is what makes most texts cheap."""
    pattern: re.Pattern[str]
    """Matches it; if there is a group, that alone is the secret."""


@dataclass(frozen=True, slots=True)
class Secret:
    """What looks like a secret, and where it is; never its value."""

    kind: str
    where: str
    """The keys that lead to it, such as ``data.headers[0]``."""


def _kind(name: str, marks: str | tuple[str, ...], pattern: str) -> Kind:
    found = tuple(marks.split()) if isinstance(marks, str) else marks
    return Kind(name, found, re.compile(pattern, re.ASCII))


# Names that a password or key goes by, at the end of a variable or of a payload's key, and values that are
# more than a word or a placeholder: no space, a letter and a digit, at least eight characters.
_NAME = r"(?i:passw(?:or)?d|passphrase|pwd|secret|(?:api|secret|access)[_-]?key|(?:auth|access)[_-]?token)"
_VALUE = (
    r"(?=[^\s\"'`]{0,200}[0-9])(?=[^\s\"'`]{0,200}[A-Za-z])"
    r"(?![^\s\"'`]{0,200}(?:[$]\{|\{\{|<|\[|\.\.\.|[*]{3}|xxx|XXX))[^\s\"'`\\]{8,200}"
)
_ENDS_WITH_NAME = re.compile(_NAME + r"\Z", re.ASCII)
_WHOLE_VALUE = re.compile(_VALUE, re.ASCII)
_NAMED = "password"

# No pattern may look at a character more than a few times, for texts have up to 16 MB: none begins in the
# middle of what it may match, and what repeats is bounded. \b would begin behind "-", which tokens hold.
_IS_RANDOM = r"(?=[\w-]{0,100}?(?:[0-9]|[A-Za-z]{16}))"
_LABEL = r"(?:[A-Z0-9]{2,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----"
_KINDS: Sequence[Kind] = (
    # docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html: AKIA lasts, ASIA is temporary.
    _kind("AWS access key", "AKIA ASIA", r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    # The secret half is 40 characters of base64 without a mark: only the name before it tells.
    _kind(
        "AWS secret key",
        "ecret_access_key ecretAccessKey ECRET_ACCESS_KEY",
        r"(?:ecret_access_key|ecretAccessKey|ECRET_ACCESS_KEY)[\\\"']{0,2}\s{0,4}[=:]\s{0,4}[\\\"']{0,2}"
        r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    # docs.github.com, "About authentication to GitHub".
    _kind("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{36,255}"),
    _kind("GitHub token", "github_pat_", r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{36,255}"),
    # docs.gitlab.com/security/tokens, "Token prefixes".
    _kind("GitLab token", "glpat-", r"(?<![\w-])glpat-[\w-]{20,300}"),
    # As the consoles of Anthropic, OpenAI and OpenRouter make them.
    _kind("Anthropic key", "sk-ant-", rf"(?<![\w-])sk-ant-{_IS_RANDOM}[\w-]{{20,300}}"),
    _kind("OpenRouter key", "sk-or-v1-", r"(?<![\w-])sk-or-v1-[0-9a-f]{64}"),
    _kind("OpenAI key", "sk-", rf"(?<![\w-])sk-(?:proj|svcacct|admin)-{_IS_RANDOM}[\w-]{{20,300}}"),
    _kind("OpenAI key", "sk-", r"(?<![\w-])sk-[A-Za-z0-9]{32,64}(?![\w-])"),
    # docs.slack.dev/authentication/tokens; the address of a webhook is all that is needed to post to it.
    _kind("Slack token", "xox", rf"(?<![\w-])xox[abceoprs]-{_IS_RANDOM}[A-Za-z0-9-]{{10,300}}"),
    _kind("Slack token", "xapp-", r"(?<![\w-])xapp-[0-9]-[A-Za-z0-9-]{10,300}"),
    _kind("Slack webhook", "hooks.slack.com/", r"hooks\.slack\.com/services/([A-Za-z0-9+/]{30,200})"),
    # docs.stripe.com/keys and docs.stripe.com/webhooks; keys that begin with pk_ are public.
    _kind("Stripe key", "k_live_ k_test_", r"(?<![A-Za-z0-9])[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
    _kind("Stripe key", "whsec_", r"(?<![A-Za-z0-9])whsec_[A-Za-z0-9+/=]{24,100}"),
    # cloud.google.com/docs/authentication/api-keys; GOCSPX- begins the secret of an OAuth client.
    _kind("Google API key", "AIza", r"(?<![\w-])AIza[\w-]{35}"),
    _kind("Google client secret", "GOCSPX-", r"(?<![\w-])GOCSPX-[\w-]{24,40}"),
    # RFC 7519: header, claims and signature in base64url, where eyJ is how an object begins.
    _kind("JWT", "eyJ", r"(?<![\w.-])eyJ[\w-]{8,20000}\.eyJ[\w-]{8,20000}\.[\w-]{16,20000}"),
    # RFC 7468, OpenSSH's and OpenPGP's, also with \n written out. To mention the first line is no secret;
    # a key may be cut off before its last line.
    _kind(
        "private key",
        ("PRIVATE KEY",),
        rf"-----BEGIN {_LABEL}(?:[^-]|-(?!----)){{4,60000}}+-----END {_LABEL}"
        rf"|-----BEGIN {_LABEL}(?:\s|\\[rn]){{1,8}}[A-Za-z0-9+/=\s\\]{{40,60000}}",
    ),
    # docs.npmjs.com, "About access tokens". PyPI's, pypi.org/help#apitoken, are macaroons: AgE begins these.
    _kind("npm token", "npm_", r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _kind("PyPI token", "pypi-AgE", r"(?<![\w-])pypi-AgE[\w-]{32,2000}"),
    # huggingface.co/docs/hub/security-tokens; SendGrid's "API Keys"; Azure's "connection strings".
    _kind("Hugging Face token", "hf_", r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{34,40}(?![A-Za-z0-9_])"),
    _kind("SendGrid key", "SG.", r"(?<![\w.-])SG\.[\w-]{22}\.[\w-]{43}"),
    _kind("Azure storage key", "AccountKey=", r"AccountKey=([A-Za-z0-9+/]{86}==)"),
    # Any other key or password that a program or a setting names as one, in quotation marks.
    _kind(
        _NAMED,
        "assw ASSW assphrase ASSPHRASE pwd Pwd PWD ecret ECRET _key -key ikey skey Key KEY "
        "_token -token stoken htoken Token TOKEN",
        rf"{_NAME}[\\\"'\]]{{0,3}}\s{{0,4}}(?:=>|:=|=|:)\s{{0,4}}\\?[\"']({_VALUE})\\?[\"']",
    ),
)
_OTHER_ID = "choose another id, for an id cannot be masked"
_MARKS = tuple(dict.fromkeys(mark for kind in _KINDS for mark in kind.marks))
_SHORTEST = 12
"""No secret of the table, with the name that tells it, has fewer characters."""
_UNTOUCHED = frozenset({"ts", "embedding", "batch"})
"""Keys of a log line that hold no text of the caller's."""


def kinds_in(text: str) -> list[str]:
    """Return the kinds of secrets that a text seems to hold, each once, in the order of the table.

    Example:
        >>> kinds_in("push with ghp_" + 9 * "a1B2")
        ['GitHub token']
    """
    found = (kind.name for kind in _candidates(text) if kind.pattern.search(text))
    return list(dict.fromkeys(found))


def _candidates(text: str) -> list[Kind]:
    """Return the kinds whose marks are in a text, in the order of the table."""
    if len(text) < _SHORTEST:
        return []
    there = {mark for mark in _MARKS if mark in text}
    return [kind for kind in _KINDS if not there.isdisjoint(kind.marks)] if there else []


def masked(text: str) -> str:
    """Return a text with words in the place of what looks like a secret.

    Example:
        >>> masked("push with ghp_" + 9 * "a1B2" + ", then rotate it")
        'push with [secret: GitHub token], then rotate it'
    """
    for kind in _candidates(text):
        text = kind.pattern.sub(lambda found, name=kind.name: _without(found, name), text)  # type: ignore[misc]
    return text


def _without(found: re.Match[str], name: str) -> str:
    whole, begin = found[0], found.start()
    first, last = found.span(found.re.groups)
    return whole[: first - begin] + _word(name) + whole[last - begin :]


def _word(name: str) -> str:
    return f"[secret: {name}]"


def secrets_in(record: Record) -> Iterator[Secret]:
    """Yield what looks like a secret in a log line: in any text, key or id of it, however deep."""
    for key, value in record.items():
        if key not in _UNTOUCHED:
            yield from _found({key: value}, "")


def _found(value: Any, where: str, key: str = "") -> Iterator[Secret]:
    if isinstance(value, str):
        kinds = kinds_in(value) or ([_NAMED] if _is_password(key, value) else [])
        yield from (Secret(kind, where) for kind in kinds)
    elif isinstance(value, dict):
        for name, item in value.items():
            path = f"{where}.{masked(name)}" if where else masked(name)
            yield from (Secret(kind, path) for kind in kinds_in(name))
            yield from _found(item, path, name)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _found(item, f"{where}[{place}]", key)


def _is_password(key: str, value: str) -> bool:
    return _ENDS_WITH_NAME.search(key) is not None and _WHOLE_VALUE.fullmatch(value) is not None


def mask(record: Record) -> Record:
    """Return a log line with words in the place of secrets, the line itself if it has none.

    Raises:
        SecretError: The entry's id looks like one. An id with something else in its place would be
            another entry's.
    """
    if next(secrets_in(record), None) is None:
        return record
    for kind in kinds_in(str(record.get("id", ""))):
        raise _refusal(Secret(kind, "id"), _OTHER_ID)
    kept = {key: value for key, value in record.items() if key in _UNTOUCHED}
    return dict(_masked(record) | kept)


def _masked(value: Any, key: str = "") -> Any:
    if isinstance(value, str):
        text = masked(value)
        return _word(_NAMED) if text == value and _is_password(key, value) else text
    if isinstance(value, dict):
        return _masked_object(value)
    return [_masked(item, key) for item in value] if isinstance(value, list) else value


def _masked_object(value: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, item in value.items():
        key = masked(name)
        while key != name and (key in result or key in value):
            key += "'"  # Two keys that were secrets must not become one.
        result[key] = _masked(item, name)
    return result


def refuse(record: Record) -> Record:
    """Return a log line that holds nothing that looks like a secret.

    Raises:
        SecretError: It does. The message says what and where, and never the value.
    """
    for secret in secrets_in(record):
        raise _refusal(secret, "leave it out, or open the home with secrets='mask'")
    return record


def _refusal(secret: Secret, remedy: str) -> SecretError:
    return SecretError(
        f"{secret.where} holds what looks like a secret ({secret.kind}), and this home refuses these; "
        f"nothing was written: {remedy}"
    )


def guard_of(policy: Literal["mask", "refuse"]) -> Callable[[str, Sequence[Record]], list[Record]]:
    """Return what masks or refuses secrets in the lines that are about to be written to a session.

    Either way an id that looks like one is refused: it cannot be masked.
    """
    act = mask if policy == "mask" else refuse

    def guard(session: str, records: Sequence[Record]) -> list[Record]:
        for kind in kinds_in(session):
            raise _refusal(Secret(kind, "the session's id"), _OTHER_ID)
        return [act(record) for record in records]

    return guard
