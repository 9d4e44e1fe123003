"""sendonce scheduler: the duties that need no transport, for deployments that keep them apart."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sendonce.entrypoints.cli.context import opened_store, ready_settings

if TYPE_CHECKING:
    from sendonce.flows.mailouts.keep_house import Housekeeper


def scheduler() -> None:
    """Start what is due, plan what is started, finish what is done, bury dead workers. Sends nothing."""
    from sendonce.wiring.worker import make_housekeeper

    settings = ready_settings()
    with opened_store(settings, make=True) as store:
        asyncio.run(_until_signal(make_housekeeper(settings, store)))


async def _until_signal(keeper: Housekeeper) -> None:
    """SIGTERM, SIGINT or SIGHUP."""
    from sendonce.entrypoints.worker import stopping_signals

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in stopping_signals():
        loop.add_signal_handler(number, stopping.set)
    await keeper.run(stopping)
