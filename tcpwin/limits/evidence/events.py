"""Events and stalls of the connection that a rule judges.

In: a case. Out: events, or those that the first reading kept; stalls, or none where the capture may not be read again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tcpwin.analysis import Event, Stall
from tcpwin.errors import TcpwinError
from tcpwin.limits.case import Case


def events_of(case: Case, *names: str, side: str | None = None, causes: Collection[str] = ()) -> Sequence[Event]:
    """What `Case.events` gives; none where the source is gone."""
    try:
        return case.events(*names, side=side, causes=causes)
    except TcpwinError:
        return []


def count_of(case: Case, name: str, side: str) -> int:
    """How many events of a name a side sent, of those that `Case.events` gives; 0 where the source is gone."""
    try:
        return case.count_events(name, side=side)
    except TcpwinError:
        return 0


def stalls_of(case: Case) -> list[Stall]:
    """The connection's long silences; none likewise."""
    try:
        return case.stalls
    except TcpwinError:
        return []
