"""What all rows share: the folder, the sinks, the PostgreSQL, and how long a run may be."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path

from bench import engine
from bench.sinks import SesSink, SmtpSink, ses_sink, smtp_sink


class Length(Enum):
    QUICK = "quick"
    USUAL = "usual"
    LONG = "long"


@dataclass
class Stage:
    """``failed`` has the rows that gave no figure, and why."""

    folder: Path
    length: Length
    missing: dict[str, str]
    say: Callable[[str], None]
    exits: ExitStack
    began: float = field(default_factory=time.monotonic)
    failed: dict[str, str] = field(default_factory=dict)

    def size(self, usual: int, quick: int, long: int | None = None) -> int:
        """How many: a ``long`` run has more only where it takes many to show something."""
        sizes = {Length.QUICK: quick, Length.USUAL: usual, Length.LONG: usual if long is None else long}
        return sizes[self.length]

    @property
    def quick(self) -> bool:
        return self.length is Length.QUICK

    @cached_property
    def smtp(self) -> SmtpSink:
        return self.exits.enter_context(smtp_sink(self.folder))

    @cached_property
    def ses(self) -> SesSink:
        return self.exits.enter_context(ses_sink(self.folder))

    @cached_property
    def postgres(self) -> engine.Postgres:
        return self.exits.enter_context(engine.postgres(self.folder))

    @cached_property
    def has_smtp(self) -> bool:
        return "postfix" not in self.missing


@contextmanager
def staged(length: Length, missing: dict[str, str], say: Callable[[str], None]) -> Iterator[Stage]:
    """On the disk, not in memory: /var/tmp outlives a restart (FHS), so fsync there costs what it costs."""
    folder = Path(tempfile.mkdtemp(prefix="sendonce-bench-", dir="/var/tmp"))
    folder.chmod(0o755)  # PostgreSQL runs as a user of its own when we are root
    try:
        with ExitStack() as exits:
            yield Stage(folder, length, missing, say, exits)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
