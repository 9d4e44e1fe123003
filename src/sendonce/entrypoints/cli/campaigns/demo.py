"""sendonce demo-campaign: three clients, a bad list, a bad sender and a killed worker, in a few minutes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from sendonce.entrypoints.cli.campaigns.demo_judge import (
    DEMO,
    SPEED,
    Letter,
    View,
    broken_promises,
    shares,
)
from sendonce.entrypoints.cli.campaigns.demo_world import CampaignWorld, OneKill
from sendonce.entrypoints.cli.demo_stage import DemoStage, make_directory
from sendonce.entrypoints.cli.output import print_table, say
from sendonce.errors import Unavailable

_HOUR = timedelta(hours=1)
_BARS = " ▁▂▃▄▅▆▇█"


def demo_campaign(
    directory: Annotated[
        Path, typer.Option("--dir", help="Where everything is put; must not exist yet or be a demo's.")
    ] = Path("sendonce-demo-campaign"),
    seed: Annotated[int | None, typer.Option(help="The dice of the sandbox and of the kill.")] = None,
    database_url: Annotated[str | None, typer.Option(help="Another database than an SQLite file.")] = None,
    workers: Annotated[int, typer.Option(min=1, max=8, help="How many share the work.")] = 1,
) -> None:
    """Run three clients' campaigns through the sandbox, days in seconds: no account, no network."""
    seed = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    make_directory(directory)
    with ExitStack() as stack:
        stage = DemoStage(directory.resolve(), stack)
        say(f"Seed {seed}. Everything is in {stage.directory}. A day takes {86400 / SPEED:.0f} s.")
        world = CampaignWorld(stage, seed, database_url)
        world.start()
        world.send(workers, OneKill(seed))
        stage.end()
        _judge(world)


def _judge(world: CampaignWorld) -> None:
    views, letters = world.views(), list(world.accepted())
    _show(views, letters)
    problems = list(broken_promises(views, letters))
    for problem in problems:
        say(f"NOT AS PROMISED: {problem}")
    if problems:
        raise Unavailable(f"The demo did not end as promised: see {world.stage.directory}.")
    say("As promised: nothing twice, no limit exceeded, the bad list paused, the bad sender blocked.")


def _show(views: Sequence[View], letters: Sequence[Letter]) -> None:
    rows = [
        [each["tenant"], each["status"], each["counts"]["sent"], each["counts"]["bounced"], each["reason"]]
        for each in views
    ]
    print_table("Campaigns", ["tenant", "status", "sent", "bounced", "reason"], rows)
    senders = [sender for each in views for sender in each["senders"]]
    columns = ["address", "state", "complaints", "reason"]
    print_table("Senders", columns, [[sender[name] for name in columns] for sender in senders])
    _chart(letters)
    found = shares(views, letters)
    for share in found:
        say(str(share))
    if len(found) == 1:
        say("No day used up the account's letters, so the clients' shares of them were not put to the test.")


def _chart(letters: Sequence[Letter]) -> None:
    """Letters of each tenant, an hour a column and a day a row."""
    start = min(letter.at for letter in letters).replace(hour=0, minute=0, second=0, microsecond=0)
    hours = Counter((letter.tenant, int((letter.at - start) / _HOUR)) for letter in letters)
    most = max(hours.values())
    say(f"Letters by tenant and hour, from 0 to 24 o'clock; the highest column is {most}:")
    for client in DEMO.clients:
        last = max((hour for name, hour in hours if name == client.name), default=0)
        for day in range(last // 24 + 1):
            counted = [hours[client.name, day * 24 + hour] for hour in range(24)]
            bars = "".join(_BARS[-(-count * (len(_BARS) - 1) // most)] for count in counted)
            say(f"  {client.name:6} day {day + 1} |{bars}| {sum(counted)}")
