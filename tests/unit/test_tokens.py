"""Unsubscribe tokens: only ours are read, and nothing else matters."""

from __future__ import annotations

import base64
import hmac
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.domain.engine.tokens import read_token, sign_token
from sendonce.errors import BadInput

SECRET = b"a secret of decent length, forty bytes.."
JOB = "0198c5a1-7b1e-7cc3-9d50-0242ac120002"
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@settings(max_examples=100, deadline=None)
@given(st.uuids(), st.binary(min_size=1, max_size=200))
def test_a_token_gives_its_job_back(job: uuid.UUID, secret: bytes) -> None:
    assert read_token(sign_token(str(job), secret), secret) == str(job)


@settings(max_examples=50, deadline=None)
@given(st.binary(min_size=1, max_size=200))
def test_the_signature_is_hmac_sha256(secret: bytes) -> None:
    """Checked against the standard library, since the key blocks are hashed beforehand here."""
    raw = base64.urlsafe_b64decode(sign_token(JOB, secret))
    assert raw[:17] == b"\x01" + uuid.UUID(JOB).bytes
    assert raw[17:] == hmac.digest(secret, b"sendonce unsubscribe\x00" + raw[:17], "sha256")[:16]


def test_a_token_fits_a_url_and_shows_nothing() -> None:
    token = sign_token(JOB, SECRET)
    assert len(token) == 44
    assert set(token) <= set(ALPHABET)


def test_every_single_changed_character_is_refused() -> None:
    """A token has one spelling: 44 places, 63 other characters each."""
    token = sign_token(JOB, SECRET)
    for place, char in enumerate(token):
        for other in ALPHABET.replace(char, ""):
            assert read_token(token[:place] + other + token[place + 1 :], SECRET) is None


@pytest.mark.parametrize(
    "change", [str.lower, str.swapcase, lambda t: t[:-1], lambda t: t + "A", lambda t: t + "="]
)
def test_a_changed_token_is_refused(change) -> None:  # type: ignore[no-untyped-def]
    assert read_token(change(sign_token(JOB, SECRET)), SECRET) is None


def test_another_secret_or_none_is_refused() -> None:
    token = sign_token(JOB, SECRET)
    assert read_token(token, SECRET + b"x") is None
    assert read_token(token, b"") is None


def test_another_version_is_refused_even_if_signed() -> None:
    claim = b"\x02" + uuid.UUID(JOB).bytes
    mac = hmac.digest(SECRET, b"sendonce unsubscribe\x00" + claim, "sha256")[:16]
    assert read_token(base64.urlsafe_b64encode(claim + mac).decode(), SECRET) is None


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(), st.text(alphabet=ALPHABET, min_size=44, max_size=44)))
def test_garbage_is_none_and_never_an_exception(garbage: str) -> None:
    assert read_token(garbage, SECRET) is None


@pytest.mark.parametrize(
    "job_id", ["", "1", JOB.upper(), JOB + "\r\nBcc: x@example.com", JOB.replace("-", " ")]
)
def test_only_a_job_id_is_signed(job_id: str) -> None:
    with pytest.raises(BadInput, match="not a job id"):
        sign_token(job_id, SECRET)


def test_an_empty_secret_signs_nothing() -> None:
    with pytest.raises(BadInput, match="UNSUBSCRIBE_SECRET"):
        sign_token(JOB, b"")
