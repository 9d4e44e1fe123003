"""The queue that events are fetched from, where there is one."""

from __future__ import annotations

from collections.abc import Sequence

from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.adapters.events.sqs import SqsQueue
from sendonce.domain.engine.checks import Check, count_of, ok, stop, warning
from sendonce.errors import Unavailable

# Workers empty it as events come: as many as this means that none is at it.
_MANY_WAITING = 1000


class QueueProbe:
    name = "events.queue"

    def __init__(self, queue: SqsQueue, url: str) -> None:
        self._queue = queue
        self._url = url

    async def examine(self) -> Sequence[Check]:
        try:
            waiting = await in_own_thread(self._look)
        except Unavailable as exc:
            fix = (
                "Correct SES_EVENTS_QUEUE_URL and allow sqs:ReceiveMessage, sqs:DeleteMessage and "
                "sqs:GetQueueAttributes to this key."
            )
            return [stop(self.name, f"The queue {self._url} cannot be read: {exc}.", fix)]
        what = f"The queue {self._url} answers; {count_of(waiting, 'event waits', 'events wait')} in it."
        if waiting >= _MANY_WAITING:
            return [warning(self.name, what, "Start a worker: 'sendonce serve' or 'sendonce worker'.")]
        return [ok(self.name, what)]

    def _look(self) -> int:
        try:
            return self._queue.waiting()
        finally:
            self._queue.close()
