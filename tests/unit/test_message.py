"""Messages: what was put in comes out of a mail parser, and nothing else does."""

from __future__ import annotations

import email
import json
import re
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from email.header import decode_header, make_header
from email.headerregistry import Address
from email.message import EmailMessage, Message
from email.utils import parseaddr
from html import escape
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sendonce.domain.engine.letters import NAMELESS, Letter, MessageSettings, unsubscribe_url
from sendonce.domain.engine.message import compile_letter
from sendonce.domain.engine.tokens import read_token
from sendonce.errors import BadInput

BLNS = Path(__file__).parents[3] / "shared" / "corpora" / "blns.json"
JOB = "0198c5a1-7b1e-7cc3-9d50-0242ac120002"
DATE = datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)
SECRET = b"unsubscribe secret"
SETTINGS = MessageSettings(
    from_address="news@example.com",
    from_name="Пекарня «Колос», ООО",
    reply_to="Answers@Example.com",
    footer_address="Москва, ул. Ленина, 1",
    base_url="https://mail.example.com/",
    message_id_domain="mail.example.com",
    unsubscribe_secret=SECRET,
)
LETTER = Letter(
    subject="Новости для вас, {{ name | default: 'друзья' }}",
    preheader="Хлеб & соль для {{ name | default: 'друзей' }}",
    html="<html><body class=x><p>Здравствуйте, {{ name | default: 'друзья' }}!</p>{{ note }}</body></html>",
    text="Здравствуйте, {{ name | default: 'друзья' }}!\n{{ note }}\n.\nFrom here on: {{ note }}",
)
HEADERS = [
    "From",
    "To",
    "Subject",
    "Date",
    "Message-ID",
    "Reply-To",
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
    "List-Id",
    "X-Sendonce-Job",
    "MIME-Version",
    "Content-Type",
]
TEXT_FOOTER = (
    f"\n\n———\nМосква, ул. Ленина, 1\nОтписаться: {unsubscribe_url(SETTINGS.base_url, JOB, SECRET)}\n"
)


def build(letter: Letter = LETTER, recipient: str = "ivan@example.org", **fields: str) -> bytes:
    return compile_letter(letter, SETTINGS, "mailout-1").build(JOB, recipient, {"note": "x", **fields}, DATE)


def header(message: Message, name: str) -> str:
    """Decoded the legacy way: the new parser of CPython 3.11 puts spaces between encoded words."""
    return str(make_header(decode_header(re.sub(r"\r?\n", "", message[name]))))


def mailbox(message: Message, name: str) -> tuple[str, str]:
    phrase, address = parseaddr(re.sub(r"\r?\n", "", message[name]))
    return str(make_header(decode_header(phrase))), address


def is_said(shown: str, name: str) -> bool:
    """Whether a name is shown whole, or its beginning where it is too long for a header."""
    return shown == name or (len(name.encode()) > 60 and shown.endswith("…") and name.startswith(shown[:-1]))


def bodies(message: Message) -> list[str]:
    parts = message.get_payload()
    assert isinstance(parts, list)
    return [part.get_payload(decode=True).decode().replace("\r\n", "\n") for part in parts]


def check_wire_format(raw: bytes) -> None:
    """What holds for every message whatever is in it."""
    assert raw.isascii()
    assert b"\r" not in raw.replace(b"\r\n", b"")
    assert b"\n" not in raw.replace(b"\r\n", b"")
    head, _, body = raw.partition(b"\r\n\r\n")
    assert all(len(line) <= 998 for line in head.split(b"\r\n"))
    for line in body.split(b"\r\n"):
        assert len(line) <= 76
        assert not line.startswith((b".", b"From "))
    parsed = email.message_from_bytes(raw)
    assert parsed.keys() == HEADERS
    assert [part.get_content_type() for part in parsed.walk()] == [
        "multipart/alternative",
        "text/plain",
        "text/html",
    ]
    assert not any(part.defects for part in parsed.walk())


def test_the_headers_are_the_promised_ones() -> None:
    raw = build(name="Иван Петров")
    check_wire_format(raw)
    message = email.message_from_bytes(raw)
    assert mailbox(message, "From") == ("Пекарня «Колос», ООО", "news@example.com")
    assert mailbox(message, "To") == ("Иван Петров", "ivan@example.org")
    assert header(message, "Subject") == "Новости для вас, Иван Петров"
    assert message["Date"] == "Tue, 04 Mar 2025 05:06:07 +0000"
    assert message["Message-ID"] == f"<{JOB}@mail.example.com>"
    assert message["Reply-To"] == "Answers@example.com"
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert message["X-Sendonce-Job"] == JOB
    link = message["List-Unsubscribe"]
    assert link == f"<{unsubscribe_url('https://mail.example.com', JOB, SECRET)}>"
    assert read_token(link.partition("token=")[2].rstrip(">"), SECRET) == JOB


def test_the_same_arguments_give_the_same_bytes() -> None:
    assert build(name="Иван") == build(name="Иван")
    other_zone = DATE.astimezone(timezone(timedelta(hours=3)))
    compiled = compile_letter(LETTER, SETTINGS, "mailout-1")
    assert compiled.build(JOB, "a@b.ru", {"note": "x"}, DATE) == compiled.build(
        JOB, "a@b.ru", {"note": "x"}, other_zone
    )


def test_a_date_without_a_zone_is_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match="time zone"):
        compile_letter(LETTER, SETTINGS, "m").build(JOB, "a@b.ru", {"note": "x"}, datetime(2025, 1, 1))


def test_the_footer_and_the_preheader_stand_inside_the_body() -> None:
    text, html = bodies(email.message_from_bytes(build(name="Иван")))
    link = unsubscribe_url(SETTINGS.base_url, JOB, SECRET)
    assert text.endswith(TEXT_FOOTER)
    assert re.search(r"<body class=x><div style=\"display:none[^>]*>Хлеб &amp; соль для Иван</div>", html)
    assert html.index("Москва") < html.index(f'<a href="{link}"') < html.index("</body></html>")


def test_a_fragment_gets_them_at_its_ends() -> None:
    letter = replace(LETTER, html="<p>{{ note }}</p>", subject="Hello", preheader="short")
    _, html = bodies(email.message_from_bytes(build(letter)))
    assert html.startswith("<div style=")
    assert html.index("<p>x</p>") < html.index("Unsubscribe</a>")


def test_a_letter_has_its_own_language() -> None:
    """It outweighs the setting and the words of the subject."""
    english = replace(SETTINGS, language="en")
    letter = replace(LETTER, subject="Hello", language="ru")
    raw = compile_letter(letter, english, "m").build(JOB, "a@b.ru", {"note": "x"}, DATE)
    assert "Отписаться: " in bodies(email.message_from_bytes(raw))[0]


def test_the_language_of_the_footer_can_be_set() -> None:
    russian = replace(SETTINGS, language="ru")
    raw = compile_letter(replace(LETTER, subject="Hello"), russian, "m").build(
        JOB, "a@b.ru", {"note": "x"}, DATE
    )
    assert "Отписаться: " in bodies(email.message_from_bytes(raw))[0]
    with pytest.raises(BadInput, match="language: 'tlh'"):
        compile_letter(LETTER, replace(SETTINGS, language="tlh"), "m")


def test_values_are_escaped_by_where_they_stand() -> None:
    hostile = "<img src=x onerror=\"alert('1')\">&{{ name }}"
    text, html = bodies(email.message_from_bytes(build(note=hostile)))
    assert hostile in text
    assert hostile not in html
    assert escape(hostile) in html


def test_a_value_is_not_expanded_again() -> None:
    text, html = bodies(email.message_from_bytes(build(name="{{ note }}", note="{{7*7}}")))
    assert "Здравствуйте, {{ note }}!\n{{7*7}}\n" in text
    assert "{{7*7}}" in html


def test_an_unresolved_variable_is_told_and_stops_the_build() -> None:
    compiled = compile_letter(LETTER, SETTINGS, "m")
    assert compiled.missing({"note": ""}) == ["note"]
    assert compiled.missing({"note": "x"}) == []
    with pytest.raises(BadInput, match="'note' has no value"):
        compiled.build(JOB, "a@b.ru", {"note": ""}, DATE)


def test_body_lines_cannot_end_the_message_or_smuggle_another() -> None:
    for attack in (
        "\r\n.\r\n",
        "\n.\n",
        "\r.\r",
        "\n.\r\n",
        "\r\n.\r\nMAIL FROM:<x@y.ru>\r\n",
        ".",
        "From x",
    ):
        raw = build(note=attack)
        check_wire_format(raw)
        expected = attack.replace("\r\n", "\n").replace("\r", "\n")
        assert f"!\n{expected}\n.\n" in bodies(email.message_from_bytes(raw))[0]


def test_a_subject_in_ascii_stays_readable_and_is_folded() -> None:
    short = build(replace(LETTER, subject="Hello {{ name }}"), name="Ann")
    assert b"\r\nSubject: Hello Ann\r\n" in short
    words = "  ".join(f"word{n}" for n in range(60))
    message = email.message_from_bytes(build(replace(LETTER, subject=words)))
    assert header(message, "Subject") == words
    assert all(len(line) <= 76 for line in message["Subject"].split("\r\n"))


def test_long_names_and_addresses_are_folded() -> None:
    address = "a" * 60 + "@" + "b" * 60 + ".example.org"
    for name in ("Анна " * 60 + "Я", "x" * 3000, 'Quo"te \\ d, Inc.', "=?x"):
        raw = build(recipient=address, name=name)
        check_wire_format(raw)
        shown, written = mailbox(email.message_from_bytes(raw), "To")
        assert written == address
        assert is_said(shown, name)


@pytest.mark.parametrize("name", ["Анна " * 60 + "Я", "x" * 3000, "Я" * 200, "😀" * 100, "Mr. X " * 30])
def test_a_name_that_servers_would_drop_is_shortened(name: str) -> None:
    """Sendmail drops a name from the header where name and address are longer than 256 bytes together."""
    for address in ("ivan@example.org", "a" * 60 + "@" + "b" * 60 + ".example.org"):
        message = email.message_from_bytes(build(recipient=address, name=name))
        assert len(message["To"]) <= 250
        shown, written = mailbox(message, "To")
        assert written == address
        assert shown.endswith("…")
        assert name.startswith(shown[:-1])
        assert len(shown) > 9  # as much of it as there is room for


def test_a_name_that_fits_is_not_shortened() -> None:
    """Sixty letters of Cyrillic are a long name, and stay whole."""
    name = "Константин Константинович Константинопольский-Заречный, г-н"
    assert mailbox(email.message_from_bytes(build(name=name)), "To")[0] == name


def test_a_name_beside_a_very_long_address_is_left_out() -> None:
    """The address is what counts."""
    address = "a" * 64 + "@" + ".".join(["b" * 60] * 3) + ".org"
    message = email.message_from_bytes(build(recipient=address, name="Анна " * 20))
    assert re.sub(r"\r?\n", "", message["To"]) == address


def test_a_name_that_is_the_address_is_left_out() -> None:
    """Exports of other services fill empty names with the address."""
    assert b"\r\nTo: ivan@example.org\r\n" in build(name=" Ivan@Example.org ")


def test_a_borrowed_name_does_not_stand_beside_the_address() -> None:
    """A tester who is no subscriber reads the letter of one, and is not called by their name."""
    built = build(
        replace(LETTER, text="Dear {{ name }}"), "tester@example.org", name="Anna", **{NAMELESS: "yes"}
    )
    assert b"\r\nTo: tester@example.org\r\n" in built
    assert "Dear Anna" in bodies(email.message_from_bytes(built))[0]


BAD_HEADER_VALUES = [
    "x\r\nBcc: x@example.com",
    "x\rBcc: y",
    "x\ny",
    "a\tb",
    "a\u2028b",
    "a\u2029b",
    "a\u0085b",
    "a\x00b",
    "a\x1bb",
    "a\u202eb",
    "a\udc80b",
    "=?utf-8?q?a=0ABcc:?=",
    "=?UTF-8?B?QmNjOg==?=",
]


@pytest.mark.parametrize("value", BAD_HEADER_VALUES)
def test_what_could_start_another_header_is_refused_by_the_name_of_its_field(value: str) -> None:
    with pytest.raises(BadInput, match="'name'"):
        build(name=value)
    with pytest.raises(BadInput, match="'from_name'"):
        build(replace(LETTER, from_name=value))
    with pytest.raises(BadInput, match="'subject'"):
        build(replace(LETTER, subject=value))
    with pytest.raises(BadInput, match="'city'"):
        build(replace(LETTER, subject="{{ city }}"), city=value)
    with pytest.raises(BadInput, match="reply_to: "):
        compile_letter(LETTER, replace(SETTINGS, reply_to=value), "m")
    with pytest.raises(BadInput, match="recipient: "):
        build(recipient=value + "@example.com")


@pytest.mark.parametrize(
    "name", ["a@b.com, c@d.com", "alice@ok.org <bob@evil.com>", '"Bob" <bob@evil.com>', "x@y"]
)
def test_a_second_address_is_no_name(name: str) -> None:
    with pytest.raises(BadInput, match="Field 'name' holds an address"):
        build(name=name)


@pytest.mark.parametrize("recipient", ["a@b.com, c@d.com", "a@b.com>\r\nRCPT TO:<c@d.com", "A <a@b.com>", ""])
def test_the_recipient_is_one_bare_address(recipient: str) -> None:
    with pytest.raises(BadInput, match="recipient: "):
        build(recipient=recipient)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("from_address", "a@b.com, c@d.com"),
        ("base_url", "javascript:alert(1)"),
        ("base_url", "https://x.ru/>\r\nBcc: y"),
        ("message_id_domain", "x>\r\nBcc: y"),
        ("footer_address", "a\x00b"),
    ],
)
def test_a_setting_that_could_not_be_sent_is_refused_by_name(setting: str, value: str) -> None:
    with pytest.raises(BadInput, match=setting):
        compile_letter(LETTER, replace(SETTINGS, **{setting: value}), "m")


def test_a_job_id_is_a_uuid() -> None:
    with pytest.raises(BadInput, match="not a job id"):
        compile_letter(LETTER, SETTINGS, "m").build("x>\r\nBcc: y", "a@b.ru", {"note": "x"}, DATE)


def test_secrets_do_not_show_in_what_is_printed() -> None:
    assert "unsubscribe secret" not in repr(SETTINGS) + repr(compile_letter(LETTER, SETTINGS, "m"))


def reference(name: str, note: str) -> EmailMessage:
    """The same letter by the standard library's own builder."""
    message = EmailMessage()
    message["From"] = Address(str(SETTINGS.from_name), addr_spec=SETTINGS.from_address)
    message["To"] = Address(name, addr_spec="ivan@example.org")
    message["Subject"] = f"Новости для вас, {name}"
    message.set_content(f"Здравствуйте, {name}!\n{note}\n.\nFrom here on: {note}" + TEXT_FOOTER)
    message.add_alternative(f"<p>Здравствуйте, {escape(name)}!</p>{escape(note)}", subtype="html")
    return message


def fit_for_body(char: str) -> bool:
    """The rule as the documentation tells it, by Unicode's categories rather than by our patterns."""
    if unicodedata.bidirectional(char) in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}:
        return False
    return char in "\t\r\n" or unicodedata.category(char) not in {"Cc", "Cs"}


def fit_for_header(char: str) -> bool:
    return fit_for_body(char) and char not in "\t\r\n\u2028\u2029"


NAMES = st.text(st.characters().filter(fit_for_header), min_size=1).filter(
    lambda name: name.strip() == name and "@" not in name and "=?" not in name
)
NOTES = st.text(st.characters().filter(fit_for_body), min_size=1)


@settings(max_examples=200, deadline=None)
@given(NAMES, NOTES)
@example("Ann", ".")
@example("Ann", " trailing \n\n")
@example('"', "=" * 200)
@example("Я" * 100, "From \nFrom ")
def test_a_parser_reads_what_email_message_would_have_said(name: str, note: str) -> None:
    raw = build(name=name, note=note)
    check_wire_format(raw)
    message = email.message_from_bytes(raw)
    wanted = reference(name, note.replace("\r\n", "\n").replace("\r", "\n"))
    assert header(message, "Subject") == wanted["Subject"]
    for field in ("From", "To"):
        [box] = wanted[field].addresses
        shown, address = mailbox(message, field)
        assert address == box.addr_spec
        assert is_said(shown, box.display_name)
    text, html = bodies(message)
    plain, rich = (part.get_content() for part in wanted.iter_parts())  # type: ignore[attr-defined]
    assert text == plain
    assert rich.removesuffix("\n") in html


def built_or_refused(**fields: str) -> bytes | str:
    """The message, or the text of the refusal."""
    try:
        return build(**fields)
    except BadInput as refusal:
        return str(refusal)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters()), st.text(st.characters(), min_size=1))
def test_any_text_is_either_sent_whole_or_refused_by_name(name: str, note: str) -> None:
    raw = built_or_refused(name=name, note=note)
    if isinstance(raw, bytes):
        check_wire_format(raw)
        expected = note.replace("\r\n", "\n").replace("\r", "\n")
        assert expected in bodies(email.message_from_bytes(raw))[0]
    elif "'name'" in raw:
        assert not all(map(fit_for_header, name)) or "@" in name or "=?" in name
    else:
        assert "'note'" in raw
        assert not all(map(fit_for_body, note))


@pytest.mark.skipif(not BLNS.exists(), reason="the big list of naughty strings is not beside this checkout")
def test_naughty_strings_are_sent_whole_or_refused_by_name() -> None:
    """515 strings, each as a name and as a note."""
    refused = 0
    naughty = json.loads(BLNS.read_text(encoding="utf-8"))
    for string in filter(None, naughty):
        raw = built_or_refused(name=string)
        if isinstance(raw, bytes):
            check_wire_format(raw)
            assert is_said(mailbox(email.message_from_bytes(raw), "To")[0], string.strip())
        else:
            assert "'name'" in raw
            refused += 1
        if all(map(fit_for_body, string)):
            raw = build(note=string)
            check_wire_format(raw)
            text, html = bodies(email.message_from_bytes(raw))
            assert f"\n{string}\n.\n" in text
            assert escape(string) in html
    assert refused < len(naughty) / 10, "most of them are merely strange"


def test_a_letter_may_name_who_is_answered() -> None:
    """Its own reply-to comes before the sender's usual one."""
    message = email.message_from_bytes(build(replace(LETTER, reply_to="orders@example.com")))
    assert message["Reply-To"] == "orders@example.com"


def test_a_plain_letter_is_one_part() -> None:
    """Plain text alone, with the footer and all headers; no HTML anywhere."""
    raw = build(replace(LETTER, text_only=True), name="Иван")
    message = email.message_from_bytes(raw)
    assert message.get_content_type() == "text/plain"
    assert set(message.keys()) == {*HEADERS, "Content-Transfer-Encoding"}
    payload = message.get_payload(decode=True)
    assert isinstance(payload, bytes)
    text = payload.decode().replace("\r\n", "\n")
    assert text == "Здравствуйте, Иван!\nx\n.\nFrom here on: x" + TEXT_FOOTER
    assert not message.defects
    assert b"\n." not in raw


@pytest.mark.parametrize(
    ("sender", "list_id"),
    [
        ("news@example.com", "news.example.com"),
        ("The.News+May@Example.COM", "the-news-may.example.com"),
        ("n@почта.рф", "n.xn--80a1acny.xn--p1ai"),
    ],
)
def test_the_list_has_a_name_that_does_not_change(sender: str, list_id: str) -> None:
    """RFC 2919: mail programs sort by it."""
    compiled = compile_letter(LETTER, replace(SETTINGS, from_address=sender), "mailout-1")
    message = email.message_from_bytes(compiled.build(JOB, "a@example.org", {"note": "x"}, DATE))
    assert message["List-Id"] == f"<{list_id}>"


def test_gmail_can_count_complaints_of_a_mailout() -> None:
    """Four fields; the last is the sender's, the same for every mailout. SES writes its own header."""
    seen = []
    for mailout in ("mailout-1", "mailout-2"):
        compiled = compile_letter(LETTER, replace(SETTINGS, feedback_id=True), mailout)
        message = email.message_from_bytes(compiled.build(JOB, "a@example.org", {"note": "x"}, DATE))
        seen.append(message["Feedback-ID"].split(":"))
    first, second = seen
    assert (len(first), first[1:], first[0] != second[0]) == (4, second[1:], True)
    assert 5 <= len(first[3]) <= 15
    assert "Feedback-ID" not in email.message_from_bytes(build())
