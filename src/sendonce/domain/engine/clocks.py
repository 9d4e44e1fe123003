"""A guard against wall clocks that jump: due times must not all come due at once by mistake."""

from __future__ import annotations

TOLERANCE = 60.0


class ClockGuard:
    """Compares a wall clock with the time since boot, from look to look.

    A clock that has outrun it by more than a minute is not trusted until it is back, or until a second
    clock confirms the new time. Drift is followed: only a jump counts. Times are seconds.
    """

    def __init__(self, wall: float, boot: float) -> None:
        self._offset = wall - boot
        self.trusted = True

    def observe(self, wall: float, boot: float) -> bool:
        """Take a look; whether the clock can be trusted."""
        self.trusted = wall <= self.latest(boot)
        if self.trusted:
            self._offset = wall - boot
        return self.trusted

    def latest(self, boot: float) -> float:
        """The latest wall time that would be trusted now."""
        return self._offset + boot + TOLERANCE

    def confirm(self, wall: float, boot: float, second_clock: float) -> bool:
        """Whether a second clock agrees with this one; then its time is taken as right."""
        agrees = abs(second_clock - wall) <= TOLERANCE
        if agrees:
            self._offset = wall - boot
            self.trusted = True
        return agrees
