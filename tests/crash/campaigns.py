"""``make crash-campaign``: kill the workers of the campaign demonstration again and again; its judge looks.

The world and the judge are those of ``make demo-campaign``. There one worker is killed once; here any number
of them at once, at random moments and while they have letters on the wire.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from random import Random

from sendonce.entrypoints.cli.campaigns.demo_judge import DEMO, broken_promises, shares
from sendonce.entrypoints.cli.campaigns.demo_world import CampaignWorld, Worker
from sendonce.entrypoints.cli.demo_stage import DemoStage
from sendonce.errors import Unavailable
from tests.crash.__main__ import say
from tests.crash.databases import Databases, postgres_databases, sqlite_databases
from tests.crash.results import machine, today
from tests.crash.scenes import EVERYDAY
from tests.crash.world import Eye
from tests.postgres import quick_folder

KILLS_A_WORLD = 30
TERMS = replace(DEMO.smaller(3), account_limit=90)
"""A machine that starts a worker every few seconds sends few letters in a day of twenty seconds. They are to
fill the account all the same, so that the clients' shares show."""
WORKERS = {"sqlite": 1, "postgres": 3}


@dataclass
class RandomKills:
    """Every few seconds, some of the workers; mostly also one that has letters in ``sending``."""

    dice: Random
    eye: Eye
    wanted: int
    kills: int = 0
    in_mid_send: int = 0
    _next: float = field(default_factory=time.monotonic)

    def __call__(self, workers: Sequence[Worker]) -> Sequence[Worker]:
        if self.kills >= self.wanted or time.monotonic() < self._next:
            return ()
        chosen = set(self.dice.sample(workers, self.dice.randint(1, len(workers))))
        if self.dice.random() < 0.7:
            chosen |= self._stopped_in_mid_send(workers)
        for worker in chosen:
            worker.kill()
            worker.wait()
        self.kills += len(chosen)
        self.in_mid_send += sum(self.eye.sending_of(worker.pid) > 0 for worker in chosen)
        self._next = time.monotonic() + self.dice.uniform(2.0, 8.0)
        return list(chosen)

    def _stopped_in_mid_send(self, workers: Sequence[Worker], seconds: float = 5.0) -> set[Worker]:
        """One that stands still with letters in ``sending``. At night there is none."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for worker in workers:
                if self.eye.sending_of(worker.pid):
                    worker.send_signal(signal.SIGSTOP)
                    if self.eye.sending_of(worker.pid):
                        return {worker}
                    worker.send_signal(signal.SIGCONT)
            time.sleep(0.005)
        return set()


@dataclass
class Tally:
    worlds: int = 0
    kills: int = 0
    in_mid_send: int = 0
    letters: int = 0
    full_accounts: int = 0
    """Worlds in which the account's letters of a day were used up, so that clients had to share them."""
    broken: list[str] = field(default_factory=list)


def play(databases: Databases, kills: int, workers: int, seed: int) -> Tally:
    """As many worlds as it takes for so many kills."""
    tally = Tally()
    while tally.kills < kills and not tally.broken:
        tally.worlds += 1
        _play_once(databases, min(KILLS_A_WORLD, kills - tally.kills), workers, seed + tally.worlds, tally)
        say(f"World {tally.worlds}: {tally.kills} kills so far.")
    return tally


def _play_once(databases: Databases, wanted: int, workers: int, seed: int, tally: Tally) -> None:
    directory = quick_folder("sendonce-crash-")
    (directory / "disk").mkdir()
    with ExitStack() as stack:
        url = stack.enter_context(databases.fresh(directory))
        slow = f"--faults={json.dumps(EVERYDAY)}"
        world = CampaignWorld(DemoStage(directory, stack), seed, url, [slow], TERMS)
        world.start()
        killer = RandomKills(Random(seed), Eye(url), wanted)
        stack.callback(killer.eye.let_go)
        broken = _broken(world, workers, killer, tally)
    tally.kills += killer.kills
    tally.in_mid_send += killer.in_mid_send
    tally.broken += [f"{promise} (seed {seed}, {directory})" for promise in broken]
    if not broken:
        shutil.rmtree(directory)


def _broken(world: CampaignWorld, workers: int, killer: RandomKills, tally: Tally) -> list[str]:
    try:
        world.send(workers, killer)
    except Unavailable as exc:
        return [str(exc)]
    world.stage.end()
    views, letters = world.views(), list(world.accepted())
    tally.letters += len(letters)
    tally.full_accounts += len(shares(views, letters, TERMS)) > 1
    return list(broken_promises(views, letters, TERMS))


def main() -> int:
    arguments = _arguments()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(2**31)
    open_databases = sqlite_databases if arguments.store == "sqlite" else postgres_databases
    workers = arguments.workers or WORKERS[arguments.store]
    say(f"{arguments.kills} kills on {arguments.store}, {workers} at work, seed {seed}")
    began = time.monotonic()
    with open_databases() as databases:
        tally = play(databases, arguments.kills, workers, seed)
        where = machine(databases.version)
    say(
        f"{tally.kills} kills ({tally.in_mid_send} of them with letters in sending), {tally.worlds} worlds, "
        f"{tally.letters} letters, {tally.full_accounts} worlds with a full account, "
        f"{time.monotonic() - began:.0f} s. {today()}, {where}."
    )
    for promise in tally.broken:
        say(f"NOT AS PROMISED: {promise}")
    say(f"again: make crash-campaign KILLS={arguments.kills} STORE={arguments.store} SEED={seed}")
    return 1 if tally.broken else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.campaigns", description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--store", choices=tuple(WORKERS), default="sqlite")
    parser.add_argument("--workers", type=int, default=None, help="one on SQLite, three on PostgreSQL")
    parser.add_argument("--seed", type=int, default=None, help="the dice of an earlier run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
