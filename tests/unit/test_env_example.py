"""The pages about settings say what the program does, and nothing else reads the environment."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from dotenv import dotenv_values

from sendonce.settings import DECLARED, load_settings
from sendonce.settings import docs as settings_docs
from sendonce.settings.table import BEING_BUILT

ROOT = Path(__file__).parents[2]
REWRITE = "run: .venv/bin/python -m sendonce.settings.docs"
ENV_EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")

# The names that other programs and older setups rely on.
PROMISED = """
EXECUTOR_SHARED_SECRET APP_BASE_URL AWS_REGION AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
SES_FROM_EMAIL DATABASE_URL SUPABASE_URL SUPABASE_SERVICE_ROLE_KEY PORT LOG_LEVEL RATE_LIMIT_PER_SEC
BATCH_SIZE SES_CONFIGURATION_SET SES_REPLY_TO SNS_ALLOWED_TOPIC_ARNS TEST_EMAILS
YANDEX_CLOUD_FOLDER_ID YANDEX_CLOUD_IAM_TOKEN YANDEX_CLOUD_SA_KEY_FILE YANDEX_CLOUD_SA_KEY_JSON
APP_TIMEZONE OPENAI_API_KEY SMTP_HOST SMTP_PORT TRANSPORT SMTP_USERNAME SMTP_PASSWORD
SMTP_FROM_EMAIL IMAP_HOST MAIL_FOOTER_ADDRESS UNSUBSCRIBE_SECRET UNSUBSCRIBE_CONFIRM
SNS_SIGNING_CERT_FILE NOTION_TOKEN NOTION_LETTERS_ID NOTION_ERRORS_ID NOTION_API_URL
NOTION_WEBHOOK_TOKEN YANDEX_CLOUD_API_KEY YANDEX_SEARCH_URL YANDEX_OPERATION_URL YANDEX_IAM_URL
OPENAI_MODEL DAILY_SEND_LIMIT LETTERS_AUTO_APPROVE TELEGRAM_BOT_TOKEN TELEGRAM_CHAT_ID ALERT_EMAILS
LOG_FORMAT LOG_FILE STATE_DIR CONCURRENCY IN_DOUBT_QUIET_SECONDS SES_SIGNATURE_WINDOW_SECONDS
AWS_ENDPOINT_URL_SESV2 OPENAI_BASE_URL CRON_SECRET
"""


def test_every_promised_variable_is_declared() -> None:
    """A name that was given out is kept."""
    assert not set(PROMISED.split()) - set(DECLARED)


def test_env_example_lists_exactly_the_declared_variables_each_with_a_comment() -> None:
    """In the order of the declarations, once each."""
    entries = re.findall(r"^((?:# .+\n)+)#([A-Z0-9_]+)=", ENV_EXAMPLE, re.MULTILINE)
    assert [name for _, name in entries] == list(DECLARED)
    assert re.findall(r"^#?([A-Z0-9_]+)=", ENV_EXAMPLE, re.MULTILINE) == list(DECLARED)


def test_env_example_and_the_reference_are_written_from_the_declarations() -> None:
    """Neither is edited by hand."""
    reference = ROOT / "docs" / "reference" / "settings.md"
    assert settings_docs.env_example() == ENV_EXAMPLE, REWRITE
    assert settings_docs.reference() == reference.read_text(encoding="utf-8"), REWRITE
    for name in DECLARED:
        assert f"| `{name}` |" in reference.read_text(encoding="utf-8")


def test_env_example_as_it_is_changes_nothing(tmp_path: Path) -> None:
    """A copy of it is a working .env."""
    copy = tmp_path / ".env"
    copy.write_text(ENV_EXAMPLE, encoding="utf-8")
    assert load_settings({"HOME": "/home/ann"}, copy) == load_settings({"HOME": "/home/ann"}, None)


@pytest.mark.parametrize("name", DECLARED)
def test_every_line_of_env_example_is_a_value_that_is_taken(name: str, tmp_path: Path) -> None:
    """Taking the # away from a line never makes an error about that line."""
    copy = tmp_path / ".env"
    copy.write_text(re.sub(rf"^#({name}=)", r"\1", ENV_EXAMPLE, flags=re.MULTILINE), encoding="utf-8")
    value = dotenv_values(copy, interpolate=False)[name] or ""
    settings = load_settings({"DATABASE_URL": "sqlite:///x.db", name: value}, None)
    assert settings.sources[name] == ("environment" if value else "default")


def test_every_declaration_says_what_it_is_and_has_something_to_show() -> None:
    """A sentence; and a default, an example, or the reason why there is none: it is secret."""
    for it in DECLARED.values():
        assert it.help.endswith("."), it.name
        assert it.secret or it.example or it.default not in ("", None, ()), it.name
        assert not it.fallback or it.fallback in DECLARED, it.name


def _touches_environment(source: str) -> bool:
    for node in ast.walk(ast.parse(source)):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        imported = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        if {"environ", "environb", "getenv", "getenvb", "putenv", "dotenv_values", "load_dotenv"} & {
            name,
            *imported,
        }:
            return True
    return False


def test_only_settings_reads_the_environment() -> None:
    """Any other reader would be a setting that no page tells about."""
    product = ROOT / "src" / "sendonce"
    readers = [
        file for file in product.rglob("*.py") if _touches_environment(file.read_text(encoding="utf-8"))
    ]
    assert [str(file.relative_to(product)) for file in readers] == ["settings/loading.py"]


def test_every_setting_is_read_or_says_that_it_is_not() -> None:
    """A setting that does nothing is a trap, unless the page says so."""
    read = {
        node.attr if isinstance(node, ast.Attribute) else str(node.value).lower()
        for file in (ROOT / "src" / "sendonce").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        or (isinstance(node, ast.Constant) and file.name == "loading.py" and isinstance(node.value, str))
    }
    fallbacks = {it.fallback for it in DECLARED.values()}
    unread = {name for name in DECLARED if name.lower() not in read} - fallbacks
    said = {it.name for it in DECLARED.values() if it.group in BEING_BUILT or "Not used yet." in it.help}
    assert unread == said
