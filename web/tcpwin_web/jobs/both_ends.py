"""Two stored captures of the same traffic in, what became of each packet between them out: as `tcpwin pair` says it.

Runs in worker processes.
"""

from typing import Any

from tcpwin import Pairing, pair
from tcpwin.report import change_on_the_way, draw_ladder, most_lost_first, summarize_pairing
from tcpwin.units import count_text
from tcpwin_web.jobs.executor import JobError
from tcpwin_web.jobs.work import FileSet

CONNECTIONS_TOLD = 100
"""Of a page: those that lost most."""


def pair_file_sets(a: FileSet, b: FileSet) -> dict[str, Any]:
    """The document that `tcpwin pair --json` writes."""
    return _pair(a, b).to_dict()


def tell_pairing(a: FileSet, b: FileSet) -> dict[str, Any]:
    """What the page of two captures shows."""
    pairing = _pair(a, b)
    first, *rest = summarize_pairing(pairing)
    return {
        "answer": first,
        "more": rest,
        "total": len(pairing),
        "connections": [
            {
                "number": connection.number,
                "directions": [
                    {
                        "ends": f"{direction.source} → {direction.target}",
                        "ends_in_b": f"{direction.source_in_b} → {direction.target_in_b}",
                        "direction": direction,
                        "changes": [change_on_the_way(each) for each in direction.changes],
                    }
                    for direction in connection.directions
                ],
            }
            for connection in most_lost_first(pairing)[:CONNECTIONS_TOLD]
        ],
        "proxies": [
            (f"{each.in_a.source} ↔ {each.in_a.target}", f"{each.in_b.source} ↔ {each.in_b.target}")
            for each in pairing.proxies
        ],
        "alone": {side: sum(each.capture == side for each in pairing.unpaired) for side in ("a", "b")},
    }


def draw_ladder_of(a: FileSet, b: FileSet, number: int, span_ns: tuple[int | None, int | None], theme: str) -> str:
    """The ladder of a paired connection, as plotly draws it.

    Raises:
        JobError: there is no such connection.
    """
    pairing = _pair(a, b)
    if number >= len(pairing):
        raise JobError(f"{count_text(len(pairing), 'connection')} in both captures, numbered from 0")
    start_ns, end_ns = span_ns
    drawn: str = draw_ladder(pairing, number, start_ns=start_ns, end_ns=end_ns, theme=theme).to_json()
    return drawn


def _pair(a: FileSet, b: FileSet) -> Pairing:
    return pair(a.source, b.source)
