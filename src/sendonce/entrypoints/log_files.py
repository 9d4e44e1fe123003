"""A log on disk that stays small: repeated lines are sampled, full files rotated, also by many processes."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from pathlib import Path

MOST_A_MINUTE = 100
_MINUTE = 60.0
_MOST_KINDS = 1000


@dataclass(slots=True)
class _Minute:
    began: float
    written: int = 0
    left_out: int = 0


class Sampler(logging.Filter):
    """Lets a hundred lines of a kind through in a minute. The next one says how many were left out.

    A kind is a logger and a text: the facts are in the fields. Errors are never left out, nor is what
    somebody asked for with LOG_LEVEL=debug.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._minutes: dict[tuple[str, str], _Minute] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Every handler asks; the first question decides."""
        decided: bool | None = record.__dict__.get("sampled")
        if decided is None:
            decided = record.__dict__["sampled"] = self._let_through(record)
        return decided

    def _let_through(self, record: logging.LogRecord) -> bool:
        if record.levelno not in (logging.INFO, logging.WARNING):
            return True
        now, kind = self._clock(), (record.name, str(record.msg))
        minute = self._minutes.get(kind)
        if len(self._minutes) > _MOST_KINDS:  # a library that puts facts into its texts
            self._minutes.clear()
        if minute is None or now - minute.began >= _MINUTE:
            if minute is not None and minute.left_out:
                record.fields = {**getattr(record, "fields", {}), "left_out_before": minute.left_out}
            minute = self._minutes[kind] = _Minute(now)
        if minute.written >= MOST_A_MINUTE:
            minute.left_out += 1
            return False
        minute.written += 1
        return True


class RotatingFile(WatchedFileHandler):
    """Moves a full file to ``….1`` and the former ones on. Others who write to it notice, and follow.

    ``most_bytes`` 0 leaves that to logrotate. Nobody but its owner and group may read it.
    """

    def __init__(self, file: Path, most_bytes: int = 0, keep: int = 0) -> None:
        self._most_bytes = most_bytes
        self._keep = keep
        super().__init__(file, mode="a", encoding="utf-8")

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
        return TextIOWrapper(os.fdopen(descriptor, "ab"), encoding="utf-8")

    def reopenIfNeeded(self) -> None:  # noqa: N802 - the name is logging's
        """Before every line."""
        super().reopenIfNeeded()
        if self._most_bytes and self.stream is not None:
            with suppress(OSError):  # a log that is too long is better than none
                if os.fstat(self.stream.fileno()).st_size >= self._most_bytes:
                    self._rotate(self.stream.fileno())
            super().reopenIfNeeded()

    def _rotate(self, ours: int) -> None:
        """Of many processes that find it full, the first one moves it. The others see that it is gone."""
        fcntl.flock(ours, fcntl.LOCK_EX)
        try:
            if _is_at(ours, self.baseFilename):
                self._move()
        finally:
            fcntl.flock(ours, fcntl.LOCK_UN)

    def _move(self) -> None:
        names = [self.baseFilename, *(f"{self.baseFilename}.{number}" for number in range(1, self._keep + 1))]
        for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
            with suppress(FileNotFoundError):
                Path(newer).replace(older)
        if self._keep == 0:
            Path(self.baseFilename).unlink()


def _is_at(descriptor: int, name: str) -> bool:
    return os.path.samestat(os.fstat(descriptor), Path(name).stat())
