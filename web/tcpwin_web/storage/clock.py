"""Decide whether the wall clock can be trusted before expired data is deleted.

A clock that jumps ahead by a year would expire every capture at once. Expired data is deleted only after the clock has
run steadily for a while, compared with a clock that cannot be set.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

JUMP_SECONDS = 3600.0
"""Allowed difference between the two clocks."""
STEADY_SECONDS = 3600.0
"""Time for which a clock must run steadily after a jump: an operator may correct it meanwhile."""
AWAY_SECONDS = 86_400.0
"""Longest downtime after which a jump can be distinguished from the downtime."""

log = structlog.get_logger("tcpwin.clock")


def _uptime() -> float:
    # Continues while the machine sleeps, where the system has such a clock.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Clock:
    """The wall clock, checked for jumps.

    Args:
        file: keeps the time of the last check, for the next service.
    """

    def __init__(
        self, file: Path, *, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _uptime
    ) -> None:
        self._file = file
        self._wall, self._steady = wall, steady
        self._last: tuple[float, float] | None = None
        self._believed_from = 0.0

    def is_steady(self) -> bool:
        """Whether the clock can be trusted; call it regularly."""
        wall, steady = self._wall(), self._steady()
        if self._last is None:
            gap = wall - self._before(wall)
            is_jump = not -JUMP_SECONDS < gap < AWAY_SECONDS
        else:
            gap = (wall - self._last[0]) - (steady - self._last[1])
            is_jump = abs(gap) > JUMP_SECONDS
        if is_jump:
            self._believed_from = steady + STEADY_SECONDS
            log.warning("the clock jumped: expired data is not deleted for a while", seconds=round(gap))
        self._last = wall, steady
        with suppress(OSError):
            self._file.write_text(str(wall))
        return steady >= self._believed_from

    def _before(self, wall: float) -> float:
        try:
            return float(self._file.read_text())
        except (OSError, ValueError):
            return wall
