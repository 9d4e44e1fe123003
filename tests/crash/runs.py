"""From faults to a table: worlds are made, scenes are played in them, the judge looks, rows are added up."""

from __future__ import annotations

import json
import shutil
import subprocess
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from random import Random

from tests.crash.databases import Databases
from tests.crash.faults import FAULTS, Fault
from tests.crash.judge import judge_world
from tests.crash.scenes import EVERYDAY, NotHere, Stage
from tests.crash.server_pair import ServerPair
from tests.crash.world import World, opened
from tests.postgres import quick_folder

# A scene that kills nobody is played once, and once more for so many kills that were asked for.
KILLS_A_RUN = 500
PEOPLE_WITHOUT_KILLS = 400


@dataclass
class Row:
    """One line of the table, or what one world adds to it."""

    fault: str
    runs: int = 0
    kills: int = 0
    duplicates: int = 0
    lost: int = 0
    most_in_doubt: int = 0
    unresolved: int = 0
    parked: int = 0
    """Letters that the rule of absence leaves to a person; the scene settles them by the provider's log."""
    wrong: list[str] = field(default_factory=list)
    note: str = ""
    hits: dict[str, int] = field(default_factory=dict)
    """How often each failpoint has struck."""

    @property
    def clean(self) -> bool:
        return not (self.duplicates or self.lost or self.unresolved or self.wrong)

    def add(self, other: Row) -> None:
        self.runs += other.runs
        self.kills += other.kills
        self.duplicates += other.duplicates
        self.lost += other.lost
        self.most_in_doubt = max(self.most_in_doubt, other.most_in_doubt)
        self.unresolved += other.unresolved
        self.parked += other.parked
        self.wrong += other.wrong
        self.note = self.note or other.note
        self.hits = dict(Counter(self.hits) + Counter(other.hits))


@dataclass(frozen=True)
class House:
    """What the worlds of one run share."""

    databases: Databases
    seed: int
    jobs: int = 1
    """How many worlds at a time."""


def play_all(kills: int, house: House, faults: Sequence[Fault] = FAULTS) -> Iterator[Row]:
    for fault in faults:
        if fault.share:
            yield play(fault, house, kills=round(kills * fault.share))
        else:
            yield play(fault, house, runs=1 + kills // KILLS_A_RUN)


def play(fault: Fault, house: House, kills: int = 0, runs: int = 1) -> Row:
    """So many worlds, and then as many as it takes for so many kills, within reason."""
    row = Row(fault.name)
    jobs = 1 if fault.alone else house.jobs
    most_runs = max(runs, 2 * ceil(kills / fault.kills_a_world) + 3)
    under_way: dict[Future[Row], int] = {}
    opened_so_far = 0
    with ThreadPoolExecutor(jobs) as pool:
        while True:
            missing = kills - row.kills - sum(under_way.values())
            more = (missing > 0 or opened_so_far < runs) and opened_so_far < most_runs and not row.note
            if more and len(under_way) < jobs:
                wanted = min(max(missing, 1), fault.kills_a_world)
                dice = Random(f"{house.seed} {fault.name} {opened_so_far}")
                under_way[pool.submit(_play_once, fault, wanted, house, dice)] = wanted
                opened_so_far += 1
            elif under_way:
                for finished in wait(under_way, return_when=FIRST_COMPLETED).done:
                    del under_way[finished]
                    row.add(finished.result())
            else:
                break
    return _complete(row, fault, kills)


def _complete(row: Row, fault: Fault, kills: int) -> Row:
    if row.note:
        return row
    if row.kills < kills:
        row.wrong.append(f"only {row.kills} of {kills} kills landed in {row.runs} runs")
    unhit = [name for name in fault.failpoints if not row.hits.get(name)]
    if unhit and kills >= 2 * len(fault.failpoints):
        row.wrong.append(f"these failpoints were never reached: {', '.join(unhit)}")
    return row


def _play_once(fault: Fault, wanted: int, house: House, dice: Random) -> Row:
    row = Row(fault.name, runs=1)
    try:
        with ExitStack() as stack:
            pair = _pair(fault, house, stack)
            world = stack.enter_context(_prepared_world(fault, wanted, house, dice, pair))
            stage = Stage(world, dice, wanted, house.databases, pair)
            fault.scene(stage)
            world.finish()
            row.kills = stage.kills
            row.hits = dict(stage.hits)
            _judge_into(row, stage, fault.bound)
    except NotHere as exc:
        return Row(fault.name, note=f"not run: {exc}")
    except (AssertionError, TimeoutError, subprocess.TimeoutExpired) as exc:
        row.wrong.append(f"{type(exc).__name__}: {exc} {_where(exc)}")
    return row


def _pair(fault: Fault, house: House, stack: ExitStack) -> ServerPair | None:
    if not fault.pair:
        return None
    if house.databases.pair is None:
        raise NotHere("SQLite has no standby")
    return stack.enter_context(house.databases.pair())


def _judge_into(row: Row, stage: Stage, bound: int) -> None:
    findings = judge_world(stage.world)
    row.duplicates = len(findings.duplicates)
    row.lost = len(findings.lost)
    row.unresolved = len(findings.in_doubt)
    row.parked = len(stage.world.parked)
    row.wrong += findings.misbooked
    row.wrong += [_story(stage.world, person) for person in (*findings.duplicates, *findings.lost)]
    row.most_in_doubt = max(most_in_doubt(stage.world), stage.most_in_doubt)
    if row.most_in_doubt > bound:
        row.wrong.append(f"{row.most_in_doubt} letters in doubt by one death, the bound is {bound}")


def _story(world: World, person: str) -> str:
    """How somebody was written to twice or not at all, as the provider and the ledger tell it."""
    taken = [
        f"attempt {row['attempt']} {row['t']}" for row in world.sandbox.acceptances() if person in row["to"]
    ]
    attempts = world.eye.rows(_ATTEMPTS, person=person)
    told = [tuple(row) for row in attempts]
    return f"{person} was accepted {len(taken)} times: {', '.join(taken)}; the ledger: {told}"


_ATTEMPTS = (
    "SELECT j.state, a.attempt, a.claimed_at, a.ended_at, a.outcome, a.reason, a.death_proof, "
    "a.absence_proof FROM attempts a JOIN message_jobs j ON j.id = a.job_id "
    "WHERE j.recipient = :person ORDER BY a.attempt"
)


def _where(exc: BaseException) -> str:
    lines = traceback.extract_tb(exc.__traceback__)
    return " < ".join(f"{line.name}:{line.lineno}" for line in reversed(lines))


@contextmanager
def _prepared_world(
    fault: Fault, wanted: int, house: House, dice: Random, pair: ServerPair | None
) -> Iterator[World]:
    directory = quick_folder("sendonce-crash-")
    try:
        with ExitStack() as stack:
            if fault.small_disk:
                stack.enter_context(small_disk(directory / "disk"))
            url = pair.url if pair else stack.enter_context(house.databases.fresh(directory))
            flags = [f"--seed={dice.randrange(2**31)}", f"--faults={json.dumps(EVERYDAY)}", *fault.sandbox]
            world = stack.enter_context(opened(World(directory, url, flags, **fault.settings)))
            world.prepare(fault.people * max(wanted, 5) if fault.share else PEOPLE_WITHOUT_KILLS)
            world.serve()
            yield world
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def small_disk(directory: Path) -> Iterator[bool]:
    """A few megabytes of disk at ``directory``; False where that is not allowed."""
    directory.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "sendonce-crash", str(directory)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(directory)], check=True)


def most_in_doubt(world: World) -> int:
    """The most letters that one worker's death left in doubt, as those who buried it tell."""
    burials = [
        line
        for log in Path(world.directory).glob("worker-*.log")
        for line in _json_lines(log)
        if line.get("event") == "buried a dead worker"
    ]
    return max((int(str(line["in_doubt"])) for line in burials), default=0)


def _json_lines(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_bytes().splitlines() if line.startswith(b"{")]
