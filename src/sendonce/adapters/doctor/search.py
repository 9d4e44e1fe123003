"""The search provider, where one is set: asked for an answer that it cannot have, which costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from sendonce.domain.engine.checks import Check, ok, warning
from sendonce.domain.prospecting.search_answers import NotNow
from sendonce.errors import BadSetting
from sendonce.ports.prospecting import SearchProvider

_WITHIN = 8.0
_NO_OPERATION = "sendonce-doctor"
_FIX = "Correct the YANDEX_ settings that it names; until then no search is submitted."
_LATER = "Look whether this machine reaches it, and run doctor again."


class SearchProbe:
    """A provider that refuses us keeps searches waiting, and no letter."""

    name = "search"

    def __init__(self, provider: Callable[[], SearchProvider]) -> None:
        self._provider = provider

    async def examine(self) -> Sequence[Check]:
        try:
            provider = self._provider()
        except BadSetting as exc:
            return [warning(self.name, str(exc), _FIX)]
        try:
            async with asyncio.timeout(_WITHIN):
                said = await provider.fetch(_NO_OPERATION)
        except TimeoutError:
            what = f"{provider.name} gave no answer within {_WITHIN:g} seconds."
            return [warning(self.name, what, _LATER)]
        finally:
            await provider.close()
        if isinstance(said, NotNow) and said.code != "400":  # an id that it finds odd is an answer, too
            return [warning(self.name, said.reason, _FIX if said.by_settings else _LATER)]
        return [ok(self.name, f"The search provider {provider.name} takes our credentials.")]
