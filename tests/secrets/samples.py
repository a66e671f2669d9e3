"""Invented secrets of every kind, and texts that only resemble secrets."""

from __future__ import annotations

import random
import string

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
