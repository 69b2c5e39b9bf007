"""Events as columns: a question to all of them costs an array, and an `Event` is made only of those that are told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

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

    def __init__(self, details: _engine.Details, id: int) -> None:
        self._details = details
        self._id = id
        columns = details.event_columns(id)
        self.time_ns, self.seq, self.rto_ns, self._is_from_a, self._names, self._causes, self.causes = columns

    def __len__(self) -> int:
        return len(self.time_ns)

    def sent_by(self, side: str) -> NDArray[np.bool_]:
        """Which segments ``a`` or ``b`` sent."""
        return self._is_from_a if side == "a" else ~self._is_from_a

    def named(self, name: str) -> NDArray[np.bool_]:
        """Which events have a name among theirs."""
        return (self._names >> _engine.EVENT_NAMES.index(name) & 1).astype(np.bool_)

    def caused_by(self, cause: str) -> NDArray[np.bool_]:
        """Which segments were sent again, or came late, for a cause."""
        if cause not in self.causes:
            return np.zeros(len(self), dtype=np.bool_)
        is_so: NDArray[np.bool_] = self._causes == self.causes.index(cause)
        return is_so

    def resent(self) -> NDArray[np.bool_]:
        """Which segments had data, a SYN or a FIN that had been sent before."""
        again = [place for place, cause in enumerate(self.causes) if cause not in LATE]
        return np.isin(self._causes, again)

    def at(self, places: Iterable[int]) -> list[Event]:
        """Those at these places, whole."""
        return [Event(*values) for values in self._details.events_at(self._id, list(places))]
