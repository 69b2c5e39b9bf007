"""Events and stalls of the connection that a rule judges.

In: a case. Out: events, or those kept from the first reading; stalls, or none if the capture may not be read again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tcpwin.analysis import Event, Stall
from tcpwin.errors import TcpwinError
from tcpwin.limits.case import Case


def events_of(case: Case, *names: str, side: str | None = None, causes: Collection[str] = ()) -> Sequence[Event]:
    """Return `Case.events`, or none if the source is gone."""
    try:
        return case.events(*names, side=side, causes=causes)
    except TcpwinError:
        return []


def count_of(case: Case, name: str, side: str) -> int:
    """Count a side's events of a name among `Case.events`; 0 if the source is gone."""
    try:
        return case.count_events(name, side=side)
    except TcpwinError:
        return 0


def stalls_of(case: Case) -> list[Stall]:
    """Return the connection's long silences, or none if the source is gone."""
    try:
        return case.stalls
    except TcpwinError:
        return []
