"""Settings: what is taken from where, what is refused and how, and what is never shown."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.errors import BadSetting
from sendonce.settings import DECLARED, Settings, load_settings
from sendonce.settings.kinds import mask_password


def load(**environ: str) -> Settings:
    return load_settings({"HOME": "/home/ann", **environ}, dotenv=None)


def problem(**environ: str) -> str:
    with pytest.raises(BadSetting) as caught:
        load(**environ)
    return str(caught.value)


def test_nothing_set_is_a_working_configuration_that_sends_nothing() -> None:
    """The defaults that the documentation promises."""
    ours = load()
    assert (ours.transport, ours.database_url) == ("maildir", "sqlite:///sendonce.db")
    assert (ours.host, ours.port, ours.app_base_url) == ("127.0.0.1", 3000, "http://127.0.0.1:3000")
    assert (ours.rate_limit_per_sec, ours.batch_size, ours.concurrency) == (6, 50, 1)
    assert (ours.max_tries, ours.retry_base_seconds, ours.retry_max_seconds) == (6, 60, 14400)
    assert (ours.in_doubt_quiet_seconds, ours.ses_signature_window_seconds) == (1800, 1200)
    assert (ours.log_level, ours.log_format, ours.daily_send_limit) == ("info", "console", 100)
    assert (ours.doubt_canary, ours.unsubscribe_confirm, ours.letters_auto_approve) == (True, False, False)
    assert ours.require_transport() == "maildir"
    assert ours.sender.endswith(".invalid")


def test_an_empty_value_means_the_default() -> None:
    """For every variable at once: containers pass empty ones."""
    assert load(**dict.fromkeys(DECLARED, "  ")) == load()


def test_the_process_wins_over_dotenv_even_with_an_empty_value(tmp_path: Path) -> None:
    """And each value knows where it came from."""
    dotenv = tmp_path / ".env"
    dotenv.write_text('PORT=4000\nBATCH_SIZE=7\nCONCURRENCY=5\nSMTP_PASSWORD="pa$$HOME ${X}"\nRATE_LIMIT=9\n')
    ours = load_settings({"PORT": "5000", "CONCURRENCY": ""}, dotenv)
    assert (ours.port, ours.batch_size, ours.concurrency) == (5000, 7, 1)
    assert ours.smtp_password == "pa$$HOME ${X}"
    sources = {it.name: it.source for it in ours.describe()}
    assert (sources["PORT"], sources["BATCH_SIZE"], sources["CONCURRENCY"]) == (
        "environment",
        ".env",
        "default",
    )
    assert ours.unknown_in_dotenv == ("RATE_LIMIT",)


def test_a_dotenv_that_is_not_there_is_no_problem_and_a_broken_one_is(tmp_path: Path) -> None:
    """A file in another encoding is named."""
    assert load_settings({}, tmp_path / "none").port == 3000
    (tmp_path / ".env").write_bytes(b"MAIL_FOOTER_ADDRESS=\xcf\xf0\xe8\xe2\xe5\xf2\n")
    with pytest.raises(BadSetting, match="Make it a readable UTF-8 file"):
        load_settings({}, tmp_path / ".env")


def test_a_line_of_dotenv_that_is_not_read_is_named(tmp_path: Path) -> None:
    """With its number and without its text, which may be a secret's."""
    dotenv = tmp_path / ".env"
    dotenv.write_text("# ours\nPORT=4000\n\n\nhunter2\nSES FROM=a\nexport BATCH_SIZE=7 # fine\nMAX_TRIES=\n")
    with pytest.raises(BadSetting) as caught:
        load_settings({}, dotenv)
    assert [line.split(" of ")[0] for line in str(caught.value).splitlines()] == ["Line 5", "Line 6"]
    assert "hunter2" not in str(caught.value)


def test_a_folder_in_place_of_dotenv_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    with pytest.raises(BadSetting, match="is a folder"):
        load_settings({}, tmp_path / ".env")


def test_the_environment_of_a_real_process_is_read(tmp_path: Path) -> None:
    """With a .env in its working directory, and without touching the environment."""
    (tmp_path / ".env").write_text("BATCH_SIZE=7\n")
    program = (
        "import os; from sendonce.settings import load_settings as load; it = load();"
        "print(it.port, it.batch_size, it.state_dir, 'BATCH_SIZE' in os.environ)"
    )
    environ = {**os.environ, "PORT": "4321", "XDG_STATE_HOME": "/var/state"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path, env=environ
    )
    assert done.stdout.split() == ["4321", "7", "/var/state/sendonce", "False"]


def test_a_wrong_value_names_the_variable_the_value_and_the_fix() -> None:
    """The sentence of the documentation, to the letter."""
    assert problem(RATE_LIMIT_PER_SEC="six") == (
        "RATE_LIMIT_PER_SEC is 'six': it must be a whole number of at least 0."
        " Set it, e.g., RATE_LIMIT_PER_SEC=6."
    )


def test_all_problems_are_told_at_once_one_a_line() -> None:
    """Whoever fixes a configuration fixes it once."""
    lines = problem(PORT="x", LOG_LEVEL="loud", SES_FROM_EMAIL="a@b.c", SMTP_HOST="h", AWS_DEFAULT_REGION="?")
    assert [line.split()[0] for line in lines.splitlines()] == [
        "PORT",
        "AWS_DEFAULT_REGION",
        "LOG_LEVEL",
        "SES_FROM_EMAIL",
    ]


WRONG = {
    "PORT": ["-1", "65536", "3000.0", "١٢", "1_000", "0x10"],
    "RATE_LIMIT_PER_SEC": ["-1", "6.5", "6/s", "9" * 30],
    "CONCURRENCY": ["0"],
    "BURY_INTERVAL_SECONDS": ["0", "nan", "inf", "-1", "ten"],
    "UNSUBSCRIBE_CONFIRM": ["maybe", "2"],
    "LOG_FORMAT": ["xml"],
    "MAIL_LANGUAGE": ["de"],
    "TRANSPORT": ["sendmail"],
    "SES_FROM_EMAIL": [
        "news",
        "@example.com",
        "news@",
        "a@b@c",
        "a b@c",
        "News <n@e.com",
        "a@b\r\nBcc: c@d",
        "a@b,c@d",
    ],
    "TEST_EMAILS": ["a@b.c, d"],
    "APP_BASE_URL": [
        "example.com",
        "ftp://x",
        "http://",
        "https://a b",
        "https://u:p@x",
        "https://x/?a=1",
        "http://x:y",
    ],
    "DATABASE_URL": [
        "mysql://h/db",
        "sendonce.db",
        "sqlite://sendonce.db",
        "sqlite:///",
        "sqlite:///:memory:",
    ],
    "APP_TIMEZONE": ["Moscow", "../etc/passwd", "/etc/localtime"],
    "AWS_REGION": ["Frankfurt", "eu-central-1.evil.com", "eu-central-1/"],
    "SNS_ALLOWED_TOPIC_ARNS": [
        "*",
        "arn:aws:sqs:eu-central-1:123456789012:x",
        "arn:aws:sns:eu-central-1:12:x",
    ],
    "SMTP_HOST": ["smtp://x", "a b", "h\nx", "h:25"],
    "YANDEX_CLOUD_SA_KEY_JSON": ["{", "[]"],
    "MAIL_FOOTER_ADDRESS": ["a\nb", "a\x1b[2J", "a\udcff"],
    "LOG_FILE": ["~nobody-by-this-name/x"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_what_cannot_be_right_is_refused_in_one_line(name: str, value: str) -> None:
    """The message begins with the variable and holds no raw control characters."""
    said = problem(**{name: value})
    assert said.startswith(f"{name} is ")
    assert said.isprintable()


RIGHT = {
    "PORT": ("0", 0),
    "RATE_LIMIT_PER_SEC": (" 14 ", 14),
    "IN_DOUBT_QUIET_SECONDS": ("0.5", 0.5),
    "UNSUBSCRIBE_CONFIRM": ("Yes", True),
    "DOUBT_CANARY": ("off", False),
    "LOG_LEVEL": ("WARN", "warning"),
    "TEST_EMAILS": ("a@b.c, d@e.f,", ("a@b.c", "d@e.f")),
    "SES_FROM_EMAIL": ("новости@пример.рф", "новости@пример.рф"),
    "APP_BASE_URL": ("https://mail.example.com/x/", "https://mail.example.com/x"),
    "NOTION_API_URL": ("http://[::1]:8080", "http://[::1]:8080"),
    "APP_TIMEZONE": ("Asia/Tbilisi", "Asia/Tbilisi"),
    "EXECUTOR_SHARED_SECRET": (" kept as it is \n", " kept as it is "),
    "HOST": ("::", "::"),
    "NO_COLOR": ("0", True),
    "LOG_FILE": ("logs/x.log", Path("logs/x.log")),
    "YANDEX_CLOUD_SA_KEY_JSON": ('{"id":\n "x"}', '{"id":\n "x"}'),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_people_write_is_understood(name: str) -> None:
    """Spaces, case and the usual spellings are no reason to refuse."""
    text, value = RIGHT[name]
    assert getattr(load(**{name: text}), name.lower()) == value


@pytest.mark.parametrize(
    ("given_url", "taken"),
    [
        ("postgres://u:p@h/db", "postgresql+psycopg://u:p@h/db"),
        (
            "postgresql://u:p%40@h:6543/db?sslmode=require",
            "postgresql+psycopg://u:p%40@h:6543/db?sslmode=require",
        ),
        ("postgresql+psycopg://[::1]:5432/db", "postgresql+psycopg://[::1]:5432/db"),
        ("postgresql:///db?host=/run/postgresql", "postgresql+psycopg:///db?host=/run/postgresql"),
        ("sqlite:///relative.db", "sqlite:///relative.db"),
        ("sqlite:////var/lib/absolute.db", "sqlite:////var/lib/absolute.db"),
    ],
)
def test_a_database_url_is_made_what_sqlalchemy_takes(given_url: str, taken: str) -> None:
    """Every spelling in use means psycopg 3."""
    assert load(DATABASE_URL=given_url).database_url == taken


@pytest.mark.parametrize("password", ["p@ss", "p/ss", "p#ss", "p:s@s", "p?ss"])
def test_a_pasted_password_is_refused_with_the_reason_and_not_shown(password: str) -> None:
    """Unescaped, it would silently become part of another host or path."""
    said = problem(DATABASE_URL=f"postgresql://user:{password}@host/db")
    assert "must be percent-encoded" in said
    assert password not in said
    assert "ss@" not in said


def test_supabase_without_a_database_url_tells_what_to_set() -> None:
    """With it, all is well."""
    assert "DATABASE_URL=postgresql://postgres." in problem(SUPABASE_URL="https://abc.supabase.co")
    load(SUPABASE_URL="https://abc.supabase.co", DATABASE_URL="postgres://u:p@h/db")


@pytest.mark.parametrize(
    ("environ", "transport"),
    [
        ({"SES_FROM_EMAIL": "a@b.c"}, "ses"),
        ({"SMTP_HOST": "h"}, "smtp"),
        ({"SES_FROM_EMAIL": "a@b.c", "TRANSPORT": "Maildir"}, "maildir"),
        ({"SES_FROM_EMAIL": "a@b.c", "SMTP_HOST": "h", "TRANSPORT": "smtp"}, "smtp"),
    ],
)
def test_the_transport_follows_from_what_is_set(environ: dict[str, str], transport: str) -> None:
    """TRANSPORT itself has the last word."""
    assert load(**environ).transport == transport


def test_two_ways_out_and_no_word_which_is_refused() -> None:
    """Nothing leaves by a way that its owner did not choose."""
    assert "Set TRANSPORT=ses or TRANSPORT=smtp." in problem(SES_FROM_EMAIL="a@b.c", SMTP_HOST="h")


def test_what_a_transport_needs_is_asked_for_only_when_sending() -> None:
    """A half-configured machine can still show its mailouts."""
    ours = load(TRANSPORT="ses")
    with pytest.raises(BadSetting) as caught:
        ours.require_transport()
    assert [line.split()[0] for line in str(caught.value).splitlines()] == ["SES_FROM_EMAIL", "AWS_REGION"]
    with pytest.raises(BadSetting, match="SMTP_FROM_EMAIL is not set, and TRANSPORT=smtp needs it"):
        load(SMTP_HOST="h").require_transport()
    whole = load(SES_FROM_EMAIL="a@b.c", AWS_DEFAULT_REGION="eu-west-1")
    assert (whole.require_transport(), whole.sender, whole.aws_region) == ("ses", "a@b.c", "eu-west-1")


def test_half_a_pair_of_aws_keys_is_refused() -> None:
    """The chain would silently go on to another account's role."""
    assert "go together" in problem(AWS_ACCESS_KEY_ID="AKIAIOSFODNN7EXAMPLE")


@pytest.mark.parametrize(
    ("host", "port", "security"),
    [
        ("smtp.example.com", "587", "starttls"),
        ("smtp.example.com", "465", "tls"),
        ("localhost", "1025", "plain"),
        ("127.0.0.2", "1025", "plain"),
        ("::1", "1025", "plain"),
        ("localhost.example.com", "25", "starttls"),
    ],
)
def test_only_loopback_is_plain_unless_asked(host: str, port: str, security: str) -> None:
    """SMTP_SECURITY says otherwise if it must."""
    assert load(SMTP_HOST=host, SMTP_PORT=port).smtp_security == security
    assert load(SMTP_HOST=host, SMTP_PORT=port, SMTP_SECURITY="plain").smtp_security == "plain"


def test_one_endpoint_stands_for_all_of_aws_unless_one_is_named() -> None:
    """As the AWS tools have it."""
    ours = load(AWS_ENDPOINT_URL="http://127.0.0.1:1", AWS_ENDPOINT_URL_SNS="http://127.0.0.1:2")
    assert ours.aws_endpoint_url_sesv2 == "http://127.0.0.1:1"
    assert ours.aws_endpoint_url_sns == "http://127.0.0.1:2"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "/home/ann/.local/state/sendonce"),
        ({"XDG_STATE_HOME": "/x"}, "/x/sendonce"),
        ({"XDG_STATE_HOME": "relative"}, "/home/ann/.local/state/sendonce"),
        ({"XDG_STATE_HOME": "/x", "STATE_DIR": "/var/lib/sendonce"}, "/var/lib/sendonce"),
    ],
)
def test_the_state_directory_follows_the_xdg_rules(environ: dict[str, str], expected: str) -> None:
    """A relative XDG path is to be ignored."""
    assert load(**environ).state_dir == Path(expected)


def test_secrets_are_never_shown() -> None:
    """Not by describe, not by repr, not by an error about another variable or about themselves."""
    planted = {
        name: '{"k": "planted"}' if name.endswith("_JSON") else f"planted-{name}"
        for name, declared in DECLARED.items()
        if declared.secret
    }
    ours = load(**planted, DATABASE_URL="postgres://user:planted@host/db")
    shown = repr(ours) + str(ours) + f"{ours}" + "".join(it.value_shown for it in ours.describe())
    assert "planted" not in shown
    assert "postgresql+psycopg://user:••••@host/db" in shown
    assert {it.value_shown for it in ours.describe() if it.secret} == {"••••"}
    assert set(planted.values()) | {"planted"} == set(ours.secrets())
    assert "planted" not in problem(SMTP_PASSWORD="planted\nvalue", PORT="x")


def test_an_unset_secret_is_shown_as_unset() -> None:
    """Masking nothing would look like something."""
    assert {it.value_shown for it in load().describe() if it.secret} == {""}


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="&", min_codepoint=33), min_size=1))
def test_no_password_survives_masking(tail: str) -> None:
    """Well-formed or not: the mask takes everything up to the last @."""
    password = f"PLANTED{tail}PLANTED"
    for address in (
        f"postgresql://user:{password}@host/db",
        f"user:{password}@host",
        f"x:/user:{password}@host",
    ):
        assert "PLANTED" not in mask_password(address)
    assert "PLANTED" not in mask_password("postgresql://host/db?user=x&password=PLANTED&a=1")


def test_a_password_in_the_query_is_a_secret_too() -> None:
    """libpq takes it from there, and the password of a client's key."""
    ours = load(DATABASE_URL="postgresql://host/db?password=PLANTED%201&sslpassword=PLANTED2")
    assert {"PLANTED%201", "PLANTED 1", "PLANTED2"} <= set(ours.secrets())
    assert "PLANTED" not in repr(ours)


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(sorted(DECLARED)), value=st.text(max_size=30))
def test_any_text_is_either_taken_or_refused_by_name(name: str, value: str) -> None:
    """No variable and no value brings another exception."""
    said = ""
    try:
        load(**{name: value})
    except BadSetting as refused:
        said = str(refused)
    assert not said or name in said


def test_settings_cannot_be_changed() -> None:
    """What was read at the start holds to the end."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        load().port = 1  # type: ignore[misc]


def test_what_is_shown_can_be_set_again() -> None:
    """sendonce settings prints what one could put into .env: it means the same."""
    ours = load(TEST_EMAILS="a@b.c,d@e.f", IN_DOUBT_QUIET_SECONDS="0.5", SMTP_HOST="localhost", PORT="81")
    shown = {it.name: it.value_shown for it in ours.describe() if not it.secret and it.name != "NO_COLOR"}
    assert load(**shown) == ours


@pytest.mark.parametrize("variable", ["SES_FROM_EMAIL", "SMTP_FROM_EMAIL"])
@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("news@example.com", ""),
        ("The Bakery <news@example.com>", "The Bakery"),
        ('"The Bakery, Riga" <news@example.com>', "The Bakery, Riga"),
        ("  Пекарня   «Колос»  < news@example.com > ", "Пекарня «Колос»"),
        ("<news@example.com>", ""),
    ],
)
def test_a_sender_may_have_a_name(variable: str, written: str, name: str) -> None:
    """The address is the sender, the name stands beside it; SES_FROM_NAME comes before it."""
    more = {"SMTP_HOST": "mail.example.com"} if variable.startswith("SMTP") else {}
    ours = load(**{variable: written, **more})
    assert (ours.sender, ours.sender_name) == ("news@example.com", name)
    assert load(SES_FROM_NAME="Other", **{variable: written, **more}).sender_name == "Other"


@pytest.mark.parametrize(
    "written", ["The Bakery", "a@b <c@d.example>", "x <>", "a <b@c.example> d", "<<a@b.example>>"]
)
def test_a_sender_that_is_none(written: str) -> None:
    assert "SES_FROM_EMAIL is" in problem(SES_FROM_EMAIL=written)


def test_the_web_is_played_by_this_machine_only() -> None:
    with pytest.raises(BadSetting, match="WEB_STAND_IN is 'http://elsewhere': it must be on this machine"):
        load_settings({"WEB_STAND_IN": "http://elsewhere"}, None)


@pytest.mark.parametrize(
    "real",
    [
        {"SMTP_HOST": "smtp.gmail.com", "SMTP_FROM_EMAIL": "a@b.ru"},
        {"SES_FROM_EMAIL": "a@b.ru", "AWS_REGION": "eu-central-1"},
        {"YANDEX_CLOUD_FOLDER_ID": "b1g0123456789abcdefg"},
    ],
)
def test_companies_that_are_made_up_get_no_real_letters_or_searches(real: dict[str, str]) -> None:
    with pytest.raises(BadSetting, match="is not on this machine"):
        load_settings({"WEB_STAND_IN": "http://127.0.0.1:4581", **real}, None)
