"""A guard against wall clocks that jump: due times must not all come due at once by mistake."""

from __future__ import annotations

TOLERANCE = 60.0


class ClockGuard:
    """Holds claims while wall time has outrun the time since boot by more than a minute.

    ``agree`` is called with a second source's idea of the wall time (the provider's Date, the
    database server's clock); if it confirms the jump, the new time is taken as right.
    """

    def __init__(self, wall: float, boot: float) -> None:
        self._offset = wall - boot

    def trusts(self, wall: float, boot: float) -> bool:
        return (wall - boot) - self._offset <= TOLERANCE

    def agree(self, wall: float, boot: float, second_source: float) -> bool:
        if abs(second_source - wall) <= TOLERANCE:
            self._offset = wall - boot
            return True
        return False
