"""Events, stalls and closed windows as columns.

Columns answer a question about all of them with one array operation; an `Event`, `Stall` or `ZeroWindowEpisode` is
created only for those that are reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from tcpwin import _engine
from tcpwin.analysis.direction import ZeroWindowEpisode
from tcpwin.analysis.series import Stall
from tcpwin.model import Event

if TYPE_CHECKING:
    from numpy.typing import NDArray

LATE = ("out_of_order", "capture_reordered")
"""Causes of segments that arrived late but were not retransmitted."""


class EventColumns:
    """Events of a span, in order; each column has shape (n,).

    Attributes:
        time_ns: int64, nanoseconds since the epoch.
        seq: int64, as on the wire.
        rto_ns: int64, the sender's timeout including back-off; −1 if unknown.
        causes: the causes that occur.
    """

    def __init__(self, details: _engine.Details, id: int) -> None:
        self._details = details
        self._id = id
        columns = details.event_columns(id)
        self.time_ns, self.seq, self.rto_ns, self._is_from_a, self._names, self._causes, self.causes = columns

    def __len__(self) -> int:
        return len(self.time_ns)

    def sent_by(self, side: str) -> NDArray[np.bool_]:
        """Return a mask of the segments sent by ``a`` or ``b``."""
        return self._is_from_a if side == "a" else ~self._is_from_a

    def named(self, name: str) -> NDArray[np.bool_]:
        """Return a mask of the events with this name."""
        return (self._names >> _engine.EVENT_NAMES.index(name) & 1).astype(np.bool_)

    def caused_by(self, cause: str) -> NDArray[np.bool_]:
        """Return a mask of the segments that were retransmitted or late for this cause."""
        if cause not in self.causes:
            return np.zeros(len(self), dtype=np.bool_)
        is_so: NDArray[np.bool_] = self._causes == self.causes.index(cause)
        return is_so

    def resent(self) -> NDArray[np.bool_]:
        """Return a mask of the segments whose data, SYN or FIN had been sent before."""
        # The last element is for index −1, no cause.
        again = np.array([*(cause not in LATE for cause in self.causes), False])
        is_again: NDArray[np.bool_] = again[self._causes]
        return is_again

    def at(self, places: Iterable[int]) -> list[Event]:
        """Return the events at these positions."""
        return [Event(*values) for values in self._details.events_at(self._id, list(places))]


class StallColumns:
    """Stalls that touch a span, in order; each column has shape (n,).

    Attributes:
        start_ns, end_ns: int64, nanoseconds since the epoch.
    """

    def __init__(self, details: _engine.Details, id: int) -> None:
        self._details = details
        self._id = id
        self.start_ns, self.end_ns, self._causes = details.stall_columns(id)

    def __len__(self) -> int:
        return len(self.start_ns)

    def caused_by(self, *causes: str) -> NDArray[np.bool_]:
        """Return a mask of the stalls with one of these causes."""
        is_one = np.array([name in causes for name in _engine.STALL_CAUSES])
        found: NDArray[np.bool_] = is_one[self._causes]
        return found

    def at(self, places: Iterable[int]) -> list[Stall]:
        """Return the stalls at these positions."""
        return [Stall(**record) for record in self._details.stalls_at(self._id, list(places))]


class ZeroWindowColumns:
    """A direction's closed windows that touch a span, in order; at most 65,536.

    Attributes:
        start_ns, end_ns: int64, nanoseconds since the epoch; each column has shape (n,).
    """

    def __init__(self, details: _engine.Details, id: int, is_from_a: bool) -> None:
        self._details = details
        self._id = id
        self._is_from_a = is_from_a
        self.start_ns, self.end_ns = details.zero_window_columns(id, is_from_a)

    def __len__(self) -> int:
        return len(self.start_ns)

    def at(self, places: Iterable[int]) -> list[ZeroWindowEpisode]:
        """Return the closed windows at these positions."""
        return [
            ZeroWindowEpisode(**each) for each in self._details.zero_windows_at(self._id, self._is_from_a, list(places))
        ]
