"""How much SES takes: recipients a second, and recipients in 24 hours."""

from __future__ import annotations

import time
from collections import deque

from sendonce.sandbox.refusals import ServiceRefusal

DAY = 86_400.0


class SendingLimits:
    """Both windows slide, and both count recipients of letters that were accepted."""

    def __init__(self, max_rate: float, daily_quota: float) -> None:
        self.max_rate = max_rate
        self.daily_quota = daily_quota
        self._last_second: deque[tuple[float, int]] = deque()
        self._in_last_second = 0
        self._last_day: deque[tuple[int, int]] = deque()  # (minute, recipients)
        self._in_last_day = 0

    def admit(self, recipients: int, counted_today: int, wall: float) -> None:
        """Take the recipients into both windows, or raise what SES answers.

        Letters to the mailbox simulator count for the rate but not for the day.
        """
        moment = time.monotonic()
        while self._last_second and self._last_second[0][0] <= moment - 1.0:
            self._in_last_second -= self._last_second.popleft()[1]
        if self._in_last_second + recipients > self.max_rate:
            raise ServiceRefusal(429, "TooManyRequestsException", "Maximum sending rate exceeded.")
        if 0 <= self.daily_quota < self.sent_last_day(wall) + counted_today:
            raise ServiceRefusal(400, "ThrottlingException", "Daily message quota exceeded.")
        self._last_second.append((moment, recipients))
        self._in_last_second += recipients
        self.remember(counted_today, wall)

    def remember(self, recipients: int, wall: float) -> None:
        """Count recipients for the day only: also those of an earlier run."""
        minute = int(wall // 60)
        self._in_last_day += recipients
        if self._last_day and self._last_day[-1][0] == minute:
            recipients += self._last_day.pop()[1]
        self._last_day.append((minute, recipients))

    def sent_last_day(self, wall: float) -> int:
        while self._last_day and self._last_day[0][0] * 60 < wall - DAY:
            self._in_last_day -= self._last_day.popleft()[1]
        return self._in_last_day
