"""Which processes of the pipeline live on this machine: each holds ``flock`` on a file with its name.

The kernel lets go of the lock when the process ends, however it ends: a file that nobody holds is that of a
dead one.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

from sendonce.errors import Unavailable

_LONGEST_NAME = 200


class RollCall:
    """ports.prospecting.RollCall of a machine: ``<state>/<ledger id>/pipeline/<worker>``."""

    def __init__(self, state: Path, ledger_id: str) -> None:
        self._folder = state / ledger_id / "pipeline"

    @contextmanager
    def present(self, worker: str, bury: Callable[[str], None]) -> Iterator[None]:
        own = self._folder / quote(worker, safe="")[:_LONGEST_NAME]
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for file in self._folder.iterdir():
                with _held(file) as held:
                    if held:
                        bury(unquote(file.name))
                        file.unlink(missing_ok=True)
            own.touch(mode=0o600)
        except OSError as exc:
            raise Unavailable(
                f"The state directory {self._folder} cannot be used: {exc.strerror}. Set STATE_DIR to a "
                "folder on a local disk that this user may write."
            ) from exc
        with _held(own) as held:
            yield
            if held:
                own.unlink(missing_ok=True)


@contextmanager
def _held(file: Path) -> Iterator[bool]:
    """Whether this process holds the file's lock now; not if another does, or if the file is gone."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        yield _locks(descriptor) and file.exists() and file.stat().st_ino == os.fstat(descriptor).st_ino
    finally:
        os.close(descriptor)


def _locks(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
