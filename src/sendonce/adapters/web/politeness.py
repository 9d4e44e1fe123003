"""One visitor per host at a time, with a pause between its requests."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

_MANY = 10_000
# Longer than any pause that a visit can wait for.
_FORGET_AFTER = 600.0


@dataclass(slots=True)
class _Host:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    visitors: int = 0
    asked_at: float = -_FORGET_AFTER


class Hosts:
    """When each host was asked last, for all visits of one crawler."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}

    def turn(self) -> Turn:
        return Turn(self)

    def of(self, name: str) -> _Host:
        if len(self._hosts) > _MANY:
            now = time.monotonic()
            self._hosts = {
                it: host for it, host in self._hosts.items() if host.visitors or host.asked_at > now
            }
        return self._hosts.setdefault(name, _Host())


class Turn:
    """What one visit holds: a single host at a time, so two visits that redirect to each other never wait
    for each other."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._name = ""
        self._host: _Host | None = None

    async def wait_for(self, name: str, pause: float) -> None:
        """Until this host may be asked again: ``pause`` seconds after the last request to it."""
        if self._name != name:
            self.leave()
            host = self._hosts.of(name)
            host.visitors += 1
            try:
                await host.lock.acquire()
            except BaseException:
                host.visitors -= 1
                raise
            self._name, self._host = name, host
        assert self._host is not None
        await asyncio.sleep(max(0.0, self._host.asked_at + pause - time.monotonic()))

    def asked(self) -> None:
        """A request has just been answered."""
        if self._host is not None:
            self._host.asked_at = time.monotonic()

    def leave(self) -> None:
        if self._host is not None:
            self._host.visitors -= 1
            self._host.lock.release()
        self._name, self._host = "", None
