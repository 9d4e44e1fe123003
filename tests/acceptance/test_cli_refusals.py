"""What the command line says and which code it ends with when the answer is no."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.jobs import ClaimRequest, JobState, Settlement
from sendonce.domain.engine.outcomes import Refused
from tests.acceptance.test_threats_people import Desk, desk
from tests.conformance.stage import worker_record
from tests.crash.world import SandboxSes
from tests.nursery import run_program

__all__ = ["desk"]

FAILED, USAGE, REFUSED = 1, 2, 3
LEAVING = {
    "APP_BASE_URL": "http://127.0.0.1:3000",
    "MAIL_FOOTER_ADDRESS": "1 Example Street, Riga",
    "TEST_EMAILS": "jane@example.com",
}
NOBODY = "01900000-0000-7000-8000-000000000000"
WORKER = "01900000-0000-7000-8000-000000000001"


def letter(desk: Desk, text: str, name: str = "letter.md") -> str:
    (desk.folder / name).write_text(text, encoding="utf-8")
    return name


def plain(subject: str = "News", body: str = "Good day") -> str:
    return f"---\nsubject: {subject}\n---\n\n{body}\n"


def told(desk: Desk, *arguments: str, code: int) -> str:
    done = run_program(arguments, desk.environment, desk.folder)
    assert done.returncode == code, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


# -- before anything is there ----------------------------------------------------------------------

LOOKING = [
    ["mailout", "list"],
    ["mailout", "status", NOBODY],
    ["mailout", "report", NOBODY],
    ["mailout", "send", NOBODY],
    ["mailout", "cancel", NOBODY],
    ["subscribers", "list"],
    ["subscribers", "export"],
    ["suppression", "list"],
    ["suppression", "export"],
    ["suppression", "remove", "a@example.com"],
    ["jobs", "list"],
    ["jobs", "dead"],
    ["jobs", "in-doubt"],
    ["events", "list"],
    ["events", "list", "--unreadable"],
    ["show", "a@example.com"],
    ["erase", "a@example.com", "--yes"],
    ["db", "rotate-keys", "--yes"],
]


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_looking_makes_no_database(tmp_path: Path, command: list[str]) -> None:
    """Who is in the wrong folder is told so, and no empty database appears there."""
    desk = Desk(tmp_path, f"sqlite:///{tmp_path}/nothing.db")
    assert "There is no database at" in told(desk, *command, code=FAILED)
    assert not (tmp_path / "nothing.db").exists()


def test_the_doctor_makes_no_database_either(tmp_path: Path) -> None:
    """A new installation is a warning; a mailout that cannot be there is a stop."""
    desk = Desk(tmp_path, f"sqlite:///{tmp_path}/nothing.db")
    desk.environment["UNSUBSCRIBE_SECRET"] = "long enough to be a secret"
    assert "There is no database at" in desk.run("doctor")
    desk.run("doctor", "--mailout", NOBODY, code=REFUSED)
    assert not (tmp_path / "nothing.db").exists()


def test_a_demo_where_nothing_can_be_written(desk: Desk) -> None:
    assert "Give another with --dir" in told(desk, "demo", "--dir", "/proc/nothing", code=USAGE)


# -- what is not there -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ["jobs", "retry", "xx"],
        ["jobs", "resolve", "sent", NOBODY],
        ["jobs", "list", "--mailout", "xx"],
        ["jobs", "dead", "--mailout", NOBODY],
        ["jobs", "retry", "--mailout", "xx"],
        ["jobs", "resolve", "sent", "--mailout", "xx"],
        ["mailout", "status", "https://www.notion.so/x-0123456789abcdef0123456789abcdef"],
        ["mailout", "pause", "xx"],
        ["suppression", "remove", "nobody@example.com"],
    ],
    ids=" ".join,
)
def test_an_unknown_name_is_not_found(desk: Desk, command: list[str]) -> None:
    assert told(desk, *command, code=FAILED)


def test_a_suppression_for_one_client_is_no_other_clients(desk: Desk) -> None:
    add = ("suppression", "add", "jane@example.com")
    assert "There is no tenant acme" in told(desk, *add, "--tenant", "acme", code=FAILED)
    desk.run("tenant", "add", "acme")
    assert "leave out --tenant" in told(desk, *add, "--tenant", "acme", "--global", code=USAGE)
    desk.run(*add, "--tenant", "acme")
    (only,) = desk.json("suppression", "list")
    assert (only["address"], only["scope"]) == ("jane@example.com", "acme")
    (desk.folder / "out.csv").write_text("bob@example.com\n")
    desk.run("suppression", "import", "out.csv", "--tenant", "acme")
    assert {each["scope"] for each in desk.json("suppression", "list")} == {"acme"}
    told(desk, "suppression", "remove", "jane@example.com", code=FAILED)
    desk.run("suppression", "remove", "jane@example.com", "--tenant", "acme")
    assert [each["address"] for each in desk.json("suppression", "list")] == ["bob@example.com"]


def test_a_suppression_of_the_other_scope_is_pointed_out(desk: Desk) -> None:
    """An unknown letter's bounce denies an address to everybody: who allows it again is told how."""
    desk.run("suppression", "add", "jane@example.com", "--global")
    assert "add --global" in told(desk, "suppression", "remove", "jane@example.com", code=FAILED)
    desk.run("suppression", "add", "jane@example.com")
    assert "add --global" in desk.run("suppression", "remove", "jane@example.com")
    assert "may be written to" in desk.run("suppression", "remove", "jane@example.com", "--global")


def test_a_job_that_is_fine_gets_no_other_life(desk: Desk) -> None:
    desk.import_rows([["jane@example.com", "Jane", "Riga"]])
    desk.send()
    (job,) = desk.json("jobs", "list")
    assert "dead and failed" in told(desk, "jobs", "retry", job["id"], code=REFUSED)
    assert "in doubt" in told(desk, "jobs", "resolve", "sent", job["id"], code=REFUSED)


def test_a_letter_that_failed_before_an_adoption_is_retried_only_by_a_word(desk: Desk) -> None:
    """Another copy of the database may have sent it since; the answer names it and says what to add."""
    desk.import_rows([["jane@example.com", "Jane", "Riga"]])
    mailout = desk.json("mailout", "create", letter(desk, plain()))["id"]
    desk.run("mailout", "send", mailout, "--detach")
    with closing(open_store(desk.database_url)) as store:
        store.mailouts.plan_chunk(mailout, "the tests", 100)
        store.workers.register(worker_record(WORKER))
        (job,) = store.ledger.turn((), ClaimRequest(WORKER, NOBODY, 1)).claimed
        refused = Settlement(job.id, job.attempt, Refused("550", "no such user"))
        store.ledger.turn([refused], None)
        store.ledger.adopt(store.fingerprint(), 0, "the tests")
    for chosen in ([job.id], ["--failed"], ["--mailout", mailout], ["--failed", "--code", "550"]):
        said = told(desk, "jobs", "retry", *chosen, code=REFUSED)
        assert job.id in said
        assert "--not-sent-elsewhere" in said
    assert desk.json("jobs", "retry", job.id, "--not-sent-elsewhere")["moved"] == 1


# -- letters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        plain("x" * 5_000),
        plain(body="word " * 40_000),
        '---\nsubject: News\nfrom: "a\\nBcc: b@example.com\\x07"\n---\n\nGood day\n',
    ],
    ids=["a subject without end", "more than Gmail shows", "a sender with a bell in it"],
)
def test_a_letter_that_could_never_be_sent_is_no_mailout(desk: Desk, text: str) -> None:
    """Not first when it is to be sent."""
    assert "letter.md" in told(desk, "mailout", "create", letter(desk, text), code=REFUSED)
    assert desk.json("mailout", "list") == []


def test_what_an_author_may_have_meant_otherwise_is_said(desk: Desk) -> None:
    """A variable that is never filled in."""
    said = desk.run("mailout", "create", letter(desk, plain(body="You are {{ email }}")))
    assert "{{ email }} is not" in said
    assert len(desk.json("mailout", "create", "letter.md")["warnings"]) == 1


def test_front_matter_that_would_be_passed_over_is_refused(desk: Desk) -> None:
    """A key of another program, a slip of the keyboard, a segment: nothing is created."""
    text = "---\nsubject: News\nsegment: vip\nSubjekt: x\n---\n\nHello\n"
    said = told(desk, "mailout", "create", letter(desk, text), code=USAGE)
    assert "'segment', 'subjekt', which sendonce does not honour" in said
    assert "goes to all active subscribers" in said
    assert desk.json("mailout", "list") == []


def test_a_mailout_that_cannot_be_sent_as_it_is_is_refused(desk: Desk) -> None:
    """A rule says no: exit code 3, and it stays ready for when it can."""
    mailout = desk.json("mailout", "create", letter(desk, plain(body="Dear {{ title }}, {{ email }}")))["id"]
    assert "no active subscriber" in told(desk, "mailout", "send", mailout, "--dry-run", code=REFUSED)
    desk.import_rows([["jane@example.com", "Jane", "Riga"]])
    said = told(desk, "mailout", "send", mailout, code=REFUSED)
    assert 'default: "…"' in said
    assert "{{ email }} is not filled in" in said
    assert desk.json("mailout", "status", mailout)["status"] == "ready"


def test_a_cancelled_mailout_says_so_everywhere(desk: Desk) -> None:
    """Its state is by its letters, and a reader who sees only «sent» would be misled."""
    desk.import_rows([["jane@example.com", "Jane", "Riga"]])
    mailout = desk.json("mailout", "create", letter(desk, plain()))["id"]
    desk.run("mailout", "cancel", mailout)
    for command in (["status", mailout], ["report", mailout], ["list"]):
        assert "cancelled (nothing was sent)" in desk.run("mailout", *command)
    shown = desk.json("mailout", "status", mailout)
    assert (shown["status"], shown["cancelled"]) == ("failed", True)


def test_a_mailout_that_was_cancelled_in_part_is_not_called_sent(desk: Desk) -> None:
    """Who wants to send it again is told that somebody stopped it."""
    desk.import_rows([["jane@example.com", "Jane", "Riga"], ["john@example.com", "John", "Riga"]])
    mailout = desk.json("mailout", "create", letter(desk, plain()))["id"]
    desk.run("mailout", "send", mailout, "--detach")
    with closing(open_store(desk.database_url)) as store:
        store.mailouts.plan_chunk(mailout, "the tests", 100)
        first = store.jobs.list(dispatch_id=mailout)[0]
        in_doubt = store.ledger.adopt(store.fingerprint(), 0, "the tests")
        assert (in_doubt, store.ledger.resolve([first.id], sent=True, actor="the tests", note="")) == (2, 1)
        rest = store.jobs.list(dispatch_id=mailout, states=[JobState.IN_DOUBT])
        store.ledger.resolve([job.id for job in rest], sent=False, actor="the tests", note="")
    desk.run("mailout", "cancel", mailout)
    said = told(desk, "mailout", "send", mailout, code=REFUSED)
    assert "cancelled (sent in part)" in said
    assert "already sent" not in said


def test_a_mailout_is_not_started_where_it_could_not_be_sent(desk: Desk) -> None:
    """It stays ready, and no test is begun."""
    desk.import_rows([["jane@example.com", "Jane", "Riga"]])
    desk.environment |= {"TEST_EMAILS": "jane@example.com"}
    mailout = desk.json("mailout", "create", letter(desk, plain()))["id"]
    state = desk.environment["STATE_DIR"]
    desk.environment["STATE_DIR"] = "/proc/nothing"
    for command in ("send", "test"):
        assert "state directory" in told(desk, "mailout", command, mailout, code=FAILED)
    desk.environment["STATE_DIR"] = state
    desk.environment |= {
        "TRANSPORT": "ses",
        "APP_BASE_URL": "https://example.com",
        "MAIL_FOOTER_ADDRESS": "Riga",
    }
    assert "SES_FROM_EMAIL is not set" in told(desk, "mailout", "send", mailout, code=USAGE)
    del desk.environment["TRANSPORT"]
    assert [found["status"] for found in desk.json("mailout", "list")] == ["ready"]
    desk.run("mailout", "send", mailout)


def test_a_draft_has_a_way_to_be_sent(desk: Desk) -> None:
    """Each step names the next, and the next one works."""
    desk.import_rows([["jane@example.com", "Jane", "Riga"]])
    said = desk.run("mailout", "create", letter(desk, plain()), "--draft")
    mailout = said.split()[1]
    assert f"sendonce mailout ready {mailout}" in said
    assert "mailout send" not in said
    refusal = told(desk, "mailout", "send", mailout, code=REFUSED)
    assert f"sendonce mailout ready {mailout}" in refusal
    desk.run("mailout", "send", mailout, "--dry-run")
    assert f"sendonce mailout send {mailout}" in desk.run("mailout", "ready", mailout)
    desk.run("mailout", "send", mailout)
    assert "cannot be made ready" in told(desk, "mailout", "ready", mailout, code=REFUSED)


def test_a_mailout_of_which_nothing_was_sent_is_no_success(desk: Desk) -> None:
    """Nor is a test letter that its only recipient must not get. One line says why."""
    desk.import_rows([["jane@example.com", "Jane", "Riga"]])
    desk.run("suppression", "add", "jane@example.com")
    desk.environment["TEST_EMAILS"] = "jane@example.com"
    mailout = desk.json("mailout", "create", letter(desk, plain()))["id"]
    for command in ("test", "send"):
        (line,) = told(desk, "mailout", command, mailout, code=FAILED).splitlines()
        assert line.startswith("Nothing was sent of mailout ")
        assert line.endswith(": 1 skipped (suppressed).")


def test_a_mailout_that_the_provider_refuses_is_no_success(desk: Desk) -> None:
    desk.import_rows([["jane@example.com", "Jane", "Riga"], ["john@example.com", "John", "Riga"]])
    sandbox = SandboxSes(desk.folder / "sandbox", ["--max-rate=1000"])
    try:
        sandbox.faults(refuse=1.0)
        desk.environment |= sandbox.environment | LEAVING
        mailout = desk.json("mailout", "create", letter(desk, plain()))["id"]
        for command, count in (("test", 1), ("send", 2)):
            said = told(desk, "mailout", command, mailout, "--json", code=FAILED)
            assert f": {count} failed (MessageRejected: " in said, said
    finally:
        sandbox.stop()


# -- lists -----------------------------------------------------------------------------------------


def test_an_import_of_nothing_but_bad_lines_is_no_success(desk: Desk) -> None:
    (desk.folder / "bad.csv").write_text("email\nnobody\nno one\n")
    done = desk.run("subscribers", "import", "bad.csv", code=FAILED)
    assert "0 added" in done
    assert "2 invalid" in done
    (desk.folder / "half.csv").write_text("email\nnobody\nanna@example.com\n")
    assert "1 added" in desk.run("subscribers", "import", "half.csv")
    (desk.folder / "empty.csv").write_text("email\n")
    assert "0 invalid" in desk.run("subscribers", "import", "empty.csv")


def test_no_output_overwrites_what_is_needed(desk: Desk) -> None:
    """Neither the list that is read, nor the ledger, nor the other output, by whatever name; a device may."""
    desk.import_rows([["jane@example.com", "Jane", "Riga"]])
    mailout = desk.json("mailout", "create", letter(desk, plain()))["id"]
    content = "email\nnobody\nanna@example.com\n"
    people = desk.folder / "people.csv"
    people.write_text(content)
    (desk.folder / "link.csv").symlink_to(people)
    ledger = desk.database_url.removeprefix("sqlite:///")
    import_, report = ["subscribers", "import", "people.csv"], ["mailout", "report", mailout]
    for command, what in (
        ([*import_, "--rejects", "./people.csv"], "the file to read"),
        ([*import_, "--rejects", "link.csv"], "the file to read"),
        ([*import_, "--rejects", ledger], "the database"),
        (["subscribers", "export", "-o", ledger], "the database"),
        (["subscribers", "export", "-o", ledger + "-wal"], "the database"),
        ([*report, "--csv", ledger], "the database"),
        ([*report, "--errors-csv", ledger], "the database"),
        ([*report, "--csv", "new.csv", "--errors-csv", "./new.csv"], "the other output too"),
    ):
        said = told(desk, *command, code=USAGE)
        assert f"is {what}: writing would destroy it" in said
        assert said.count("\n") == 1
    assert people.read_text() == content
    assert not (desk.folder / "new.csv").exists()
    assert desk.json("subscribers", "list")["counts"] == {"active": 1}
    desk.run(*report, "--csv", "/dev/null", "--errors-csv", "/dev/null")


def test_opt_outs_in_an_encoding_that_is_not_found_out(desk: Desk) -> None:
    """The hint that the refusal gives is one that can be followed."""
    lines = "email,name\njose@example.com,José Muñoz Peña\n"
    (desk.folder / "out.csv").write_bytes(lines.encode("latin-1"))
    assert "--encoding" in told(desk, "suppression", "import", "out.csv", code=USAGE)
    assert desk.json("suppression", "import", "out.csv", "--encoding", "latin-1")["added"] == 1


def test_an_erased_person_is_shown_as_erased(desk: Desk) -> None:
    desk.import_rows([["jane@example.com", "Jane", "Riga"]])
    desk.send()
    desk.run("erase", "jane@example.com", "--yes")
    shown = desk.run("show", "jane@example.com")
    assert "jane@example.com was erased on" in shown
    assert "Only a keyed hash is left" in shown
    assert "not among the subscribers" not in shown
    assert "Nothing is known of john@example.com" in desk.run("show", "john@example.com")


# -- tables ----------------------------------------------------------------------------------------


def on_a_screen(desk: Desk, columns: int, *arguments: str) -> str:
    """What a terminal of that width shows."""
    ours, theirs = pty.openpty()
    environment = {**desk.environment, "COLUMNS": str(columns), "TERM": "dumb", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "sendonce", *arguments]
    with subprocess.Popen(command, env=environment, cwd=desk.folder, stdout=theirs, stdin=theirs) as running:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux: EIO once the other end is closed
                break
            if not piece:
                break
            shown += piece
        running.wait(20)
    os.close(ours)
    return shown.decode()


def test_no_table_cuts_off_what_one_needs(desk: Desk) -> None:
    """80 columns show every address whole, and of ids enough to name them; in a pipe a row is one line."""
    address = "a.very.long.name.indeed.of.somebody@subdomain.of.an.example.com"
    desk.import_rows([[address, "Somebody with a name of some length", "Riga"]])
    desk.send()
    desk.run("suppression", "add", address, "--note", "by a telephone call that took a while")
    (mailout,) = desk.json("mailout", "list")
    (job,) = desk.json("jobs", "list")
    for command, whole in (
        (["mailout", "list"], mailout["id"][:13]),
        (["jobs", "list"], job["id"]),
        (["subscribers", "list"], ""),
        (["suppression", "list"], ""),
        (["settings"], ""),
    ):
        screen = on_a_screen(desk, 80, *command)
        assert "…" not in screen, screen
        assert max(len(line) for line in screen.splitlines()) <= 80
        assert whole in screen
    for command in (["jobs", "list"], ["subscribers", "list"], ["suppression", "list"]):
        assert re.search(rf"^│.*{re.escape(address)}.*│$", desk.run(*command), re.MULTILINE)


def test_tables_go_by_the_clock_of_the_house(desk: Desk) -> None:
    """APP_TIMEZONE's, which the table names; programs get UTC. One of a kind is not called several."""
    desk.environment["APP_TIMEZONE"] = "Asia/Tokyo"
    desk.import_rows([["jane@example.com", "Jane", "Riga"]])
    desk.send()
    desk.run("suppression", "add", "eve@example.com")
    for command, title in (
        (["subscribers", "list"], "1 subscriber "),
        (["suppression", "list"], "1 suppression "),
        (["mailout", "list"], "Mailouts "),
        (["workers", "list", "--all"], "1 worker "),
    ):
        found = desk.json(*command)
        (row,) = found["subscribers"] if isinstance(found, dict) else found
        moment = datetime.fromisoformat(row.get("created_at") or row["started_at"])
        assert moment.utcoffset() == timedelta(0)
        shown = desk.run(*command)
        assert f"{moment.astimezone(ZoneInfo('Asia/Tokyo')):%Y-%m-%d %H:%M:%S}" in shown
        assert "Times are those of Asia/Tokyo." in shown
        assert shown.startswith(title)
    assert desk.run("jobs", "list").startswith("1 job ")
    assert "(Asia/Tokyo)" in desk.run("show", "jane@example.com")


def test_notion_pages_name_mailouts_in_every_command(desk: Desk) -> None:
    """A page that has no mailout here is not found, whichever command is asked."""
    page = "https://www.notion.so/acme/News-0123456789abcdef0123456789abcdef"
    desk.environment["UNSUBSCRIBE_SECRET"] = "long enough to be a secret"
    checks: Any = json.loads(desk.run("doctor", "--mailout", page, "--json", code=REFUSED))["checks"]
    (mailout,) = [check for check in checks if check["name"] == "mailout"]
    assert mailout["verdict"] == "stop"
