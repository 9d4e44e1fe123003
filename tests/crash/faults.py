"""The list of faults: which scene, how much of the kills, and how much doubt the design allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sendonce.domain.engine.failpoints import NAMES
from tests.crash import scenes
from tests.crash.failing_sync import failed_sync
from tests.crash.failover import promoted_standby
from tests.crash.power import power_loss
from tests.crash.scenes import Scene
from tests.crash.world import CONNECTIONS


@dataclass(frozen=True)
class Fault:
    name: str
    scene: Scene
    share: float = 0.0
    """Its part of all the kills that were asked for; 0 for a scene that does not count kills."""
    kills_a_world: int = 40
    people: int = 12
    """Letters for each kill; a scene without kills has 400."""
    bound: int = CONNECTIONS
    """In doubt at most by one death."""
    failpoints: tuple[str, ...] = ()
    """The points that the scene is to strike, each of them."""
    alone: bool = False
    """Whether it troubles every world that shares its database server."""
    small_disk: bool = False
    pair: bool = False
    """Whether its database is a server of its own, with a standby."""
    settings: Mapping[str, str] = field(default_factory=dict)
    sandbox: tuple[str, ...] = ()
    """Flags of the sandbox."""


FAULTS = (
    Fault("SIGKILL at random", scenes.random_kill, 0.26, people=14),
    Fault(
        "SIGKILL between two regions",
        scenes.two_regions,
        0.05,
        people=14,
        settings={"SES_FAIL_BACK_SECONDS": "0.3"},
        sandbox=("--second-region=eu-west-1",),
    ),
    Fault(
        "SIGKILL at each failpoint",
        scenes.kill_at_every_failpoint,
        0.2,
        people=16,
        failpoints=tuple(name for name in NAMES if name not in scenes.BURIAL_POINTS),
    ),
    Fault("SIGKILL again in recovery", scenes.kill_in_recovery, 0.1, failpoints=scenes.BURIAL_POINTS),
    # Without a journal nothing is known to have never left: two claim groups are the bound here too.
    Fault(
        "SIGKILL where there is no disk",
        scenes.kill_without_a_disk,
        0.02,
        people=20,
        bound=2 * 50,
        settings={"DEATH_PROOF": "signature", "SES_SIGNATURE_WINDOW_SECONDS": "3"},
        sandbox=("--signature-window=2",),
    ),
    Fault("two workers racing", scenes.race(2), 0.08, people=16),
    Fault("three workers racing", scenes.race(3), 0.08, people=18),
    Fault("events twice, shuffled, late", scenes.untidy_events, 0.06),
    Fault("replies lost after acceptance", scenes.lost_replies, 0.08),
    Fault(
        "events with nobody to take them",
        scenes.deaf_service,
        0.01,
        kills_a_world=3,
        people=40,
        settings={"IN_DOUBT_QUIET_SECONDS": str(scenes.DEAF_QUIET)},
    ),
    Fault("SIGSTOP, then SIGCONT", scenes.stop_and_continue),
    Fault("database restarted", scenes.restart_database, alone=True),
    Fault("clock jumped", scenes.clock_jump),
    Fault("disk full", scenes.full_disk, small_disk=True),
    Fault("a sync failed", failed_sync),
    Fault("standby promoted, commits lost", promoted_standby(keep_state=True), pair=True),
    Fault("the same, state directory lost", promoted_standby(keep_state=False), pair=True),
    # A power cut leaves nothing to believe: two claim groups are the bound.
    Fault("power lost", power_loss, 0.06, people=60, bound=2 * 50, alone=True),
)
