"""The checks before a send: all at once, each within its time, told in a fixed order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from sendonce.domain.engine.checks import Check, stop
from sendonce.errors import SendonceError

PATIENCE = 10.0


class Probe(Protocol):
    """Looks at one side of the installation. ``name`` is what is told where it does not come back."""

    @property
    def name(self) -> str: ...

    async def examine(self) -> Sequence[Check]: ...


async def examine(probes: Sequence[Probe], patience: float = PATIENCE) -> list[Check]:
    """What all probes found. Nothing that hangs or fails keeps the others from being told."""
    found = await asyncio.gather(*(_examine_one(probe, patience) for probe in probes))
    return [check for checks in found for check in checks]


async def _examine_one(probe: Probe, patience: float) -> Sequence[Check]:
    try:
        async with asyncio.timeout(patience):
            return await probe.examine()
    except TimeoutError:
        return [
            stop(
                probe.name,
                f"This did not come to an end within {patience:g} seconds.",
                "Look whether the database, the mail provider and the network answer, and run doctor again.",
            )
        ]
    except SendonceError as exc:
        return [stop(probe.name, str(exc), "The text says what to do.")]
