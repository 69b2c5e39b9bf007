"""Whether the wall clock can be believed, before anything is deleted because of its age.

A clock that jumps ahead by a year would end every capture at once. What is over is deleted only once the clock has gone
on steadily for a while, beside one that cannot be set.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

JUMP_SECONDS = 3600.0
"""By which the two clocks may differ."""
STEADY_SECONDS = 3600.0
"""For which a clock that jumped has to go on before it is believed: in that time somebody may set it right."""
AWAY_SECONDS = 86_400.0
"""Of a service that was not running: after longer it cannot tell a jump from its absence."""

log = structlog.get_logger("tcpwin.clock")


def _uptime() -> float:
    # Goes on while the machine sleeps, where the system has such a clock.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Clock:
    """The wall clock, watched.

    Args:
        file: keeps when it was last asked; a service that is started anew goes on from there.
    """

    def __init__(
        self, file: Path, *, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _uptime
    ) -> None:
        self._file = file
        self._wall, self._steady = wall, steady
        self._last: tuple[float, float] | None = None
        self._believed_from = 0.0

    def is_steady(self) -> bool:
        """Whether the clock can be believed; to be asked now and then."""
        wall, steady = self._wall(), self._steady()
        if self._last is None:
            gap = wall - self._before(wall)
            is_jump = not -JUMP_SECONDS < gap < AWAY_SECONDS
        else:
            gap = (wall - self._last[0]) - (steady - self._last[1])
            is_jump = abs(gap) > JUMP_SECONDS
        if is_jump:
            self._believed_from = steady + STEADY_SECONDS
            log.warning("the clock jumped: nothing is deleted by its age for a while", seconds=round(gap))
        self._last = wall, steady
        with suppress(OSError):
            self._file.write_text(str(wall))
        return steady >= self._believed_from

    def _before(self, wall: float) -> float:
        try:
            return float(self._file.read_text())
        except (OSError, ValueError):
            return wall
