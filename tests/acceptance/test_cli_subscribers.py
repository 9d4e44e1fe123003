"""Lists, reports and one person's data, as a user works with them: the command line in its own process."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.nursery import run_program

Run = Callable[..., subprocess.CompletedProcess[str]]

LETTER = "---\nsubject: Hello\n---\nHello, {{ name | default: 'friend' }}!\n"


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def sendonce(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Runs a command on each kind of database, in a folder of its own, with nothing leaving the machine."""
    url: str = request.getfixturevalue(request.param)
    keep = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    settings = {
        "DATABASE_URL": url,
        "STATE_DIR": str(tmp_path / "state"),
        "MAILDIR_PATH": str(tmp_path / "mail"),
    }

    def run(*words: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        given = {**keep, **settings, "TRANSPORT": "maildir", "RATE_LIMIT_PER_SEC": "1000", **environment}
        done = run_program(words, given, tmp_path)
        assert done.returncode == code, done.stderr
        return done

    return run


def told(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


LIST = """E-mail;Имя;Город
ivan@example.com;Иван;"=HYPERLINK(""http://x"")"
bad address;Б;
@x;-1;
olga@example.com;;
"""


def test_a_list_goes_in_and_comes_out(sendonce: Run, tmp_path: Path) -> None:
    """A cp1251 export is imported, its bad lines are kept in a file, and the export carries no formula."""
    (tmp_path / "list.csv").write_bytes(LIST.encode("cp1251"))
    dry = told(sendonce("subscribers", "import", "list.csv", "--dry-run", "--json"))
    assert (dry["inserted"], dry["invalid"], dry["rejects"]) == (2, 2, None)
    assert not (tmp_path / "list.csv.rejects.csv").exists()
    report = told(sendonce("subscribers", "import", "list.csv", "--json"))
    assert {**report, "dry_run": True, "rejects": None} == dry
    rejects = table((tmp_path / "list.csv.rejects.csv").read_text("utf-8"))
    assert [(row["line"], row["E-mail"], row["Имя"]) for row in rejects] == [
        ("3", "bad address", "Б"),
        ("4", "'@x", "'-1"),
    ]
    again = sendonce("subscribers", "import", "list.csv", "--map", "email=E-mail,name=Имя,town=Город")
    assert again.stdout.endswith("0 added, 1 updated, 1 unchanged, 0 duplicate, 2 invalid.\n")
    assert "line 3: " in again.stdout
    sendonce("subscribers", "export", "--status", "active", "-o", "out.csv")
    exported = (tmp_path / "out.csv").read_text("utf-8")
    assert [row["town"] for row in table(exported)] == ['\'=HYPERLINK("http://x")', ""]
    assert '"ivan@example.com","Иван","active"' in exported
    assert sendonce("subscribers", "export", "--status", "bounced").stdout.count("\n") == 1


def test_an_export_comes_in_as_it_was(sendonce: Run, tmp_path: Path) -> None:
    """What was put in front of formulas is taken off and nothing else; no two columns have one title."""
    people = [
        ["email", "name", "phone", "Status", "created at", "note"],
        ["=ann@example.com", "'quoted'", "+7 900", "VIP", "May", "'=1"],
        ["bob@example.com", "-", "'7", "", "", "''+\n=2"],
    ]
    with (tmp_path / "list.csv").open("w", newline="") as file:
        csv.writer(file).writerows(people)
    sendonce("subscribers", "import", "list.csv", "--ignore-column", "status")
    sendonce("subscribers", "export", "-o", "out.csv")
    header = (tmp_path / "out.csv").read_text("utf-8-sig").splitlines()[0].replace('"', "").split(",")
    assert header[5:] == ["consent", "attribute created_at", "note", "phone", "attribute status"]

    there = {"DATABASE_URL": f"sqlite:///{tmp_path}/other.db", "STATE_DIR": str(tmp_path / "other")}
    assert told(sendonce("subscribers", "import", "out.csv", "--json", **there))["inserted"] == 2
    here, copied = (
        [(p["email"], p["name"], p["attributes"]) for p in told(listed)["subscribers"]]
        for listed in (
            sendonce("subscribers", "list", "--json"),
            sendonce("subscribers", "list", "--json", **there),
        )
    )
    assert here == copied
    assert {name for _, name, _ in here} == {"'quoted'", "-"}


def test_opt_outs_go_along_to_another_database(sendonce: Run, tmp_path: Path) -> None:
    """An export of ours carries them over by itself; so do the suppressions."""
    people = "email,name\nann@example.com,Ann\nbob@example.com,Bob\n+eve@example.com,Eve\n"
    (tmp_path / "list.csv").write_text(people)
    for address in ("bob@example.com", "+eve@example.com"):
        sendonce("suppression", "add", address, "--note", "said so,\nby phone")
    sendonce("subscribers", "import", "list.csv")
    sendonce("subscribers", "export", "-o", "out.csv")
    (tmp_path / "suppressed.csv").write_text(sendonce("suppression", "export").stdout)

    there = {"DATABASE_URL": f"sqlite:///{tmp_path}/other.db", "STATE_DIR": str(tmp_path / "other")}
    report = told(sendonce("subscribers", "import", "out.csv", "--json", **there))
    assert (report["inserted"], report["unsubscribed"], report["invalid"]) == (3, 2, 0)
    listed = told(sendonce("subscribers", "list", "--json", **there))
    assert listed["counts"] == {"active": 1, "unsubscribed": 2}
    ann = told(sendonce("show", "ann@example.com", "--json", **there))["subscribers"][0]
    assert (ann["status"], ann["attributes"]) == ("active", {})
    carried = told(sendonce("suppression", "import", "suppressed.csv", "--json", **there))
    assert (carried["added"], carried["known"], carried["invalid"]) == (0, 2, 0)
    sendonce("subscribers", "import", "list.csv", **there)
    listed = told(sendonce("subscribers", "list", "--json", **there))
    assert listed["counts"] == {"active": 1, "unsubscribed": 2}


def test_what_is_wrong_with_an_import_is_told(sendonce: Run, tmp_path: Path) -> None:
    """A missing file, an unknown column and a wrong --map: exit code 2, with a way out."""
    (tmp_path / "list.csv").write_text("who,what\na,b\n")
    assert "Cannot read 'nowhere.csv'" in sendonce("subscribers", "import", "nowhere.csv", code=2).stderr
    assert "--map email=" in sendonce("subscribers", "import", "list.csv", code=2).stderr
    assert "must be like" in sendonce("subscribers", "import", "list.csv", "--map", "email", code=2).stderr


def test_a_list_with_unclear_states_changes_nothing(sendonce: Run, tmp_path: Path) -> None:
    """Exit code 3 before anything is written; what the answer says to add is then enough."""
    (tmp_path / "list.csv").write_text("email,status\nann@example.com,gold\nbob@example.com,gone\n")
    asked = sendonce("subscribers", "import", "list.csv", code=3).stderr
    assert '--status-column "status" --status "gold=unsubscribed"' in asked
    assert told(sendonce("subscribers", "list", "--json"))["counts"] == {}
    meaning = ("--status-column", "status", "--status", "GOLD=active", "--status", "gone=unsubscribed")
    report = told(sendonce("subscribers", "import", "list.csv", *meaning, "--json"))
    assert (report["inserted"], report["unsubscribed"], report["deactivated"]) == (2, 1, 0)
    (tmp_path / "list.csv").write_text("email,tier\neve@example.com,none\n")
    meaning = ("--status-column", "tier", "--status", "none=unsubscribed")
    assert told(sendonce("subscribers", "import", "list.csv", *meaning, "--json"))["unsubscribed"] == 1
    (tmp_path / "list.csv").write_text("email,Unsubscribed\nann@example.com,2024-05-01\n")
    said = sendonce("subscribers", "import", "list.csv").stdout
    assert "1 is unsubscribed and 0 bounced: they get no letters. 1 of them was active" in said
    assert told(sendonce("subscribers", "list", "--json"))["counts"] == {"unsubscribed": 3}
    assert "one of active," in sendonce("subscribers", "import", "list.csv", "--status", "x=y", code=2).stderr


def test_one_person_is_added(sendonce: Run, tmp_path: Path) -> None:
    """Consent is shown and exported, and comes in again; an opt-out is refused with the reason."""
    added = told(
        sendonce("subscribers", "add", "Ann@Example.com", "--name", "Ann", "--consent", "fair 2026", "--json")
    )
    assert (added["outcome"], added["email"], added["status"]) == ("added", "Ann@example.com", "active")
    assert "consent: fair 2026" in sendonce("show", "ann@example.com").stdout
    sendonce("subscribers", "export", "-o", "out.csv")
    there = {"DATABASE_URL": f"sqlite:///{tmp_path}/other.db", "STATE_DIR": str(tmp_path / "other")}
    sendonce("subscribers", "import", "out.csv", **there)
    ann = told(sendonce("show", "ann@example.com", "--json", **there))["subscribers"][0]
    assert (ann["consent"], ann["attributes"]) == ("fair 2026", {})
    known = sendonce("subscribers", "add", "ann@example.com")
    assert (known.stderr, "already" in known.stdout) == ("", True)
    sendonce("suppression", "add", "bob@example.com", "--note", "asked by phone")
    refusal = sendonce("subscribers", "add", "bob@example.com", code=3).stderr
    assert "(manual, since " in refusal
    assert "asked by phone" in refusal
    (tmp_path / "left.csv").write_text("email,Unsubscribed\neve@example.com,2024-05-01\n")
    sendonce("subscribers", "import", "left.csv")
    sendonce("suppression", "remove", "eve@example.com")
    assert "left this list" in sendonce("subscribers", "add", "eve@example.com", code=3).stderr
    assert "again" in sendonce("subscribers", "add", "eve@example.com", "--consent", "wrote in May").stdout
    assert "line break" in sendonce("subscribers", "add", "cyd@example.com", "--name", "a\nb", code=2).stderr
    assert sendonce("erase", "ann@example.com", "--yes").stderr == ""
    assert "fair 2026" not in sendonce("show", "ann@example.com", "--json").stdout


def test_opt_outs_are_imported_with_their_reasons(sendonce: Run, tmp_path: Path) -> None:
    """From any column; the counts come last, and a line that is no address makes it a failure."""
    (tmp_path / "out.csv").write_text(
        "id,Email,Reason\n1,ann@example.com,bounced\n2,bob@example.com,spam\n3,who,x\n"
    )
    said = sendonce("suppression", "import", "out.csv", code=1).stdout
    assert "line 4: " in said
    assert said.endswith("2 added, 0 were there already, 1 invalid.\n")
    listed = told(sendonce("suppression", "list", "--json"))
    assert {item["address"]: item["reason"] for item in listed} == {
        "ann@example.com": "bounce",
        "bob@example.com": "complaint",
    }
    again = told(sendonce("suppression", "import", "out.csv", "--json", code=1))
    assert (again["added"], again["known"], again["invalid_lines"][0]["line"]) == (0, 2, 4)


def test_rejected_lines_are_mended_and_imported(sendonce: Run, tmp_path: Path) -> None:
    """The file of rejects has the columns of the list: correct it there, and import it."""
    lines = ['ann@example,"Ann\nLee",-1', "bob@example.com,Bob,x,y,z", "ok@example.com,Ok,7"]
    (tmp_path / "list.csv").write_text("\n".join(["Contact,name,points", *lines]) + "\n")
    assert (
        told(sendonce("subscribers", "import", "list.csv", "--map", "email=Contact", "--json"))["invalid"]
        == 2
    )
    rejects = tmp_path / "list.csv.rejects.csv"
    assert rejects.stat().st_mode & 0o777 == 0o600
    text = rejects.read_text("utf-8-sig")
    assert text.splitlines()[0] == '"line","reason","Contact","name","points"'
    rejects.write_text(
        text.replace('ann@example"', 'ann@example.com"')
        .replace('"x","y","z"', '"x"')
        .replace("Ann\n", "Ann ")
    )
    report = told(sendonce("subscribers", "import", rejects.name, "--map", "email=Contact", "--json"))
    assert (report["inserted"], report["invalid"]) == (2, 0)
    ann = told(sendonce("show", "ann@example.com", "--json"))["subscribers"][0]
    assert (ann["name"], ann["attributes"]) == ("Ann Lee", {"points": "-1"})


def test_outputs_follow_no_link(sendonce: Run, tmp_path: Path) -> None:
    """Neither rejects nor exports are written through a symbolic link; they are their owner's to read."""
    sendonce("db", "upgrade")
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "list.csv.rejects.csv").symlink_to(tmp_path / "victim")
    for lines in ("ann@example.com\nnobody\n", "ann@example.com\n"):  # seen before the first bad line is
        (tmp_path / "list.csv").write_text(f"email\n{lines}")
        assert "symbolic link" in sendonce("subscribers", "import", "list.csv", code=2).stderr
    assert told(sendonce("subscribers", "list", "--json"))["counts"] == {}
    (tmp_path / "out.csv").symlink_to(tmp_path / "victim")
    assert "symbolic link" in sendonce("subscribers", "export", "-o", "out.csv", code=2).stderr
    assert (tmp_path / "victim").read_text() == "precious"
    assert '"email"' in sendonce("subscribers", "export", "-o", "/dev/stdout").stdout


def test_a_workbook_is_answered_with_a_way_out(sendonce: Run, tmp_path: Path) -> None:
    """.xlsx, .xls and archives: the answer says what to do instead of naming an encoding."""
    with zipfile.ZipFile(tmp_path / "list.xlsx", "w") as book:
        book.writestr("[Content_Types].xml", "<Types/>")
        book.writestr("xl/workbook.xml", "<workbook/>")
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("members.csv", "email\nann@example.com\n")
    (tmp_path / "old.xls").write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(512))
    for command in ("subscribers", "suppression"):
        for name in ("list.xlsx", "old.xls"):
            assert "CSV UTF-8" in sendonce(command, "import", name, code=2).stderr
        assert "unpack it" in sendonce(command, "import", "export.zip", code=2).stderr


def test_a_title_with_a_comma_can_be_mapped(sendonce: Run, tmp_path: Path) -> None:
    """In one --map or in several; a comma begins a pair where a name and an equals sign follow."""
    (tmp_path / "list.csv").write_text('Кому;"Имя, фамилия";"Город, страна"\nann@example.com;Ann;Riga\n')
    for words in (
        ["--map", "name=Имя, фамилия,town=Город, страна,email=Кому"],
        ["--map", "email=Кому,name=Имя, фамилия", "--map", "town=Город, страна"],
    ):
        report = told(sendonce("subscribers", "import", "list.csv", *words, "--json"))
        assert (report["updated"], report["invalid"]) == (0, 0)
    (ann,) = told(sendonce("subscribers", "list", "--json"))["subscribers"]
    assert (ann["name"], ann["attributes"]) == ("Ann", {"town": "Riga"})


def test_a_mailout_is_reported_and_a_person_forgotten(sendonce: Run, tmp_path: Path) -> None:
    """The report names each recipient; show tells why; erase takes the person out of all of it."""
    (tmp_path / "list.csv").write_text("email,name\nann@example.com,Ann\nbob@example.com,Bob\n")
    (tmp_path / "letter.md").write_text(LETTER)
    sendonce("subscribers", "import", "list.csv")
    sendonce("suppression", "add", "bob@example.com")
    mailout = told(sendonce("mailout", "create", "letter.md", "--json"))["id"]
    sendonce("mailout", "send", mailout, "--json")

    both = ("--csv", "all.csv", "--errors-csv", "errors.csv")
    report = told(sendonce("mailout", "report", mailout, *both, "--json"))
    assert report["counts"]["planned"] == report["csv_rows"] == 2
    assert report["errors_csv_rows"] == 0
    rows = {row["recipient"]: row for row in table((tmp_path / "all.csv").read_text("utf-8"))}
    assert rows["ann@example.com"]["outcome"] == "sent"
    assert rows["ann@example.com"]["settled_at"]
    assert (rows["bob@example.com"]["outcome"], rows["bob@example.com"]["reason"]) == (
        "skipped",
        "suppressed",
    )
    assert "█" in sendonce("mailout", "report", mailout, PYTHONIOENCODING="utf-8").stdout

    bob = told(sendonce("show", "BOB+x@example.com", "--json"))
    assert bob["letters"][0]["why"] == "not sent: the address was suppressed"
    assert "not sent: the address was suppressed" in sendonce("show", "bob@example.com", COLUMNS="200").stdout

    assert "--yes" in sendonce("erase", "ann@example.com", code=2).stderr
    kept = tmp_path / "state" / "reports" / f"{mailout}.csv"
    stale = kept.read_text("utf-8")
    assert "ann@example.com" in stale
    erased = told(sendonce("erase", "Ann@Example.com", "--yes", "--json"))
    assert (erased["letters"], erased["reports"]) == (1, 1)
    assert "ann@" not in kept.read_text("utf-8")
    assert len(table(kept.read_text("utf-8"))) == 2
    kept.write_text(stale)  # as on another machine, whose reports nobody has seen to yet
    assert "written anew without the address: 1" in sendonce("erase", "ann@example.com", "--yes").stdout
    assert "ann@" not in kept.read_text("utf-8")
    imported = told(sendonce("subscribers", "import", "list.csv", "--json", UNSUBSCRIBE_SECRET="another one"))
    assert imported["inserted"] == 1
    ann = told(sendonce("show", "ann@example.com", "--json"))
    assert [person["status"] for person in ann["subscribers"]] == ["unsubscribed"]
    assert ann["letters"][0]["job"]["recipient"].startswith("erased:")
    sendonce("mailout", "report", mailout, "--csv", "all.csv")
    assert "ann@" not in (tmp_path / "all.csv").read_text("utf-8")


def test_somebody_unknown(sendonce: Run) -> None:
    """Is said to be unknown; what is no address is refused."""
    sendonce("db", "upgrade")
    assert sendonce("show", "nobody@example.com").stdout == "Nothing is known of nobody@example.com.\n"
    assert "no @" in sendonce("show", "nobody", code=2).stderr


def test_the_version_tells_the_schema_that_it_needs(sendonce: Run) -> None:
    """So that somebody can tell whether two versions may share a database."""
    told = json.loads(sendonce("version", "--json").stdout)
    assert set(told) == {"version", "schema"}
    assert told["schema"] in sendonce("version").stdout
