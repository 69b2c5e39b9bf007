"""Pair two stored captures of the same traffic, or one that holds both, and follow each packet, as `tcpwin pair` does.

Runs in worker processes.
"""

from collections.abc import Sequence
from typing import Any

from tcpwin import Pairing, pair
from tcpwin.figures import draw_ladder
from tcpwin.limits import LIMIT_NAMES
from tcpwin.pairing import PairedConnection
from tcpwin.render import change_on_the_way, most_lost_first, summarize_pairing, verdict_parts
from tcpwin.units import count_text
from tcpwin_web.jobs.executor import JobError
from tcpwin_web.jobs.work import FileSet

MOST_CONNECTIONS = 100
"""Maximum number of connections on a page: those with the most losses."""


def pair_file_sets(*captures: FileSet) -> dict[str, Any]:
    """Return the document of `tcpwin pair --json`."""
    return _pair(captures).to_dict()


def describe_pairing(*captures: FileSet) -> dict[str, Any]:
    """Return the content of the page of two captures."""
    pairing = _pair(captures)
    first, *rest = summarize_pairing(pairing)
    return {
        "answer": first,
        "more": rest,
        "warnings": pairing.warnings,
        "total": len(pairing),
        "connections": [_describe(pairing, each) for each in most_lost_first(pairing)[:MOST_CONNECTIONS]],
        "proxies": [
            (f"{each.in_a.source} ↔ {each.in_a.target}", f"{each.in_b.source} ↔ {each.in_b.target}")
            for each in pairing.proxies
        ],
        "alone": {side: sum(each.capture == side for each in pairing.unpaired) for side in ("a", "b")},
    }


def _describe(pairing: Pairing, connection: PairedConnection) -> dict[str, Any]:
    """Describe a connection: its verdict in both captures, and its directions."""
    judged = pairing.judge(connection.number)
    first = connection.directions[0]
    return {
        "number": connection.number,
        "ends": f"{first.source} ↔ {first.target}",
        "verdict": [] if judged is None else list(verdict_parts(judged)),
        "directions": [
            {
                "ends": f"{direction.source} → {direction.target}",
                "ends_in_b": f"{direction.source_in_b} → {direction.target_in_b}",
                "direction": direction,
                "limit": "–" if judged is None else LIMIT_NAMES[judged.directions[direction.index].verdict.limit],
                "changes": [change_on_the_way(each) for each in direction.changes],
            }
            for direction in connection.directions
        ],
    }


def draw_ladder_of(captures: Sequence[FileSet], number: int, span_ns: tuple[int | None, int | None], theme: str) -> str:
    """Draw the ladder of a paired connection, as plotly's JSON.

    Raises:
        JobError: there is no such connection.
    """
    pairing = _pair(captures)
    if number >= len(pairing):
        raise JobError(f"{count_text(len(pairing), 'connection')} in both captures, numbered from 0")
    start_ns, end_ns = span_ns
    drawn: str = draw_ladder(pairing, number, start_ns=start_ns, end_ns=end_ns, theme=theme).to_json()
    return drawn


def _pair(captures: Sequence[FileSet]) -> Pairing:
    return pair(*(each.source for each in captures))
