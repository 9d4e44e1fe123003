"""Which secrets the doctor believes in."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

import pytest

from sendonce.domain.engine.secret_strength import weakness

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "secret",
    [
        *("", "short", "fifteen-letters"),
        *("rehearsal-shared-secret", "rehearsal-unsubscribe-secret", "REHEARSAL_SHARED_SECRET"),
        *("change-me-change-me", "your-shared-secret-here", "openssl rand -hex 32", "super-secret-value"),
        *("0123456789abcdef" * 4, "a" * 64, "abab" * 16, "secretsecretsecret"),
        "correct horse battery staple",
    ],
)
def test_what_others_know_or_guess_is_weak(secret: str) -> None:
    """And the reason shows nothing of it."""
    why = weakness(secret)
    assert why
    assert not secret or secret not in why


def test_what_was_made_at_random_is_strong() -> None:
    """In every usual way of making one."""
    for make in (secrets.token_hex, secrets.token_urlsafe):
        assert not any(weakness(make(size)) for size in (16, 24, 32) for _ in range(2000))
    assert weakness("the-house-secret-of-ours") is None


def test_no_page_shows_a_secret_that_would_pass() -> None:
    """Whoever copies an example from the documentation is stopped."""
    shown = re.compile(r"\b(?:EXECUTOR_SHARED|UNSUBSCRIBE|CRON)_SECRET=['\"]?([\w-]{16,})", re.ASCII)
    pages = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), ROOT / ".env.example", *ROOT.glob("*.yml")]
    found = [secret for page in pages for secret in shown.findall(page.read_text(encoding="utf-8"))]
    assert not [secret for secret in found if weakness(secret) is None]
