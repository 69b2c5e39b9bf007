"""Frames of a conversation's exchanges, to show in a finding.

In: a case whose segments may be read a second time. Out: frames. Judges nothing.
"""

from __future__ import annotations

from tcpwin.limits.case import Case
from tcpwin.limits.finding import of_many

SHOWN = 3


def exchange_frames(case: Case, *, slowest: bool = False) -> tuple[tuple[int, ...], str | None]:
    """Return the last frame of a few requests and the first of their answers, and which exchanges those are.

    Args:
        slowest: show the answers that took longest to prepare instead of the first ones.
    """
    found = case.reading.exchanges(case.analysis, case.connection.id) if case.may_read else None
    if found is None or not found.height:
        return (case.connection.first_frame,), None
    places = list(range(found.height))
    if slowest:
        places.sort(key=lambda place: -int(found["work_ns"][place]))
    shown = places[:SHOWN]
    frames = tuple(int(found[name][place]) for place in shown for name in ("request_end_frame", "answer_frame"))
    return frames, of_many("slowest" if slowest else "first", len(shown), found.height)
