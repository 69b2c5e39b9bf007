"""Events as columns: a question to all of them costs an array, and an `Event` is made only of those that are told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpwin import _engine
from tcpwin.analysis._series import Event

if TYPE_CHECKING:
    from numpy.typing import NDArray

LATE = ("out_of_order", "capture_reordered")
"""Causes of segments that came late and were not sent again."""


class EventColumns:
    """Events of a span, in order; each column has shape (n,).

    Attributes:
        time_ns: int64, nanoseconds since the epoch.
        seq: int64, as on the wire.
        rto_ns: int64, the sender's timeout, back-off included; −1 where there is none.
        causes: those that occur.
    """

    def __init__(self, records: Sequence[tuple[Any, ...]]) -> None:
        self._records = records
        self.time_ns = np.array(self._values("time_ns"), dtype=np.int64)
        self.seq = np.array(self._values("seq"), dtype=np.int64)
        self.rto_ns = np.array([-1 if each is None else each for each in self._values("rto_ns")], dtype=np.int64)
        self._is_from_a = np.array([side == "a" for side in self._values("direction")], dtype=np.bool_)
        self._names, self._name_places = _numbered(self._values("names"))
        self._causes, self._cause_places = _numbered(self._values("cause"))
        self.causes = [cause for cause in self._causes if cause is not None]

    def __len__(self) -> int:
        return len(self._records)

    def sent_by(self, side: str) -> NDArray[np.bool_]:
        """Which segments ``a`` or ``b`` sent."""
        return self._is_from_a if side == "a" else ~self._is_from_a

    def named(self, name: str) -> NDArray[np.bool_]:
        """Which events have a name among theirs."""
        sets = [place for place, names in enumerate(self._names) if name in names]
        return np.isin(self._name_places, sets)

    def caused_by(self, cause: str) -> NDArray[np.bool_]:
        """Which segments were sent again, or came late, for a cause."""
        return np.isin(self._cause_places, [place for place, each in enumerate(self._causes) if each == cause])

    def resent(self) -> NDArray[np.bool_]:
        """Which segments had data, a SYN or a FIN that had been sent before."""
        again = [place for place, each in enumerate(self._causes) if each is not None and each not in LATE]
        return np.isin(self._cause_places, again)

    def at(self, places: Iterable[int]) -> list[Event]:
        """Those at these places, whole."""
        return [Event(*self._records[place]) for place in places]

    def _values(self, field: str) -> list[Any]:
        place = _engine.EVENT_FIELDS.index(field)
        return [record[place] for record in self._records]


def _numbered(values: list[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """The different values, and the place of each among them."""
    known = {value: place for place, value in enumerate(dict.fromkeys(values))}
    return list(known), np.array([known[value] for value in values], dtype=np.intp)
