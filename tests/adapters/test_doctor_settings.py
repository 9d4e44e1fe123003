"""The doctor on settings, machine and database: each stop, made to appear."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import sqlite3
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sendonce.adapters.doctor.configuration import SettingsProbe
from sendonce.adapters.doctor.machine import DiskProbe, clock_check
from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.adapters.stores.sql import open_store
from sendonce.adapters.wire_journal import StateDirectory
from sendonce.domain.engine.checks import Check, Verdict, count_of, listed, may_send, ok, stop, warning
from sendonce.errors import Unavailable
from sendonce.flows.engine.doctor import examine
from sendonce.settings import load_settings
from sendonce.wiring.doctor import configuration_of
from tests.adapters.doctor_stage import SES, WELL, Findings, adopt, ask, doctor
from tests.postgres import PostgresServer

ROOT = Path(__file__).parents[2]
REAL = {**WELL, **SES, "APP_BASE_URL": "https://mail.example.com"}
"""Settings that would send by the real SES: only the probe of the settings may see them here."""


@pytest.fixture
def database(sqlite_url: str) -> str:
    return adopt(sqlite_url)


def examined(**changes: str) -> Findings:
    settings = load_settings({"HOME": "/nowhere", **REAL, **changes}, dotenv=None)
    return ask(SettingsProbe(configuration_of(settings)))


def test_settings_that_are_well_stop_nothing() -> None:
    """Not even a warning."""
    assert {check.verdict for check in examined().all} == {Verdict.OK}


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("settings.transport", {"SES_FROM_EMAIL": "", "TRANSPORT": "ses"}, "SES_FROM_EMAIL is not set"),
        ("settings.footer", {"MAIL_FOOTER_ADDRESS": ""}, "MAIL_FOOTER_ADDRESS is not set"),
        ("settings.unsubscribe-secret", {"UNSUBSCRIBE_SECRET": "x" * 15}, "has 15 characters"),
        ("settings.shared-secret", {"EXECUTOR_SHARED_SECRET": "hush"}, "has 4 characters"),
        ("settings.shared-secret", {"EXECUTOR_SHARED_SECRET": "rehearsal-shared-secret"}, "can read"),
        ("settings.unsubscribe-secret", {"UNSUBSCRIBE_SECRET": "change-me-please"}, "everybody can read"),
        ("settings.cron-secret", {"CRON_SECRET": "hush"}, "has 4 characters"),
        ("settings.notion-webhook", {"NOTION_WEBHOOK_TOKEN": "hush"}, "has 4 characters"),
        ("settings.base-url", {"APP_BASE_URL": ""}, "APP_BASE_URL is not set"),
        ("settings.base-url", {"APP_BASE_URL": "https://localhost"}, "cannot reach your own machine"),
        ("settings.base-url", {"APP_BASE_URL": "http://mail.example.com"}, "must be https"),
        ("settings.sns-certificate", {"SNS_SIGNING_CERT_FILE": "sandbox/sns.pem"}, "SNS_SIGNING_CERT_FILE"),
        ("settings.failpoint", {"FAILPOINT": "settle.before"}, "FAILPOINT is settle.before"),
    ],
)
def test_a_setting_that_would_do_harm_is_a_stop(name: str, changes: dict[str, str], says: str) -> None:
    """It names the variable, and the secret's value is in none of it."""
    found = examined(**changes)
    assert found.stops() == {name}
    assert says in found.told(name)
    assert not any(value in str(found.all) for value in ("x" * 15, "hush"))


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("settings.shared-secret", {"EXECUTOR_SHARED_SECRET": ""}, "answers 401"),
        ("settings.former-secrets", {"UNSUBSCRIBE_FORMER_SECRETS": "hush"}, "has 4 characters"),
        ("settings.test-emails", {"TEST_EMAILS": ""}, "TEST_EMAILS is not set"),
        ("settings.events", {"SNS_ALLOWED_TOPIC_ARNS": ""}, "all events of SES are refused"),
        ("settings.configuration-set", {"SES_CONFIGURATION_SET": ""}, "stays in doubt"),
        ("settings.transport", {"TRANSPORT": "maildir"}, "nobody receives them"),
    ],
)
def test_what_may_be_meant_so_is_a_warning(name: str, changes: dict[str, str], says: str) -> None:
    """One can send without it, knowing what is lost."""
    found = examined(**changes)
    assert not found.stops()
    assert found[name].verdict is Verdict.WARNING
    assert says in found.told(name)


def test_a_rehearsal_may_use_loopback_and_still_needs_what_every_letter_carries() -> None:
    """A stand-in for SES on this machine: nothing leaves, and a footer is wanted all the same."""
    local = {"AWS_ENDPOINT_URL_SESV2": "http://127.0.0.1:4580", "APP_BASE_URL": "http://127.0.0.1:3000"}
    assert not examined(**local, SNS_SIGNING_CERT_FILE="sns.pem").stops()
    assert examined(**local, MAIL_FOOTER_ADDRESS="").stops() == {"settings.footer"}
    by_smtp = {"TRANSPORT": "smtp", "SMTP_HOST": "localhost", "SMTP_FROM_EMAIL": "a@example.com"}
    assert not examined(**by_smtp, APP_BASE_URL="http://127.0.0.1:3000").stops()


def test_unknown_names_in_dotenv_are_told_with_a_guess(tmp_path: Path) -> None:
    """A misspelt name is the commonest mistake of all, and silent."""
    dotenv = tmp_path / ".env"
    dotenv.write_text("RATE_LIMIT_PER_SECOND=5\nTOTALLY_ELSE=1\n")
    found = ask(SettingsProbe(configuration_of(load_settings({"HOME": "/nowhere", **REAL}, dotenv))))
    told = [(check.what, check.fix) for check in found.all if check.name == "settings.unknown"]
    assert told[0] == (
        "RATE_LIMIT_PER_SECOND in .env is none of our settings.",
        "Did you mean RATE_LIMIT_PER_SEC?",
    )
    assert told[1][0].startswith("TOTALLY_ELSE in .env")


def test_a_new_installation_with_a_maildir_has_no_stop(database: str, tmp_path: Path) -> None:
    """The first five minutes are full of warnings, and nothing stands in the way."""
    found = doctor(database, tmp_path, dict.fromkeys(WELL, ""))
    assert not found.stops()
    assert all(check.fix for check in found.all if check.verdict is Verdict.WARNING)
    names = {"database", "ledger", "state", "disk", "clock", "maildir"}
    assert {name for name in names if found[name].verdict is Verdict.OK} == names


def test_settings_that_contradict_each_other_are_a_stop(database: str, tmp_path: Path) -> None:
    """What the transport would say when it is made, the doctor says before."""
    smtp = {"SMTP_HOST": "127.0.0.1", "SMTP_FROM_EMAIL": "a@example.com", "SMTP_PASSWORD": "pass"}
    assert "SMTP_USERNAME is not" in doctor(database, tmp_path, smtp).told("transport")


# -- database, ledger, state, disk, clock --------------------------------------------------------


def test_a_database_that_does_not_answer_is_a_stop_and_told_once(tmp_path: Path) -> None:
    """What depends on it stays silent: one cause, one line."""
    found = doctor("postgresql://nobody@127.0.0.1:1/none", tmp_path)
    assert found.stops() == {"database"}
    assert "does not answer" in found.told("database")
    assert not {"ledger", "state", "list.audience", "letter.unsubscribe"} & {c.name for c in found.all}


def test_a_database_of_another_schema_is_a_stop(
    database: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """Newer than the program, or not made yet."""
    file = database.removeprefix("sqlite:///")
    with sqlite3.connect(file) as tampered:
        tampered.execute("UPDATE alembic_version SET version_num = '9999'")
    tampered.close()
    assert "newer than this program's" in doctor(database, tmp_path).told("database")
    with postgres_server.database() as url:
        found = doctor(url, tmp_path)
    assert found["database"].verdict is Verdict.STOP
    assert "sendonce db upgrade" in found["database"].fix


@pytest.mark.skipif("TEST_DATABASE_URL" in os.environ, reason="a server of others is left as it is")
def test_a_postgres_that_forgets_commits_is_a_stop(
    postgres_server: PostgresServer, migrated_postgres: str, tmp_path: Path
) -> None:
    """fsync = off: a power cut would undo claims."""
    with postgres_server.database(template=migrated_postgres) as url:
        assert not doctor(url, tmp_path).stops()
        postgres_server.execute("ALTER SYSTEM SET fsync = off")
        try:
            postgres_server.reload_until("SHOW fsync", "off")
            found = doctor(url, tmp_path)
        finally:
            postgres_server.execute("ALTER SYSTEM RESET fsync")
            postgres_server.reload_until("SHOW fsync", "on")
    assert "fsync = off" in found.told("database")


def test_a_halted_or_rolled_back_ledger_is_a_stop(database: str, tmp_path: Path) -> None:
    """Letters were sent that this database does not know of."""
    store = open_store(database)
    StateDirectory(tmp_path, store.ledger.identity().ledger_id).keep_claim(99)
    store.close()
    found = doctor(database, tmp_path)
    assert found.stops() == {"ledger"}
    assert "restored from an older copy" in found.told("ledger")
    assert "sendonce db adopt" in found["ledger"].fix


@pytest.mark.parametrize(
    ("recorded", "what"), [(None, "which database it is in"), ("elsewhere:1", "elsewhere:1")]
)
def test_a_ledger_in_an_unknown_or_another_database_is_told(
    database: str, tmp_path: Path, recorded: str | None, what: str
) -> None:
    """Unknown is worth a warning; another one may have lost what was sent last, and stops."""
    store = open_store(database)
    store.ledger.vouch(recorded, "tests")
    store.close()
    found = doctor(database, tmp_path)
    assert found.stops() == ({"ledger"} if recorded else set())
    assert what in found.told("ledger")


def test_a_state_directory_that_cannot_be_is_a_stop(database: str, tmp_path: Path) -> None:
    """Here a file is in its way."""
    (tmp_path / "file").write_text("")
    found = doctor(database, tmp_path / "file" / "state")
    assert found.stops() == {"ledger", "state"}
    assert "cannot be used" in found.told("state")


def test_signatures_that_nobody_checks_are_a_stop(database: str, tmp_path: Path) -> None:
    """Those of a maildir: its letters never die by themselves."""
    found = doctor(database, tmp_path, {"DEATH_PROOF": "signature"})
    assert "DEATH_PROOF is signature" in found.told("state")
    assert found.stops() == {"state"}


def test_locks_that_lock_nothing_are_a_stop(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on some network file systems; the file that was tried does not stay behind."""
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    found = doctor(database, tmp_path)
    assert found.stops() == {"state"}
    assert "does not keep locks" in found.told("state")
    assert not list(tmp_path.rglob("doctor-*"))


def test_a_maildir_that_cannot_be_written_is_a_stop(database: str, tmp_path: Path) -> None:
    """Here a file is in its way."""
    (tmp_path / "file").write_text("")
    found = doctor(database, tmp_path, {"MAILDIR_PATH": str(tmp_path / "file" / "mail")})
    assert found.stops() == {"maildir"}
    assert found.told("maildir").startswith("stop: Letters cannot be written")


@pytest.mark.parametrize(
    ("free", "verdict"), [(99 << 20, Verdict.STOP), (500 << 20, Verdict.WARNING), (2 << 30, Verdict.OK)]
)
def test_a_full_disk_is_a_stop(tmp_path: Path, free: int, verdict: Verdict) -> None:
    """The fullest one counts, and a folder that is not there yet is judged by where it would be."""
    rooms = {tmp_path: free, tmp_path.parent: 9 << 30}
    probe = DiskProbe([tmp_path / "not" / "yet", tmp_path.parent], lambda path: rooms[path])
    assert ask(probe)["disk"].verdict is verdict
    assert f"{free >> 20} MB" in ask(probe).told("disk")


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [(0, "ok"), (-59, "ok"), (61, "warning"), (-61, "warning"), (241, "stop"), (-241, "stop")],
)
def test_a_clock_that_is_off_is_a_stop_before_amazon_refuses_it(seconds: int, verdict: str) -> None:
    """Amazon's own limit is five minutes."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    check = clock_check(now + timedelta(seconds=seconds), now, "Amazon's")
    assert check.verdict == verdict
    assert ("ahead of Amazon's" in check.what) == (seconds > 60)


# -- the flow ------------------------------------------------------------------------------------


class _Probe:
    def __init__(self, name: str, *found: Check, error: Exception | None = None, hangs: bool = False) -> None:
        self.name = name
        self._found = found
        self._error = error
        self._hangs = hangs

    async def examine(self) -> Sequence[Check]:
        if self._hangs:
            await in_own_thread(lambda: time.sleep(30))
        if self._error:
            raise self._error
        return self._found


def test_what_hangs_or_fails_does_not_keep_the_others_from_being_told() -> None:
    """In the order of the probes, within the time, and a thread that hangs holds nobody up."""
    probes = [
        _Probe("a", hangs=True),
        _Probe("b", error=Unavailable("it is gone")),
        _Probe("c", ok("c", "fine"), warning("d", "hm", "do")),
    ]
    began = time.monotonic()
    found = asyncio.run(examine(probes, patience=0.1))
    assert time.monotonic() - began < 20
    assert [(check.name, check.verdict) for check in found] == [
        ("a", "stop"),
        ("b", "stop"),
        ("c", "ok"),
        ("d", "warning"),
    ]
    assert may_send(found[2:])
    assert not may_send(found)


def test_numbers_and_lists_read_well() -> None:
    """One is one, thousands are apart, and long lists end."""
    assert (count_of(1, "letter"), count_of(12345, "letter")) == ("1 letter", "12 345 letters")
    assert count_of(2, "address", "addresses") == "2 addresses"
    assert listed("abcdefg", 3) == "a, b, c and 4 more"
    assert stop("a", "b", "c").verdict is Verdict.STOP


def test_every_line_of_the_doctor_is_on_its_page() -> None:
    """docs/how-to/before-you-send.md explains each name that the program can print."""
    page = (ROOT / "docs" / "how-to" / "before-you-send.md").read_text(encoding="utf-8")
    sources = [*(ROOT / "src" / "sendonce" / "adapters" / "doctor").glob("*.py")]
    sources += [
        ROOT / "src" / "sendonce" / name for name in ("wiring/doctor.py", "entrypoints/cli/engine/doctor.py")
    ]
    text = "\n".join(file.read_text(encoding="utf-8") for file in sources)
    names = set(re.findall(r'(?:\bname = |(?:ok|warning|stop|Foregone)\(\s*)"([a-z][a-z.-]+)"', text))
    assert len(names) > 35
    assert not {name for name in names if f"`{name}`" not in page}
