"""Taking the verification token of a new webhook, once, and only while its owner waits for it.

Notion tells the token by posting it without a signature, and so could anybody else: a stranger whose token
was taken could sign events. So it is taken only in a window that the owner opens from the command line,
and only the first one. Window and token are files of the owner's in the state directory.
"""

from __future__ import annotations

import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from sendonce.errors import Unavailable

_NOTED_EVERY = 60.0


class HandshakeWindow:
    def __init__(self, state_dir: Path) -> None:
        self._window = state_dir / "notion-webhook-window"
        self.token_file = state_dir / "notion-verification-token"

    def open(self, seconds: float) -> None:
        """Wait for a token from now on; one that came before is forgotten."""
        try:
            self._window.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.token_file.unlink(missing_ok=True)
            _write_own(self._window, str(time.time() + seconds))
        except OSError as exc:
            raise Unavailable(f"{self._window} cannot be written: {exc.strerror}. Set STATE_DIR.") from exc

    def close(self) -> None:
        self._window.unlink(missing_ok=True)

    def is_open(self) -> bool:
        try:
            return time.time() <= float(self._window.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return False

    def take(self, token: str) -> bool:
        """Keep the token if it is waited for. Of several that come at once one is kept."""
        if not self.is_open():
            return False
        try:
            self._window.unlink()
        except FileNotFoundError:
            return False
        _write_own(self.token_file, token)
        return True

    def token(self) -> str | None:
        """What came, if anything did."""
        try:
            return self.token_file.read_text(encoding="utf-8")
        except OSError:
            return None


class WebhookDiary:
    """When the webhook was last heard, for the doctor: a file with the time and the token's fingerprint."""

    def __init__(self, state_dir: Path) -> None:
        self._file = state_dir / "notion-webhook-heard"
        self._noted = float("-inf")

    def note(self, token: str) -> None:
        """Something came that was signed with this token. It never fails: nobody's letter depends on it."""
        if time.monotonic() - self._noted < _NOTED_EVERY:
            return
        self._noted = time.monotonic()
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write_own(self._file, f"{_fingerprint(token)} {time.time():.0f}")

    def last_heard(self, token: str) -> float | None:
        """Seconds of the epoch; None where nothing signed with this token is known to have come."""
        try:
            whose, when = self._file.read_text(encoding="ascii").split()
            return float(when) if whose == _fingerprint(token) else None
        except (OSError, ValueError):
            return None


def _fingerprint(token: str) -> str:
    return sha256(token.encode("utf-8", "replace")).hexdigest()[:16]


def _write_own(file: Path, text: str) -> None:
    """Whole or not at all, for the owner's eyes only."""
    fresh = file.with_name(file.name + ".new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)
