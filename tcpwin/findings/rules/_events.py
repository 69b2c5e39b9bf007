"""Events and stalls of the connections that a rule judges, read many at a time.

In: a case. Out: events, or none where reading again is not possible or would cost too much. A first reading keeps no
events: they come from reading the capture again, once for each `BATCH` of candidates and at most `READS` times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from weakref import WeakKeyDictionary

from tcpwin.analysis import Event, Stall
from tcpwin.errors import TcpwinError
from tcpwin.findings._case import Case
from tcpwin.snapshots import Analysis

BATCH = 256
READS = 8
LARGE_PACKETS = 1_000_000
"""A capture with more packets is read again once only, for the first candidates."""


@dataclass(slots=True)
class _Read:
    ids: set[int] = field(default_factory=set)
    times: int = 0


_READ: WeakKeyDictionary[Analysis, _Read] = WeakKeyDictionary()


def events_of(case: Case, *names: str) -> list[Event]:
    """Events by name (all without); none where the source cannot be read again, or was read often enough."""
    try:
        return case.events(*names) if _is_read(case) else []
    except TcpwinError:
        return []


def stalls_of(case: Case) -> list[Stall]:
    """The connection's long silences; none likewise."""
    try:
        return case.connection.stalls if _is_read(case) else []
    except TcpwinError:
        return []


def _is_read(case: Case) -> bool:
    analysis, id = case.analysis, case.connection.id
    read = _READ.setdefault(analysis, _Read())
    if id in read.ids:
        return True
    if read.times >= (1 if analysis.capture.packets > LARGE_PACKETS else READS):
        return False
    candidates = dict.fromkeys(id for id, _ in analysis.select(case.rule.scope, case.rule.conditions(case.settings)))
    following = (other for other in candidates if other > id and other not in read.ids)
    wanted = [id, *islice(following, BATCH - 1)]
    read.times += 1
    read.ids.update(wanted)
    analysis.follow(wanted)
    return True
