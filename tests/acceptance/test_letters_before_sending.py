"""What one does to a letter before it is sent: mend it, look at it, throw it away, give it images."""

from __future__ import annotations

import json
import re
import stat
from base64 import b64decode
from contextlib import closing
from datetime import datetime
from html import unescape
from pathlib import Path

import pytest

from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from tests.acceptance.test_cli_refusals import FAILED, REFUSED, USAGE, letter, plain, told
from tests.acceptance.test_threats_people import Desk, desk
from tests.conformance.stage import ACCEPTED, LETTER, NOBODY, Stage

__all__ = ["desk"]

PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def mailout(desk: Desk, **kwargs: object) -> str:
    """A ready mailout to three people, made without a process of its own."""
    with closing(open_store(desk.database_url)) as store:
        stage = Stage(store)
        stage.subscribe(range(3))
        return stage.new_mailout(**kwargs).id


def sent(desk: Desk) -> str:
    """A mailout that went to one of three, and was cancelled."""
    with closing(open_store(desk.database_url)) as store:
        stage = Stage(store)
        mailout_id = stage.running(3)
        stage.settle(stage.claim_one(), ACCEPTED)
        store.dispatches.cancel(mailout_id)
        store.dispatches.cancel_chunk(mailout_id, 10)
        store.dispatches.complete(mailout_id)
        return mailout_id


def test_a_typo_is_mended_and_a_sent_letter_is_not(desk: Desk) -> None:
    """The id stays; what has been sent is refused with its state."""
    ready, over = mailout(desk), sent(desk)
    file = letter(desk, plain(subject="Mended"))
    shown = desk.json("mailout", "update", ready, file)
    assert (shown["id"], shown["status"], shown["subject"]) == (ready, "ready", "Mended")
    said = told(desk, "mailout", "update", over, file, code=REFUSED)
    assert "cancelled (sent in part): a letter that has been sent cannot be changed" in said


def test_a_page_of_notion_is_mended_there(desk: Desk) -> None:
    page = mailout(desk, source="notion", source_id=NOBODY, letter=None)
    said = told(desk, "mailout", "update", page, letter(desk, plain()), code=REFUSED)
    assert "mend it there" in said


def test_a_mailout_that_is_not_sent_can_be_deleted(desk: Desk) -> None:
    ready, over = mailout(desk, draft=True), sent(desk)
    assert "Deleted" in desk.run("mailout", "delete", ready)
    told(desk, "mailout", "status", ready, code=FAILED)
    assert "stays in the books" in told(desk, "mailout", "delete", over, code=REFUSED)


def test_a_preview_shows_headers_and_both_parts_and_sends_nothing(desk: Desk) -> None:
    """As one subscriber would get it; the file is its owner's alone, and takes the place of a link."""
    named = LETTER.__class__("Hi {{ name }}", "", "<p><b>{{ name }}</b></p>", "Dear {{ name }}")
    ready = mailout(desk, letter=named)
    folder = desk.folder / "state" / "previews"
    folder.mkdir(parents=True)
    (desk.folder / "precious").write_text("mine")
    (folder / f"{ready}.html").symlink_to(desk.folder / "precious")
    shown = desk.json("mailout", "preview", ready, "--as", "user0001@example.com")
    assert (shown["subject"], shown["as"]) == ("Hi User 1", "user0001@example.com")
    file = Path(shown["file"])
    page = file.read_text(encoding="utf-8")
    assert not file.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (desk.folder / "precious").read_text() == "mine"
    for part in ("Dear User 1", "List-Unsubscribe", "&lt;b&gt;User 1&lt;/b&gt;", 'sandbox=""'):
        assert part in page
    assert not (desk.folder / "maildir").exists()
    assert desk.json("mailout", "status", ready)["counts"]["planned"] == 0
    link = re.search(r"http[^\s<>\"]*token=[\w-]+", unescape(page))
    assert link is not None
    with closing(open_store(desk.database_url)) as store:
        assert list(store.keys.link_secrets()) == []
    assert "is no subscriber" in told(desk, "mailout", "preview", ready, "--as", "x@example.com", code=FAILED)


def test_a_preview_says_where_there_is_no_browser(desk: Desk) -> None:
    """A server has none: the preview is written, and its reader is not left waiting for a window."""
    ready = mailout(desk)
    desk.environment["PATH"] = str(desk.folder)
    assert "No browser could be opened" in told(desk, "mailout", "preview", ready, "--open", code=0)


def test_a_letter_that_went_out_is_pointed_out(desk: Desk) -> None:
    """When, to how many, and how to write to the others only. It is a warning."""
    desk.environment["APP_TIMEZONE"] = "UTC"
    file = letter(desk, plain())
    desk.import_rows([["jane@example.com", "Jane", "Riga"]])
    first = desk.json("mailout", "create", file)
    assert first["warnings"] == []
    desk.run("mailout", "send", first["id"])
    second = desk.json("mailout", "create", file)
    (warning,) = second["warnings"]
    assert desk.json("mailout", "update", second["id"], file)["warnings"] == [warning]
    when = datetime.fromisoformat(desk.json("mailout", "status", first["id"])["started_at"])
    assert f"went out already: mailout {first['id']}, {when:%Y-%m-%d %H:%M} (UTC)" in warning
    assert "to 1 person" in warning
    assert f"--except-recipients-of {first['id']}" in warning


def test_the_rest_is_written_to(desk: Desk) -> None:
    """After a cancelled mailout the others get the letter, and the report says why one did not."""
    over, new = sent(desk), mailout(desk)
    shown = desk.json("mailout", "send", new, "--except-recipients-of", over[:20])
    assert (shown["counts"]["sent"], shown["counts"]["skipped"]) == (2, 1)
    assert f"got mailout {over}" in desk.run("jobs", "list", "--mailout", new, "--state", "skipped")
    told(desk, "mailout", "send", mailout(desk), "--except-recipients-of", NOBODY, code=FAILED)
    nobody = told(
        *(desk, "mailout", "send", mailout(desk)),
        *("--except-recipients-of", over, "--except-recipients-of", new),
        code=REFUSED,
    )
    assert "there is nobody to write to" in nobody


def test_the_beginning_of_an_id_is_enough(desk: Desk) -> None:
    """Where it names one; several are listed, and one that is too short is called so."""
    first, second = mailout(desk), mailout(desk)
    assert desk.json("mailout", "status", first[:30])["id"] == first
    said = told(desk, "mailout", "status", first[:8], code=USAGE)
    assert "Several mailouts begin with" in said
    assert first in said
    assert second in said
    assert "at least 6 characters" in told(desk, "mailout", "status", first[:5], code=FAILED)


def test_images_beside_the_letter_are_taken_along(desk: Desk) -> None:
    """Those in its folder only, and only images; the others are named and left out."""
    (desk.folder / "pics").mkdir()
    (desk.folder / "pics" / "our bread.png").write_bytes(PNG)
    (desk.folder / "secret.png").write_text("-----BEGIN PRIVATE KEY-----")
    (desk.folder.parent / f"{desk.folder.name}-outside.png").write_bytes(PNG)
    (desk.folder / "linked.png").symlink_to(desk.folder.parent / f"{desk.folder.name}-outside.png")
    body = "![bread](<pics/our bread.png>)\n\n![a](secret.png)\n\n![b](linked.png)\n\n![c](none.png)"
    created = desk.json("mailout", "create", letter(desk, plain(body=body)))
    assert len(created["warnings"]) == 3, created
    for part in (
        "'secret.png' is left out: it is not a PNG",
        "'linked.png' is left out: it is not in the letter's",
    ):
        assert part in json.dumps(created["warnings"])
    with closing(open_store(desk.database_url)) as store:
        html = store.mailouts.letter(created["id"]).html
        (address,) = re.findall(r'<img src="([^"]+)"', html)
        kept = store.assets.get(address.rpartition("/")[2])
        assert kept == ("image/png", PNG)
        assert store.subscribers.count(DEFAULT_TENANT) == {}


@pytest.mark.parametrize("arguments", [["--version"], ["-h"], ["mailout", "-h"], ["mailout", "send", "-h"]])
def test_what_every_user_tries_first(desk: Desk, arguments: list[str]) -> None:
    """The version, and help that is not cut off."""
    desk.environment["COLUMNS"] = "80"
    said = desk.run(*arguments)
    assert said.startswith(("sendonce ", "Usage: "))
    assert "..." not in said.replace("[ARGS]...", "")


def test_doubt_that_is_left_ends_with_exit_code_1(desk: Desk) -> None:
    """And a line that says what to do."""
    with closing(open_store(desk.database_url)) as store:
        stage = Stage(store)
        mailout_id = stage.running(1)
        stage.in_doubt()
    assert "In doubt: 1." in told(desk, "mailout", "send", mailout_id, code=FAILED)
