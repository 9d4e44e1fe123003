"""sendonce that stops itself (SIGSTOP) where FAILPOINT says, instead of killing itself."""

from __future__ import annotations

import os
import signal

from sendonce.domain.engine import failpoints
from sendonce.entrypoints.cli.app import main
from sendonce.settings import Settings
from sendonce.wiring import worker


def arm_stop(settings: Settings) -> None:
    name, _, count = settings.failpoint.partition(":")
    failpoints.arm(name, int(count), lambda: os.kill(os.getpid(), signal.SIGSTOP))


if __name__ == "__main__":
    worker.arm_failpoint = arm_stop
    main()
