"""sendonce with a wall clock that leaps: two hours ahead at SIGUSR1, back at SIGUSR2.

time-machine moves the wall clock of this process only; the clock since boot goes on as it was.
"""

from __future__ import annotations

import signal
import time
from datetime import timedelta

import time_machine

from sendonce.entrypoints.cli.app import main

LEAP = timedelta(hours=2)

if __name__ == "__main__":
    with time_machine.travel(time.time(), tick=True) as traveller:
        signal.signal(signal.SIGUSR1, lambda *_: traveller.shift(LEAP))
        signal.signal(signal.SIGUSR2, lambda *_: traveller.shift(-LEAP))
        main()
