"""Addresses: what is accepted, and which spellings are one person."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sendonce.domain.engine import addresses
from sendonce.domain.engine.addresses import Address, parse_address
from sendonce.domain.people.suppression_keys import suppression_fold, suppression_key
from sendonce.errors import BadInput

ISEMAIL = Path(__file__).parents[3] / "shared" / "corpora" / "isemail.xml"

ACCEPT, REFUSE = True, False

# What we do with each diagnosis of the isemail corpus. A whole category has its rule first.
CATEGORIES = {
    "ISEMAIL_VALID_CATEGORY": ACCEPT,
    "ISEMAIL_DNSWARN": ACCEPT,  # whether a domain receives mail is for the doctor, not for the parser
    "ISEMAIL_CFWS": REFUSE,  # comments and folds belong in headers; an address here is bare
    "ISEMAIL_DEPREC": REFUSE,  # RFC 5322 §4: obsolete forms must not be generated
    "ISEMAIL_RFC5322": REFUSE,  # fits a header, cannot be sent to
    "ISEMAIL_ERR": REFUSE,
}
DIAGNOSES = {
    "ISEMAIL_RFC5321_QUOTEDSTRING": ACCEPT,
    "ISEMAIL_RFC5321_ADDRESSLITERAL": REFUSE,  # nobody subscribes from [192.0.2.1]
    "ISEMAIL_RFC5321_TLD": REFUSE,  # two labels at least
    "ISEMAIL_RFC5321_TLDNUMERIC": REFUSE,
}
EXCEPTIONS = {
    "5": REFUSE,  # test@io is valid to the corpus, which found an MX for "io"; we want two labels
    "43": REFUSE,  # ""@iana.org: a quoted string of nothing is nobody's name
}


def isemail_cases() -> list[tuple[str, str, str, str]]:
    if not ISEMAIL.exists():
        return []
    cases = []
    for test in ElementTree.parse(ISEMAIL).iter("test"):
        written = "".join(test.find("address").itertext())  # type: ignore[union-attr]
        # The corpus writes control characters as their images, U+2400 and on.
        raw = "".join(chr(ord(c) - 0x2400) if 0x2400 <= ord(c) <= 0x2420 else c for c in written)
        cases.append((test.get("id", ""), raw, test.findtext("category", ""), test.findtext("diagnosis", "")))
    return cases


@pytest.mark.skipif(not ISEMAIL.exists(), reason="the isemail corpus is not beside this checkout")
def test_every_address_of_the_isemail_corpus_is_judged_by_the_policy() -> None:
    """164 addresses, each accepted or refused as the table above says for its diagnosis."""
    surprises = []
    cases = isemail_cases()
    assert len(cases) == 164
    for number, raw, category, diagnosis in cases:
        wanted = EXCEPTIONS.get(number, DIAGNOSES.get(diagnosis, CATEGORIES.get(category)))
        assert wanted is not None, f"no policy for {category} {diagnosis}"
        if accepted(raw) is not wanted:
            surprises.append((number, raw, diagnosis))
    assert surprises == []


def accepted(raw: str) -> bool:
    try:
        parse_address(raw)
    except BadInput:
        return False
    return True


SAME_PERSON = [
    "user@example.com",
    "USER@Example.com",
    "user@EXAMPLE。com",
    "user@example．com",
    '"user"@example.com',
    '"us\\er"@example.com',
    "ｕｓｅｒ@example.com",
    "user@ｅｘａｍｐｌｅ.com",
]


@pytest.mark.parametrize("spelling", SAME_PERSON)
def test_spellings_of_one_address_have_one_key(spelling: str) -> None:
    assert parse_address(spelling).key == "user@example.com"


def test_an_international_domain_equals_its_punycode() -> None:
    written, punycode = parse_address("user@exämple.com"), parse_address("USER@XN--EXMPLE-CUA.com")
    assert written.text == "user@xn--exmple-cua.com"
    assert written.key == punycode.key == "user@xn--exmple-cua.com"
    assert parse_address("info@пример.рф").text == "info@xn--e1afmkfd.xn--p1ai"


def test_the_text_keeps_the_local_part_as_written() -> None:
    """RFC 5321 §2.4: only the receiving host may interpret the case of a local part."""
    assert parse_address("First.Last@EXAMPLE.Org") == Address(
        "First.Last@example.org", "first.last@example.org"
    )
    assert parse_address('"First Last"@EXAMPLE.Org').text == '"First Last"@example.org'


REFUSED = {
    "": "empty",
    "a@b.com, c@d.com": "not one",
    "a@b.com;c@d.com": "not one",
    "a@b.com>\r\nRCPT TO:<c@d.com": "U+000D",
    "alice@ok.org <bob@evil.com>": "not one",
    "<a@b.com>": "not one",
    "Bob <a@b.com>": "not one",
    "@relay.example:a@b.com": "not one",
    "us\u200ber@example.com": "ZERO WIDTH SPACE",
    "user@exa\u00admple.com": "SOFT HYPHEN",
    "user@exam\u202eple.com": "RIGHT-TO-LEFT OVERRIDE",
    "user@exam\ufe0fple.com": "VARIATION SELECTOR",
    "us er@example.com": "not one",
    "user@exa mple.com": "host name",
    " user@example.com": "not one",
    "user\u00a0@example.com": "NO-BREAK SPACE",
    "user@example.com\n": "U+000A",
    "user@\x00example.com": "U+0000",
    "user@\udc80example.com": "U+DC80",
    "пользователь@example.com": "outside ASCII",
    "user@аpple.com": "mixes Cyrillic and Latin",  # the first letter of the domain is Cyrillic
    "user@xn--pple-43d.com": "mixes Cyrillic and Latin",
    "user@xn--a.com": "international",
    "user@localhost": "two or more labels",
    "user@exa_mple.com": "two or more labels",
    "user@[127.0.0.1]": "literal",
    "user@127.0.0.1": "number",
    "user@example.com.": "two or more labels",
    "user＠example.com": "no @",
    "=?x?q?=61=40evil.com=3e?=@example.com": "encoded word",
    "a" * 65 + "@example.com": "64",
    "a@" + "b" * 64 + ".com": "63",
    "a@" + ".".join(["b" * 50] * 6): "254",
    "a" * 100_000 + "@example.com": "100012 characters",
}


@pytest.mark.parametrize(("raw", "reason"), REFUSED.items(), ids=range(len(REFUSED)))
def test_what_is_not_one_plain_address_is_refused_with_the_reason(raw: str, reason: str) -> None:
    with pytest.raises(BadInput) as refusal:
        parse_address(raw)
    message = str(refusal.value)
    assert reason in message
    assert message.isprintable(), "the message is safe to print"
    assert len(message) < 400


LOCALS = st.from_regex(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}", fullmatch=True)
DOMAINS = st.from_regex(r"([A-Za-z0-9]([A-Za-z0-9-]{0,8}[A-Za-z0-9])?\.){1,3}[A-Za-z]{2,6}", fullmatch=True)
ADDRESSES = st.builds("{}@{}".format, LOCALS, DOMAINS)
ANYTHING = st.one_of(ADDRESSES, st.text(), st.builds("{}@{}".format, st.text(), DOMAINS), st.emails())


@settings(max_examples=300, deadline=None)
@given(ANYTHING)
def test_the_text_of_an_address_is_a_fixed_point(raw: str) -> None:
    assume(accepted(raw))
    parsed = parse_address(raw)
    assert parse_address(parsed.text) == parsed
    assert parsed.text.isascii()
    assert parsed.key.isascii()


@settings(max_examples=200, deadline=None)
@given(ADDRESSES)
def test_the_fast_way_and_the_careful_way_agree(raw: str) -> None:
    try:
        careful = addresses._parse_carefully(raw)
    except BadInput:
        careful = None
    assert (parse_address(raw) if accepted(raw) else None) == careful


@settings(max_examples=200, deadline=None)
@given(ADDRESSES)
def test_case_and_quoting_do_not_change_the_key(raw: str) -> None:
    assume(accepted(raw))
    local, _, domain = raw.rpartition("@")
    key = parse_address(raw).key
    assert parse_address(raw.upper()).key == key
    if len(local) <= 62:
        assert parse_address(f'"{local}"@{domain.title()}').key == key


@pytest.mark.parametrize(
    ("key", "folded"),
    [
        ("u.s.e.r+x@gmail.com", "user@gmail.com"),
        ("user@googlemail.com", "user@gmail.com"),
        ("user+news@example.com", "user@example.com"),
        ("first.last@example.com", "first.last@example.com"),
        ("+tag@example.com", "+tag@example.com"),
        (".@gmail.com", ".@gmail.com"),
        ("a@b@example.com", "a@b@example.com"),
    ],
)
def test_suppression_looks_past_tags_and_dots(key: str, folded: str) -> None:
    assert suppression_fold(key) == folded
    assert suppression_fold(folded) == folded


def test_a_suppressed_person_is_found_under_every_spelling() -> None:
    """Facts of identity: all of these must be blocked once user@gmail.com has said no."""
    spellings = ["user@gmail.com", "U.Ser+shop@GoogleMail.com", '"us.er"@gmail.com', "ｕｓｅｒ@gmail。com"]
    keys = {suppression_key(parse_address(spelling).key, b"pepper") for spelling in spellings}
    assert len(keys) == 1


def test_the_suppression_key_depends_on_the_pepper_and_hides_the_address() -> None:
    one, other = (suppression_key("user@example.com", pepper) for pepper in (b"one", b"other"))
    assert one != other
    assert len(one) == 32
    assert int(one, 16) >= 0
    assert suppression_key("user@example.com", b"x" * 200) != suppression_key("user@example.com", b"x" * 201)
    with pytest.raises(BadInput, match="pepper is empty"):
        suppression_key("user@example.com", b"")
