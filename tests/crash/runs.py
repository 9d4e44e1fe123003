"""From faults to a table: worlds are made, scenes are played in them, the judge looks, rows are added up."""

from __future__ import annotations

import json
import shutil
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from random import Random

from tests.crash.databases import Databases
from tests.crash.judge import judge_world
from tests.crash.scenes import (
    EVERYDAY,
    FAULTS,
    PEOPLE_PER_KILL,
    Fault,
    NotHere,
    Stage,
    full_disk,
    small_disk,
)
from tests.crash.world import World, opened
from tests.postgres import quick_folder

KILLS_A_WORLD = 40


@dataclass
class Row:
    """One line of the table."""

    fault: str
    runs: int = 0
    kills: int = 0
    duplicates: int = 0
    lost: int = 0
    most_in_doubt: int = 0
    unresolved: int = 0
    wrong: list[str] = field(default_factory=list)
    note: str = ""

    @property
    def clean(self) -> bool:
        return not (self.duplicates or self.lost or self.unresolved or self.wrong)


def play_all(kills: int, databases: Databases, seed: int, faults: Sequence[Fault] = FAULTS) -> Iterator[Row]:
    for number, fault in enumerate(faults):
        yield play(fault, round(kills * fault.share), databases, Random(seed + number))


def play(fault: Fault, kills: int, databases: Databases, dice: Random) -> Row:
    """As many worlds as it takes for so many kills; one for a fault that does not count them."""
    row = Row(fault.name)
    most_worlds = 3 * ceil(kills / KILLS_A_WORLD) + 1
    while row.runs == 0 or (row.kills < kills and row.runs < most_worlds):
        wanted = min(max(1, kills - row.kills), KILLS_A_WORLD)
        try:
            _play_once(fault, wanted, databases, dice, row)
        except NotHere as exc:
            row.note = f"not run: {exc}"
            break
        except (AssertionError, TimeoutError) as exc:
            row.wrong.append(f"{type(exc).__name__}: {exc} {_where(exc)}")
            row.runs += 1
    return row


def _where(exc: BaseException) -> str:
    lines = traceback.extract_tb(exc.__traceback__)
    return " < ".join(f"{line.name}:{line.lineno}" for line in reversed(lines))


def _play_once(fault: Fault, wanted: int, databases: Databases, dice: Random, row: Row) -> None:
    with _prepared_world(fault, wanted, databases, dice) as world:
        stage = Stage(world, dice, wanted, databases.restart)
        fault.scene(stage)
        world.finish()
        findings = judge_world(world)
        row.runs += 1
        row.kills += stage.kills
        row.duplicates += len(findings.duplicates)
        row.lost += len(findings.lost)
        row.unresolved += len(findings.in_doubt)
        row.wrong += findings.misbooked
        most = most_in_doubt(world)
        row.most_in_doubt = max(row.most_in_doubt, most)
        if most > fault.bound:
            row.wrong.append(f"{most} letters in doubt by one death, the bound is {fault.bound}")


@contextmanager
def _prepared_world(fault: Fault, wanted: int, databases: Databases, dice: Random) -> Iterator[World]:
    directory = quick_folder("sendonce-crash-")
    try:
        with ExitStack() as stack:
            if fault.scene is full_disk:
                stack.enter_context(small_disk(directory / "disk"))
            url = databases.fresh(directory)
            flags = [f"--seed={dice.randrange(2**31)}", f"--faults={json.dumps(EVERYDAY)}"]
            world = stack.enter_context(opened(World(directory, url, flags)))
            people = PEOPLE_PER_KILL * wanted if fault.share else 600
            world.prepare(max(people, 200))
            world.serve()
            yield world
    finally:
        shutil.rmtree(directory, ignore_errors=True)


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
