"""The log: one event a line, no secrets, whatever the values are."""

from __future__ import annotations

import io
import json
import logging
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.domain.engine.dispatches import DispatchResult
from sendonce.domain.engine.jobs import Settlement, Turn
from sendonce.domain.engine.outcomes import Accepted
from sendonce.domain.engine.tenants import DispatchId
from sendonce.entrypoints.log_files import RotatingFile, Sampler
from sendonce.entrypoints.logs import Redactor, configure_logging
from sendonce.errors import BadSetting
from sendonce.flows.engine.batch_log import BatchLog, EndLog
from sendonce.settings import load_settings

logger = logging.getLogger("sendonce.tests.logs")
SECRET = "s3cr3t/of+ours=="
MOST_BYTES = 64_000
"""That 10,000 letters leave in the log: docs/how-to/watch-it.md says so."""


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("sendonce")
    before = (root.level, ours.level)
    yield
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    root.setLevel(before[0])
    ours.setLevel(before[1])


def written(write: Callable[[], None], fmt: str = "json", **options: Any) -> str:
    out = io.StringIO()
    for foreign in [it for it in logging.getLogger().handlers if "sendonce" not in type(it).__module__]:
        logging.getLogger().removeHandler(foreign)  # pytest's own, which raises what ours must swallow
    configure_logging(options.pop("level", "info"), fmt, options.pop("file", None), stream=out, **options)
    write()
    return out.getvalue()


def event_of(write: Callable[[], None], **options: Any) -> dict[str, Any]:
    lines = written(write, **options).splitlines()
    assert len(lines) == 1
    event: dict[str, Any] = json.loads(lines[0])
    return event


def test_a_json_event_has_its_time_level_logger_text_and_fields() -> None:
    """One line is one JSON object, Cyrillic readable as it is."""
    line = written(lambda: logger.info("mailout planned", extra={"fields": {"имя": "Письмо", "planned": 3}}))
    event = json.loads(line)
    assert (event["level"], event["logger"], event["event"]) == ("info", logger.name, "mailout planned")
    assert (event["имя"], event["planned"], event["pid"]) == ("Письмо", 3, os.getpid())
    assert event["time"].endswith("+00:00")
    assert "Письмо" in line


def test_a_console_line_reads_well_and_has_no_colours_in_a_pipe() -> None:
    """Plain words are bare, everything else is quoted."""
    line = written(
        lambda: logger.warning("mailout %s", "paused", extra={"fields": {"mailout": "m1", "why": "by hand"}}),
        "console",
    )
    assert line.endswith('warning  mailout paused mailout=m1 why="by hand"\n')
    assert "\x1b" not in line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("colours", "coloured"), [(True, True), (False, False)])
def test_colours_are_for_a_terminal_that_wants_them(colours: bool, coloured: bool) -> None:
    """NO_COLOR is passed on as colours=False."""
    out = Terminal()
    configure_logging("info", "", None, stream=out, colours=colours)
    logger.info("hello")
    assert ("\x1b[" in out.getvalue()) is coloured


HOSTILE = "ok\n2026-01-01 INFO all is well\r\x1b[2J\x9b1m\u2028\u202e\x00\ud800"


@pytest.mark.parametrize("fmt", ["json", "console"])
def test_a_value_cannot_forge_a_line_or_move_the_cursor(fmt: str) -> None:
    """Text, keys, values and nested values from outside stay on their line, escaped."""
    line = written(
        lambda: logger.info(
            "said %s", HOSTILE, extra={"fields": {HOSTILE: HOSTILE, "deep": [{"x": HOSTILE}]}}
        ),
        fmt,
    )
    assert len(line.splitlines()) == 1
    assert line.rstrip("\n").isprintable()
    line.encode()


def test_json_gives_a_hostile_value_back_exactly() -> None:
    """Escaped is not lost: what json reads is what was logged."""
    assert event_of(lambda: logger.info("x", extra={"fields": {"reply": HOSTILE}}))["reply"] == HOSTILE


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=8), st.recursive(st.text() | st.floats() | st.binary(), st.lists, max_leaves=4)
    )
)
def test_any_fields_make_one_printable_line(fields: dict[str, Any]) -> None:
    """For all values, in both formats."""
    for fmt in ("json", "console"):
        line = written(lambda: logger.info("x", extra={"fields": fields}), fmt)
        assert line.endswith("\n")
        assert line[:-1].isprintable() or not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in line[:-1])
        assert len(line.splitlines()) == 1


@pytest.mark.parametrize("fmt", ["json", "console"])
@pytest.mark.parametrize(
    "form", [SECRET, "s3cr3t%2Fof%2Bours%3D%3D", f"a {SECRET} in a text", f"'{SECRET}'", SECRET.encode()]
)
def test_a_known_secret_is_masked_wherever_it_is(fmt: str, form: str | bytes) -> None:
    """In the text, in a field, in a key, in a list, percent-encoded, in bytes and in an exception."""

    def write() -> None:
        try:
            raise ValueError(form)
        except ValueError:
            logger.exception(
                "said %s", form, extra={"fields": {str(form): 1, "reply": form, "all": [{"x": form}]}}
            )

    line = written(write, fmt, secrets=[SECRET, ""])
    assert "s3cr3t" not in line
    assert "ValueError: " in line
    assert "••••" in line


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer planted-value-1234",
        "GET /unsubscribe?token=planted-value-1234 HTTP/1.1",
        "password='planted-value-1234'",
        '{"api_key": "planted-value-1234"}',
        "postgresql://user:planted-value-1234@host/db",
        "https://x/?X-Amz-Signature=planted-value-1234&y=1",
    ],
)
def test_what_looks_like_a_secret_is_masked_though_nobody_knew_it(text: str) -> None:
    """Other people's tokens come in requests and replies."""
    assert "planted" not in written(lambda: logger.info(text, extra={"fields": {"line": text}}))


@pytest.mark.parametrize(
    "key",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "sk-proj-0123456789abcdefXYZ",
        "ntn_0123456789abcdefXYZ",
        "123456789:" + "Ab1" * 12,
    ],
)
def test_keys_with_a_known_shape_are_masked(key: str) -> None:
    """AWS, OpenAI, Notion, Telegram."""
    assert key not in written(lambda: logger.info("reply %s", key))


@pytest.mark.parametrize(
    "key", ["smtp_password", "CRON_SECRET", "claim_token", "Authorization", "openai_api_key"]
)
@pytest.mark.parametrize("value", ["planted", ["planted"], {"a": "planted"}, 123456])
def test_a_field_with_a_secret_name_is_masked_whatever_it_holds(key: str, value: object) -> None:
    """Also deep inside."""
    event = event_of(lambda: logger.info("x", extra={"fields": {key: value, "in": {key: value}}}))
    assert (event[key], event["in"][key]) == ("••••", "••••")


def test_addresses_lose_their_local_part_and_message_ids_do_not() -> None:
    """A log outlives an erasure request; a Message-ID is not a person."""
    fields = {"to": "Ann <ann.smith@example.com>", "message_id": "<abc@mail.example.com>"}
    event = event_of(lambda: logger.info("550 no ann.smith@example.com here", extra={"fields": fields}))
    assert event["to"] == "Ann <a•••@example.com>"
    assert event["event"] == "550 no a•••@example.com here"
    assert event["message_id"] == "<abc@mail.example.com>"


def test_the_key_of_our_own_sender_can_be_copied() -> None:
    key = "smtp/smtp.example.com:587/news@example.com"
    fields = {"sender": key, "after_mending": f"sendonce sender release {key}"}
    event = event_of(lambda: logger.info("the sender is held", extra={"fields": fields}))
    assert {name: event[name] for name in fields} == fields


def test_a_long_value_is_cut_and_a_secret_at_the_cut_is_not_halved() -> None:
    """A reply of a megabyte is a short line, quickly."""
    event = event_of(
        lambda: logger.info("x", extra={"fields": {"reply": "a" * 3_995 + SECRET + "b" * 1_000_000}}),
        secrets=[SECRET],
    )
    assert len(event["reply"]) < 4_100
    assert "s3cr" not in event["reply"]


def test_endless_nesting_is_cut() -> None:
    """A structure that holds itself is no trouble."""
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    assert "…" in written(lambda: logger.info("x", extra={"fields": loop}))


def test_an_exception_is_one_line_for_people_and_whole_in_json() -> None:
    """A person sees what and where; JSON has the traceback."""

    def fail() -> None:
        try:
            raise ValueError("boom\nand more")
        except ValueError:
            logger.exception("turn failed")

    line = written(fail, "console")
    assert len(line.splitlines()) == 1
    assert 'error="ValueError: boom\\nand more"' in line
    assert "test_logs.py" in line
    assert "Traceback (most recent call last)" in event_of(fail)["traceback"]


def test_a_field_cannot_take_the_place_of_the_level_or_the_text() -> None:
    """It gets another name instead."""
    event = event_of(lambda: logger.error("real", extra={"fields": {"event": "fake", "level": "debug"}}))
    assert (event["event"], event["level"], event["event_"], event["level_"]) == (
        "real",
        "error",
        "fake",
        "debug",
    )


def test_the_level_holds_for_us_and_libraries_are_heard_from_warnings_on() -> None:
    """botocore's debug lines would show signed requests."""

    def write() -> None:
        logger.debug("ours")
        logging.getLogger("botocore").debug("theirs")
        logging.getLogger("botocore").warning("their warning")

    events = [json.loads(line)["event"] for line in written(write, level="debug").splitlines()]
    assert events == ["ours", "their warning"]
    assert written(lambda: logger.info("quiet"), level="warning") == ""


def test_the_file_gets_json_lines_beside_the_console_and_keeps_what_it_had(tmp_path: Path) -> None:
    """Appended, in a directory that is made."""
    file = tmp_path / "new" / "sendonce.log"
    assert "hello" in written(lambda: logger.info("hello"), "console", file=file)
    written(lambda: logger.info("again"), "console", file=file)
    assert [json.loads(line)["event"] for line in file.read_text().splitlines()] == ["hello", "again"]
    assert stat.S_IMODE(file.stat().st_mode) & 0o007 == 0


def test_a_file_that_cannot_be_written_is_a_bad_setting(tmp_path: Path) -> None:
    """The variable, the value and the fix."""
    with pytest.raises(BadSetting, match=r"LOG_FILE is '.*': it cannot be written \(Is a directory\)"):
        configure_logging("info", "", tmp_path)


def test_a_malformed_log_call_tells_its_place_and_not_its_arguments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The standard library would print them raw."""
    assert written(lambda: logger.info("%d letters", SECRET)) == ""
    told = capsys.readouterr().err
    assert "test_logs.py" in told
    assert SECRET not in told


def test_the_secrets_of_settings_are_what_the_redactor_takes() -> None:
    """The database password in both its forms, too."""
    ours = load_settings({"DATABASE_URL": "postgres://u:p%40ssw0rd@h/db", "NOTION_TOKEN": "ntn-secret"}, None)
    assert Redactor(ours.secrets()).text("p@ssw0rd p%40ssw0rd ntn-secret") == "•••• •••• ••••"


# -- a log that stays small ----------------------------------------------------------------------


def test_lines_that_repeat_are_sampled_and_counted() -> None:
    """A hundred of a kind in a minute, whatever their fields; other kinds and errors are not touched."""
    now = [0.0]
    sampler = Sampler(lambda: now[0])

    def let_through(text: str, level: int = logging.WARNING) -> logging.LogRecord | None:
        record = logging.LogRecord("sendonce.x", level, "x.py", 1, text, None, None)
        record.fields = {"job": "1"}
        assert sampler.filter(record) == sampler.filter(record), "two handlers see the same lines"
        return record if sampler.filter(record) else None

    assert sum(let_through("put off") is not None for _ in range(10_000)) == 100
    assert let_through("another kind") is not None
    assert all(let_through("broken", logging.ERROR) for _ in range(500))
    now[0] = 60.0
    again = let_through("put off")
    assert again is not None
    assert again.__dict__["fields"] == {"job": "1", "left_out_before": 9_900}


def test_a_full_file_is_rotated(tmp_path: Path) -> None:
    """No line is lost but with the oldest file, and all files keep their rights."""
    file = tmp_path / "log"

    def write() -> None:
        for number in range(60):
            logger.error("line", extra={"fields": {"number": number}})

    written(write, file=file, most_bytes=2_000, keep=3)
    files = [file, *(tmp_path / f"log.{number}" for number in (1, 2, 3))]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert all(each.stat().st_size < 2_500 for each in files)
    numbers = [
        json.loads(line)["number"] for each in reversed(files) for line in each.read_text().splitlines()
    ]
    assert numbers == list(range(numbers[0], 60))
    assert {stat.S_IMODE(each.stat().st_mode) & 0o007 for each in files} == {0}


def test_processes_that_share_a_file_rotate_it_together(tmp_path: Path) -> None:
    """Each has the file open. Whoever finds it full moves it once, and the other one follows."""
    file = tmp_path / "log"
    one, other = (RotatingFile(file, 400, 5) for _ in range(2))
    for number in range(20):
        for handler in (one, other):
            handler.emit(logging.makeLogRecord({"msg": f"{number:03} {'x' * 40}"}))
    one.close()
    other.close()
    texts = [each.read_text() for each in tmp_path.iterdir()]
    assert all(texts)
    assert max(map(len, texts)) <= 500


def test_a_mailout_at_the_usual_rate_leaves_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    """10,000 letters at 6 a second, a letter a batch: a line in ten seconds."""
    batches = BatchLog()
    settled = [Settlement("job", 1, Accepted("id"))]
    turn = Turn(claimed=(), claim_seq=1, settled=1, skipped=0)
    with caplog.at_level(logging.INFO, logger="sendonce"):
        for number in range(10_000):
            batches.note(turn, settled, number / 6)
        batches.tell()
    assert len(caplog.records) == 168
    assert sum(record.__dict__["fields"]["settled"]["accepted"] for record in caplog.records) == 10_000
    lines = "".join(json.dumps(record.__dict__["fields"]) for record in caplog.records)
    assert len(lines) + 168 * 150 < MOST_BYTES


def test_a_campaign_that_ends_with_each_letter_leaves_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    """The first end is told at once, the others together, and none is left out."""
    ends = EndLog()
    with caplog.at_level(logging.INFO, logger="sendonce"):
        for second in range(100):
            ends.note("campaign_step", DispatchId(f"step {second}"), DispatchResult.SENT)
            ends.tell(float(second))
        ends.tell(110.0)
    told = [record.__dict__["fields"] for record in caplog.records]
    assert told[0] == {"campaign_step": "step 0", "status": "sent"}
    assert len(told) == 11
    assert sum(1 + fields.get("others", 0) for fields in told) == 100
