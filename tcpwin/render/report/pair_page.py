"""A pairing as one HTML file that needs no network: where packets were lost, verdicts by both captures, ladders.

In: a Pairing. Out: HTML. Connections that lost most come first; their number, and that of the ladders, is limited.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tcpwin.figures import draw_ladder
from tcpwin.render.comparing.pairing import (
    capture_names,
    direction_lines,
    most_lost_first,
    summarize_pairing,
    unpaired_lines,
    verdict_lines,
)
from tcpwin.render.report.figures import FIGURES_BYTES, drawable
from tcpwin.render.report.shell import fill, require
from tcpwin.render.report.table import pack
from tcpwin.units import count_text, name_text, share_text, time_text

if TYPE_CHECKING:
    from tcpwin.pairing import PairedConnection, PairedDirection, Pairing

DRAWN = 3
"""Maximum number of ladders on a page, for the connections that lost most."""
COLUMNS = (
    "sent",
    "lost",
    "late",
    "duplicated",
    "unknown",
    "retransmitted",
    "delay, least",
    "mean",
    "most",
    "routers between",
)


@dataclass(frozen=True, slots=True)
class _ConnectionWords:
    """A connection in words, with its ladder in `packed`; without one, `packed` is empty and `height` 0."""

    number: int
    ends: str
    ends_in_b: str
    verdict: list[str]
    rows: list[tuple[str, list[str]]]
    more: list[tuple[str, list[str]]]
    packed: str
    height: int


def render_pair_page(
    pairing: Pairing,
    *,
    connection: int | None = None,
    limit: int = 10,
    theme: str = "auto",
    made_at: datetime | None = None,
) -> str:
    """Render a pairing as a page.

    Args:
        connection: the only connection to show; by default the `limit` connections that lost most.
        theme: ``auto`` follows the system; readers can switch.

    Raises:
        OutputError: jinja2 is not installed.
    """
    require()
    chosen = most_lost_first(pairing)[:limit] if connection is None else [pairing.connections[connection]]
    left = FIGURES_BYTES
    connections = []
    for place, each in enumerate(chosen):
        words = _describe(pairing, each, most_bytes=left if place < DRAWN else 0)
        left -= len(words.packed)
        connections.append(words)
    apart = list(unpaired_lines(pairing))
    names = capture_names(pairing)
    total = len(pairing)
    return fill(
        "pair.html.j2",
        theme=theme,
        has_figures=any(words.packed for words in connections),
        made_at=made_at,
        name=" – ".join(names),
        facts=[f"{count_text(total, 'connection')} in both captures"],
        answer=list(summarize_pairing(pairing)),
        captures=[
            (letter, f"{name}, {count_text(segments, 'TCP segment')}")
            for letter, name, segments in zip("ab", names, pairing.segments, strict=True)
        ],
        warnings=[name_text(each) for each in pairing.warnings],
        columns=COLUMNS,
        connections=connections,
        connections_words="The connection"
        if total == 1
        else f"Connections, the {len(connections)} that lost most of {total:,}"
        if len(connections) < total
        else "Connections",
        apart=apart,
        contents=[
            (id, words, count)
            for id, words, count, is_there in (
                ("summary", "Between the two points", "", True),
                ("connections", "Connections", f"{total:,}", bool(connections)),
                ("apart", "In one capture only", "", bool(apart)),
            )
            if is_there
        ],
    )


def _describe(pairing: Pairing, connection: PairedConnection, *, most_bytes: int) -> _ConnectionWords:
    judged = pairing.judge(connection.number)
    first = connection.directions[0]
    ends = f"{first.source} ↔ {first.target}"
    if judged is not None:
        ends = f"{judged.roles[0]} {first.source} ↔ {judged.roles[1]} {first.target}"
    packed, height = "", 0
    if most_bytes:
        figure: Any = draw_ladder(pairing, connection.number)
        packed = pack([drawable(figure.to_plotly_json())])
        height = int(figure.layout.height)
        if len(packed) > most_bytes:
            packed, height = "", 0
    return _ConnectionWords(
        connection.number,
        ends,
        f"{first.source_in_b} ↔ {first.target_in_b}" if first.is_translated else "",
        [] if judged is None else list(verdict_lines(judged)),
        [(_way(each), _row(each)) for each in connection.directions],
        [
            (_way(each), list(direction_lines(each, None if judged is None else judged.directions[each.index])))
            for each in connection.directions
        ],
        packed,
        height,
    )


def _way(direction: PairedDirection) -> str:
    return f"{direction.source} → {direction.target}"


def _row(direction: PairedDirection) -> list[str]:
    counts = (direction.sent, direction.lost, direction.late, direction.duplicated, direction.unknown)
    words = [f"{count:,}" for count in (*counts, direction.retransmissions)]
    if direction.lost and direction.loss is not None:
        words[1] += f" ({share_text(direction.loss, places=2)})"
    delay = direction.delay
    words += ["–"] * 3 if delay is None else [time_text(ns) for ns in (delay.least_ns, delay.mean_ns, delay.most_ns)]
    least, most = direction.hops or (None, None)
    return [*words, "–" if least is None else str(least) if least == most else f"{least} to {most}"]
