"""When a sample was taken, from the stamps that people put between samples or before each line.

In: a line. Out: the time in it, and what is left of the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, tzinfo
from decimal import Decimal

_MARK = re.compile(r"(?:###|Time:)\s*(\d{9,11}(?:\.\d{1,9})?)\s*")


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a line says of time.

    Attributes:
        time_ns: nanoseconds since the epoch; None for a separator without a time.
        rest: the line without its prefix; None where the whole line is a stamp.
        is_new_block: whether a new sample begins here.
    """

    time_ns: int | None
    rest: str | None
    is_new_block: bool


class Stamps:
    """Finds the stamps of one file. `zone` is that of times that name none."""

    def __init__(self, *, zone: tzinfo = UTC) -> None:
        self._zone = zone

    def take(self, line: str) -> Stamp | None:
        """The stamp of a line; None where it has none."""
        mark = _MARK.fullmatch(line)
        return Stamp(int(Decimal(mark[1]).scaleb(9)), None, is_new_block=True) if mark else None
