"""What all rows share: the folder, the sinks, the PostgreSQL, and how long a run may be."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from bench import engine
from bench.sinks import SesSink, SmtpSink, ses_sink, smtp_sink


@dataclass
class Stage:
    folder: Path
    quick: bool
    missing: dict[str, str]
    say: Callable[[str], None]
    exits: ExitStack
    began: float = field(default_factory=time.monotonic)

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full

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
def staged(quick: bool, missing: dict[str, str], say: Callable[[str], None]) -> Iterator[Stage]:
    """On the disk, not in memory: /var/tmp outlives a restart (FHS), so fsync there costs what it costs."""
    folder = Path(tempfile.mkdtemp(prefix="sendonce-bench-", dir="/var/tmp"))
    folder.chmod(0o755)  # PostgreSQL runs as a user of its own when we are root
    try:
        with ExitStack() as exits:
            yield Stage(folder, quick, missing, say, exits)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
