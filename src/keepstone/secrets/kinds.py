"""The kinds of secrets: formats of keys and tokens, and names of passwords.

Only distinctive formats are included: text masked by mistake is lost, and frequent false alarms are ignored.
Randomness of strings is not measured (docs/decisions/0011).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

PASSWORD = "password"  # noqa: S105  The name of a kind.


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of secret."""

    name: str
    marks: tuple[str, ...]
    """Every such secret contains one of these strings. Searching for them first makes most texts cheap."""
    pattern: re.Pattern[str]
    """Matches the secret, or its group ``secret`` if there is one."""
    is_free: bool = False
    """Whether a person may have chosen the secret, so that ``is_real`` must exclude placeholders."""


# A value that a person may have chosen is a secret if it has a letter and a digit and matches none of these.
_PLACEHOLDER = re.compile(
    r"\A[$%@]|\$\{|\{\{|[<\[]|\.\.\.|[*]{3}|xxx|example|placeholder|redacted|change[-_]?(?:me|it)|your[-_]|://"
    r"|\Asha(?:1|256|384|512)[:-]"
    r"|\A(?:dummy|fake|sample|passw(?:or)?d[0-9]{0,4}\Z|[0-9]{4}-[0-9]{2}-[0-9]{2}|[a-z]:[\\/])"
    r"|\A(?:(?:process|import\.meta)\.env|os\.environ|env|settings|config|self|this|secrets|vars|args|ctx)\.",
    re.ASCII | re.IGNORECASE,
)
_IS_PATH = re.compile(r"(?:\.{0,2}|~)/[\w.-]+(?:/[\w.-]*)*|[a-z0-9._-]+(?:/[a-z0-9._-]+){2,}", re.ASCII)
_IS_IDENTIFIER = re.compile(r"(?:[a-z]+|[A-Z]+)(?:[-_.](?:[a-z]+|[A-Z]+))*[-_.]?[0-9]{0,4}", re.ASCII)
_IS_PASSWORD = re.compile(r"passw|passp|pwd", re.IGNORECASE)
_IS_TOKEN = re.compile(r"(?=(?:[^0-9]*[0-9]){4})[A-Za-z0-9+/_]{16,}={0,2}", re.ASCII)
"""Pattern for the value of a bare ``token``: cursors, words and numbers have this name, too."""
_LETTER_AND_DIGIT = re.compile(r"(?=.*[0-9]).*[A-Za-z]", re.DOTALL)
_USUAL = frozenset("password passwd pass pwd secret token user username changeme test".split())
"""Placeholders for passwords in URLs, where a password without a digit is a secret, too."""


def is_real(value: str, name: str) -> bool:
    """Return whether a value with this name is a secret, not a placeholder, path or variable."""
    if name == "://":  # The password of a URL.
        return value.casefold() not in _USUAL and not _PLACEHOLDER.search(value)
    if not _LETTER_AND_DIGIT.match(value) or _PLACEHOLDER.search(value) or _IS_PATH.fullmatch(value):
        return False
    if name.casefold() == "token" and not _IS_TOKEN.fullmatch(value):
        return False
    return bool(_IS_PASSWORD.search(name)) or not _IS_IDENTIFIER.fullmatch(value)


NAME = (
    r"(?P<name>(?i:passw(?:or)?d|passphrase|pwd|secret|(?:api|secret|access|account|private)[_ -]?key"
    r"|(?:auth|access|session|refresh|bearer)[_ -]?token|(?<=[_-])pass|(?<![A-Za-z])token))"
)
"""Names of passwords and keys, at the end of a variable or of a payload's key."""
_NAME_MARKS = (
    *"assw ASSW assphrase ASSPHRASE pwd Pwd PWD ecret ECRET _key -key ikey skey tkey ekey Key KEY".split(),
    *"_token -token stoken htoken ntoken rtoken Token TOKEN".split(),
    *"_pass -pass _PASS -PASS token: token= token\" token'".split(),
    *("I key", "i key", "s key", "t key", "e key", " token"),
)


def _kind(name: str, marks: str | Sequence[str], pattern: str, *, is_free: bool = False) -> Kind:
    found = tuple(marks.split()) if isinstance(marks, str) else tuple(marks)
    return Kind(name, found, re.compile(pattern, re.ASCII), is_free)


def _token(name: str, prefixes: str, body: str, after: str = r"[A-Za-z0-9]") -> Kind:
    """Return a kind whose secrets start with one of several prefixes, not inside a longer word."""
    begin = "|".join(map(re.escape, prefixes.split()))
    return _kind(name, prefixes, rf"(?<![A-Za-z0-9-])(?:{begin}){body}(?!{after})")


# Patterns must be linear, as texts have up to 16 MB: none starts inside a possible match, and repetitions
# are bounded. \b would match after "-", which tokens contain.
_IS_RANDOM = r"(?=[\w-]{0,100}?(?:[0-9]|[A-Za-z]{16}))"
_LABEL = r"(?:[A-Z0-9]{2,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----"
_HEX = "[a-f0-9]"
_ALNUM = "[A-Za-z0-9]"
_BASE64 = "[A-Za-z0-9+/]"
KINDS: Sequence[Kind] = (
    # docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html; its sample keys end in EXAMPLE.
    _token("AWS access key", "AKIA ASIA ABIA ACCA", r"(?![A-Z0-9]{9}EXAMPLE)[A-Z0-9]{16}"),
    _token("AWS Bedrock key", "ABSK", rf"{_BASE64}{{100,300}}={{0,2}}"),
    # The secret half is 40 characters of base64 without a prefix, so the name before it is required.
    _kind(
        "AWS secret key",
        "ecret_access_key ecretAccessKey ECRET_ACCESS_KEY",
        r"(?:ecret_access_key|ecretAccessKey|ECRET_ACCESS_KEY)[\\\"']{0,2}\s{0,4}[=:]\s{0,4}[\\\"']{0,2}"
        r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    # The tokens that `keepstone token create` prints.
    _token("keepstone token", "kst_", r"[\w-]{43}", r"[\w-]"),
    # docs.github.com, "About authentication to GitHub"; docs.gitlab.com/security/tokens, "Token prefixes".
    _kind("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{36,255}"),
    _kind("GitHub token", "github_pat_", r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{36,255}"),
    _kind(
        "GitLab token",
        "glpat- glrt- gldt- glptt- glcbt- glsoat- glft- glimt- glagent- gloas- glffct-",
        rf"(?<![\w-])gl(?:pat|rt|dt|ptt|cbt|soat|ft|imt|agent|oas|ffct)-{_IS_RANDOM}[\w.-]{{20,300}}",
    ),
    # As issued by the consoles of these providers.
    _kind("Anthropic key", "sk-ant-", rf"(?<![\w-])sk-ant-{_IS_RANDOM}[\w-]{{20,300}}"),
    _kind("OpenRouter key", "sk-or-v1-", r"(?<![\w-])sk-or-v1-[0-9a-f]{64}"),
    _kind("OpenAI key", "sk-", rf"(?<![\w-])sk-(?:proj|svcacct|admin)-{_IS_RANDOM}[\w-]{{20,300}}"),
    _kind("OpenAI key", "sk-", r"(?<![\w-])sk-[A-Za-z0-9]{32,64}(?![\w-])"),
    _token("Groq key", "gsk_", rf"{_ALNUM}{{52}}"),
    _token("xAI key", "xai-", rf"{_ALNUM}{{80}}"),
    _token("Replicate token", "r8_", rf"{_ALNUM}{{37}}"),
    _token("Perplexity key", "pplx-", rf"{_ALNUM}{{48}}"),
    # docs.slack.dev/authentication/tokens; a webhook's URL suffices to post to it.
    _kind("Slack token", "xox", rf"(?<![\w-])xox[abceoprs]-{_IS_RANDOM}[A-Za-z0-9-]{{10,300}}"),
    _kind("Slack token", "xapp-", r"(?<![\w-])xapp-[0-9]-[A-Za-z0-9-]{10,300}"),
    _kind(
        "Slack webhook", "hooks.slack.com/", r"hooks\.slack\.com/services/(?P<secret>[A-Za-z0-9+/]{30,200})"
    ),
    _kind(
        "Discord webhook",
        "/api/webhooks/",
        r"discord(?:app)?\.com/api/webhooks/[0-9]{15,20}/(?P<secret>[\w-]{60,100})",
    ),
    # The first part is the bot's id in base64.
    _kind(
        "Discord token",
        "MA MD MT Mj Mz NA ND NT Nj Nz OA OD OT Oj Oz",
        r"(?<![\w.-])[MNO][ADTjz][\w-]{22,26}\.[\w-]{6}\.[\w-]{27,40}(?![\w-])",
    ),
    _kind("Telegram token", ":AA", r"(?<![\w:])[0-9]{8,10}:AA[\w-]{33}(?![\w-])"),
    _token("Twilio key", "SK", rf"{_HEX}{{32}}"),
    _token("Mailgun key", "key-", rf"{_HEX}{{32}}"),
    _token("Brevo key", "xkeysib-", rf"{_HEX}{{64}}-{_ALNUM}{{16}}"),
    # docs.stripe.com/keys and docs.stripe.com/webhooks; keys with pk_ are public.
    _kind("Stripe key", "k_live_ k_test_", r"(?<![A-Za-z0-9])[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
    _kind("Stripe key", "whsec_", r"(?<![A-Za-z0-9])whsec_[A-Za-z0-9+/=]{24,100}"),
    _token("Shopify token", "shpat_ shpca_ shppa_ shpss_", r"[a-fA-F0-9]{32}"),
    _token("Square token", "sq0atp- sq0csp-", r"[\w-]{22,60}", r"[\w-]"),
    # cloud.google.com/docs/authentication; GOCSPX- is the prefix of an OAuth client's secret.
    _kind("Google API key", "AIza", r"(?<![\w-])AIza[\w-]{35}"),
    _kind("Google client secret", "GOCSPX-", r"(?<![\w-])GOCSPX-[\w-]{24,40}"),
    _kind("Google token", "ya29. 1//0", r"(?<![\w./-])(?:ya29\.|1//0)[\w-]{30,2000}"),
    # RFC 7519 and RFC 7516: parts in base64url, where eyJ is the start of a JSON object.
    _kind("JWT", "eyJ", r"(?<![\w.-])eyJ[\w-]{8,20000}\.eyJ[\w-]{8,20000}\.[\w-]{16,20000}"),
    _kind(
        "JWT",
        "eyJ",
        r"(?<![\w.-])eyJ[\w-]{8,20000}\.[\w-]{0,9999}\.[\w-]{8,99}\.[\w-]{2,20000}\.[\w-]{16,99}",
    ),
    # RFC 7468, OpenSSH and OpenPGP, also with escaped \n. The first line alone is not a secret; the last line
    # may be missing.
    _kind(
        "private key",
        ("PRIVATE KEY",),
        rf"-----BEGIN {_LABEL}(?:[^-]|-(?!----)){{4,60000}}+-----END {_LABEL}"
        rf"|-----BEGIN {_LABEL}(?:\s|\\[rn]){{1,8}}[A-Za-z0-9+/=\s\\]{{40,60000}}",
    ),
    _kind(
        "private key",
        ("Private-Lines: ",),
        r"Private-Lines: [0-9]{1,4}(?P<secret>[A-Za-z0-9+/=\s\\]{40,60000})",
    ),
    _token("private key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
    # docs.npmjs.com, "About access tokens". PyPI's (pypi.org/help#apitoken) are macaroons with this prefix.
    _kind("npm token", "npm_", r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _kind("PyPI token", "pypi-AgE", r"(?<![\w-])pypi-AgE[\w-]{32,2000}"),
    _token("RubyGems key", "rubygems_", rf"{_HEX}{{48}}"),
    _token("crates.io token", "cio", rf"(?={_ALNUM}{{0,31}}[0-9]){_ALNUM}{{32}}"),
    _token("Docker token", "dckr_pat_ dckr_oat_", r"[\w-]{27,40}", r"[\w-]"),
    # huggingface.co/docs/hub/security-tokens; SendGrid's "API Keys".
    _kind("Hugging Face token", "hf_", r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{34,40}(?![A-Za-z0-9_])"),
    _kind("SendGrid key", "SG.", r"(?<![\w.-])SG\.[\w-]{22}\.[\w-]{43}"),
    # Azure: connection strings, signed URLs, client secrets.
    _kind("Azure storage key", "AccountKey=", r"AccountKey=(?P<secret>[A-Za-z0-9+/]{86}==)"),
    _kind("Azure access key", "SharedAccessKey=", r"SharedAccessKey=(?P<secret>[A-Za-z0-9+/]{43}=)"),
    _kind("Azure signature", "sig=", r"[?&]sig=(?P<secret>[A-Za-z0-9%+/]{40,80}(?:%3D|=))"),
    _kind(
        "Azure client secret", "Q~", r"(?<![\w~.-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![\w~-])"
    ),
    _token("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", rf"{_HEX}{{64}}"),
    _token("Vault token", "hvs. hvb.", rf"{_IS_RANDOM}[\w-]{{24,300}}", r"[\w-]"),
    _kind("Terraform token", ".atlasv1.", r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}"),
    _token("Databricks token", "dapi", rf"{_HEX}{{32}}(?:-[0-9])?"),
    _token("Fly.io token", "fo1_", r"[\w-]{43}", r"[\w-]"),
    _token("Fly.io token", "fm1a_ fm1r_ fm2_", rf"{_BASE64}{{100,2000}}={{0,3}}"),
    _token("Heroku key", "HRKU-AA", r"[\w-]{58}", r"[\w-]"),
    _token("Supabase token", "sbp_", rf"{_HEX}{{40}}"),
    _token("PlanetScale token", "pscale_tkn_ pscale_oauth_ pscale_pw_", r"[\w.=-]{32,64}", r"[\w-]"),
    _token("Doppler token", "dp.pt. dp.st. dp.ct. dp.sa.", r"[\w.-]{40,80}", r"[\w-]"),
    _token("Pulumi token", "pul-", rf"{_HEX}{{40}}"),
    _token("1Password token", "ops_eyJ", rf"{_BASE64}{{250,3000}}={{0,3}}"),
    _token("Tailscale key", "tskey-", rf"[a-z]{{3,12}}-{_ALNUM}{{8,24}}-{_ALNUM}{{16,64}}"),
    _token("Grafana token", "glsa_", rf"{_ALNUM}{{32}}_[A-Fa-f0-9]{{8}}"),
    _token("Grafana token", "glc_", rf"{_BASE64}{{32,400}}={{0,3}}"),
    _token("New Relic key", "NRAK-", r"[A-Z0-9]{27}"),
    _token("Sentry token", "sntryu_ sntrya_", rf"{_HEX}{{64}}"),
    _token("Linear key", "lin_api_ lin_oauth_", rf"{_ALNUM}{{40,64}}"),
    _token("Notion token", "ntn_", rf"{_ALNUM}{{46}}"),
    _token("Figma token", "figd_", r"[\w-]{40}", r"[\w-]"),
    _token("Atlassian token", "ATATT3 ATCTT3", r"[\w=-]{100,300}", r"[\w=-]"),
    _token("Postman key", "PMAK-", rf"{_HEX}{{24}}-{_HEX}{{34}}"),
    # RFC 9110, 11.6.2, and RFC 6750: credentials after their scheme.
    _kind(
        "Authorization header",
        "earer EARER asic",
        r"(?<![\w-])(?:(?i:bearer)\s{1,4}|(?i:authorization)[\\\"']{0,2}\s{0,4}[:=]\s{0,4}[\\\"']{0,2}(?i:basic)\s{1,4})"
        r"(?P<secret>[\w.~+/-]{12,20000}+={0,2})",
        is_free=True,
    ),
    # RFC 3986, 3.2.1: the password of a URL.
    _kind(
        PASSWORD,
        ("://",),
        r"(?<![\w+.-])[A-Za-z][\w+.-]{1,30}(?P<name>://)(?P<user>[^\s/:@\"'<>]{0,100}):(?!(?P=user)@)"
        r"(?P<secret>[^\s/@\"'<>]{1,200})@(?=[\w\[%])",
        is_free=True,
    ),
    _kind(
        PASSWORD,
        "curl",
        r"(?<!\S)(?:-u|--user)[ =]{1,2}[\\\"']{0,2}[^\s:\"']{1,64}:"
        r"(?P<secret>[^\s\"'\\]{4,200})",
        is_free=True,
    ),
    _kind(
        PASSWORD,
        "mysql",
        r"mysql(?:dump|admin)?[ \t](?:[^\s|;&]{1,60}[ \t]){0,8}?-p[\\\"']{0,2}(?P<secret>[^\s\"'\\]{8,200})",
        is_free=True,
    ),
    _kind(
        PASSWORD,
        "login",
        r"login\s{1,4}\S{1,64}\s{1,4}(?P<name>password)\s{1,4}(?P<secret>\S{8,200})",
        is_free=True,
    ),
    # Any other key or password by its name in code or settings, with or without quotation marks.
    _kind(
        PASSWORD,
        _NAME_MARKS,
        rf"(?<!\[){NAME}[\\\"'\]]{{0,3}}\s{{0,4}}(?:=>|:=|=|:)(?:\s{{0,4}}(?P<quote>\\?[\"'])|[ \t]{{0,4}})"
        r"(?P<secret>(?(quote)[^\s\"'`\\]{8,4000}+|[^\s\"'`\\,;&<>()\[\]{}|]{8,4000}+))"
        r"(?(quote)\\?[\"']|(?![(\[{]))",
        is_free=True,
    ),
)
