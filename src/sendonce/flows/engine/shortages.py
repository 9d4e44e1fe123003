"""What runs short on a machine for a while: descriptors, threads, names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sendonce.errors import Unavailable


@contextmanager
def shortages() -> Iterator[None]:
    """A machine that is out of descriptors, of threads or of names is Unavailable: it passes."""
    try:
        yield
    except OSError as exc:
        raise Unavailable(f"The machine is short of something: {exc}") from exc
    except RuntimeError as exc:
        if "start new thread" not in str(exc):
            raise
        raise Unavailable(f"The machine is short of threads: {exc}") from exc
