"""A standby that has lost the last commits is promoted under a worker."""

from __future__ import annotations

import time
from functools import partial

from tests.crash.scenes import NotHere, Scene, Stage
from tests.crash.server_pair import ServerPair
from tests.crash.world import Running, until

# Enough for several groups of letters that only the primary knows of.
LETTERS_LOST = 40


def promoted_standby(*, keep_state: bool) -> Scene:
    """Commits of some dozens of letters are lost in mid-send. Nothing goes out any more, from this worker or
    another, until somebody adopts the database; then the run goes on.

    Without ``keep_state`` the machine of the worker is lost too, with all that it knew.
    """

    def scene(stage: Stage) -> None:
        worker = lose_commits(stage)
        if not keep_state:
            worker.kill()
            stage.world.environment["STATE_DIR"] = str(stage.world.disk / "another-state")
        pair_of(stage).fail_over()
        _refused(worker if keep_state else stage.world.worker())
        before = len(stage.world.sandbox.acceptances())
        _refused(stage.world.worker())
        halted = "SELECT count(*) FROM ledger WHERE halted IS NOT NULL"
        assert stage.world.eye.number(halted) == 1, "the ledger is not halted"
        assert len(stage.world.sandbox.acceptances()) == before, "a halted ledger was sent from"
        stage.world.run("db", "adopt", "--yes")

    return scene


def lose_commits(stage: Stage) -> Running:
    """A worker that has sent letters of which only the primary knows."""
    pair = pair_of(stage)
    worker = stage.world.worker()
    if not stage.sending(worker):
        raise NotHere("everything was sent before the standby fell behind")
    pair.cut_the_stream()
    known = len(stage.world.sandbox.acceptances())
    more = partial(_accepted, stage, known + LETTERS_LOST)
    until(more, 30, "letters are accepted that the standby does not know of")
    return worker


def pair_of(stage: Stage) -> ServerPair:
    if stage.pair is None:
        raise NotHere("SQLite has no standby")
    return stage.pair


def _accepted(stage: Stage, number: int) -> bool:
    return len(stage.world.sandbox.acceptances()) >= number


def _refused(worker: Running) -> None:
    """It ends by itself, with the code that no supervisor restarts after."""
    began = time.monotonic()
    code = worker.wait(60)
    assert code == 3, f"it ended with {code} after {time.monotonic() - began:.0f} s: {worker.log.read_text()}"
