"""One connection in words and numbers: its limit, its directions, budgets, stalls and retransmissions.

In: a connection whose details were read (`Analysis.follow`), and its findings. Out: ConnectionView, all of it text with
units. The words are those of `tcpwin analyze`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tcpwin.analysis import Direction, Event, Stall
from tcpwin.limits import Connection, Finding, Verdict, role_of
from tcpwin.render.view.budget import BarPart, BudgetRow, budget_bar, budget_rows, compare_budgets, kernel_lines
from tcpwin.render.view.direction import close_text, rate_of, render_direction
from tcpwin.render.view.exchanges import ExchangeRow, view_exchanges
from tcpwin.render.view.resent import EVIDENCE, evidence_texts
from tcpwin.render.view.verdict import VerdictView, row_of, view_verdict
from tcpwin.units import bytes_text, name_text, rate_text, time_text

RESENT_HEADINGS = ("frame", "at", "by", "cause", *(heading for _, heading, _ in EVIDENCE), "length")
RESENT_SHOWN = 20
STALLS_OF_PAGE = 200
NEAR_RATE = 1.03
"""Rates this close are the same rate: they differ by the last round trip."""
STALLS_SHOWN = 10
PAUSES = ("application", "idle", "response")
"""Causes of silences in which the sender had nothing to send."""


class StallRow(NamedTuple):
    """A silence: when, how long, whose, why, bytes in flight, between which frames."""

    at: str
    lasted: str
    host: str
    cause: str
    flight: str
    frames: str


@dataclass(frozen=True, slots=True)
class DirectionView:
    """The data of one direction.

    Attributes:
        name: ``client → server``.
        carried: volume and rate.
        facts: further facts, by name.
        budget: the sender's time, largest item first; empty if there was nothing to send.
        sender: its role.
        basis: source of the budget: the packets or the kernel's counters.
    """

    name: str
    sender: str
    carried: str
    facts: Sequence[tuple[str, str]]
    budget: Sequence[BudgetRow]
    basis: str


@dataclass(frozen=True, slots=True)
class ConnectionView:
    """A connection in full.

    Attributes:
        verdict: its limit; `words` is the verdict as text.
        stalls: the longest silences: when, how long, whose, why, in flight, frames; `stalls_left` counts the others.
        resent: retransmissions and late segments, below `RESENT_HEADINGS`; `resent_left` counts the others.
        reasons: the rules that decided, and how often.
        happened: the number of events of each kind.
        sockets: facts from the hosts' sockets.
    """

    connection: Connection
    ends: str
    duration: str
    close: str
    verdict: Verdict
    words: VerdictView
    findings: Sequence[Finding]
    directions: Sequence[DirectionView]
    stalls: Sequence[StallRow]
    stalls_left: int
    resent: Sequence[tuple[str, ...]]
    resent_left: int
    reasons: Sequence[str]
    happened: Sequence[tuple[str, int]]
    sockets: Sequence[str]


def view_connection(connection: Connection, verdict: Verdict, findings: Sequence[Finding]) -> ConnectionView:
    """Describe a connection and its verdict in words."""
    roles = {side: role_of(connection, side) for side in ("a", "b")}
    events = connection.events
    again = [each for each in events if each.cause is not None]
    stalls, stalls_left = longest_stalls(connection)
    guess = "" if connection.initiator_known else " (client guessed)"
    return ConnectionView(
        connection=connection,
        ends=_ends(connection),
        duration=time_text(connection.duration_ns),
        close=close_text(connection) + guess,
        verdict=verdict,
        words=view_verdict(verdict),
        findings=findings,
        directions=list(_directions(connection)),
        stalls=stalls,
        stalls_left=stalls_left,
        resent=[_resent(each, connection.start_ns, roles) for each in again[:RESENT_SHOWN]],
        resent_left=max(len(again) - RESENT_SHOWN, 0),
        reasons=[
            f"{reason}: {count:,}, {confidence} confidence"
            for (reason, confidence), count in Counter((each.reason, each.confidence) for each in again).most_common()
        ],
        happened=Counter(name.replace("_", " ") for each in events for name in each.names).most_common(),
        sockets=_socket_lines(connection),
    )


def _socket_lines(connection: Connection) -> list[str]:
    if not connection.socket_samples:
        return []
    from tcpwin.render.kernel.hosts import render_sockets

    return [name_text(line) for line in render_sockets(connection)]


def _directions(connection: Connection) -> Iterator[DirectionView]:
    client, server = role_of(connection, "a"), role_of(connection, "b")
    for name, sender, receiver in (("a_to_b", client, server), ("b_to_a", server, client)):
        direction: Direction = getattr(connection, name)
        if not (direction.data_segments or direction.missed_bytes or direction.retransmissions):
            continue
        carried, lines = render_direction(connection, receiver, direction)
        budget = connection.budget[name]
        yield DirectionView(
            name=f"{sender} → {receiver}",
            sender=sender,
            carried=name_text(carried),
            facts=[_fact(name_text(line)) for line in lines],
            budget=budget_rows(budget),
            basis="; ".join(kernel_lines(budget)) or "by the packets",
        )


def longest_stalls(connection: Connection) -> tuple[list[StallRow], int]:
    """Return the longest silences in order of time, and the number left out.

    Silences with nothing to send are included only if there is room.
    """
    stalls = connection.stalls
    worst = sorted(stalls, key=lambda stall: (stall.cause in PAUSES, -stall.duration_ns))[:STALLS_SHOWN]
    rows = [stall_row(connection, stall) for stall in sorted(worst, key=lambda stall: stall.start_ns)]
    return rows, len(stalls) - len(rows)


def stall_row(connection: Connection, stall: Stall) -> StallRow:
    """Describe a silence in words."""
    return StallRow(
        time_text(stall.start_ns - connection.start_ns),
        time_text(stall.duration_ns),
        role_of(connection, stall.sender),
        stall.cause.replace("_", " "),
        bytes_text(stall.flight_bytes),
        f"{stall.before_frame} to {stall.after_frame}",
    )


def _fact(line: str) -> tuple[str, str]:
    """Split ``window of a: 0 B to 172 kB`` into its name and its value."""
    name, colon, text = line.partition(": ")
    return (name, text) if colon and len(name) <= 32 else ("", line)


def _resent(event: Event, start_ns: int, roles: Mapping[str, str]) -> tuple[str, ...]:
    return (
        str(event.frame),
        time_text(event.time_ns - start_ns),
        roles[event.direction[0]],
        (event.cause or "").replace("_", " "),
        *evidence_texts(event),
        bytes_text(event.length),
    )


@dataclass(frozen=True, slots=True)
class Glance:
    """A connection at a glance: its ends, a few numbers with their names, and its time budget as a bar."""

    id: int
    ends: str
    duration: str
    numbers: Sequence[tuple[str, str]]
    bar: Sequence[BarPart]


def glance(connection: Connection) -> Glance:
    """Return a connection at a glance, with the data of the direction that its verdict is on."""
    verdict, shown = connection.verdict, row_of(connection.verdict)
    name = verdict.direction or "a_to_b"
    data = connection.b_to_a if name == "b_to_a" else connection.a_to_b
    carried_bytes, duration = max(data.acked_bytes or 0, data.unique_bytes or 0), time_text(connection.duration_ns)
    numbers = [("duration", duration), ("data", bytes_text(carried_bytes))]
    if shown.cost:
        numbers.insert(0, (f"cost of the {shown.problem}" if shown.is_elsewhere else "cost", shown.cost))
    rate_bps = rate_of(data)
    if rate_bps is not None:
        # The rate covers the first byte to the last ACK: say so if data and duration give a different rate.
        is_of_a_part = rate_bps * connection.duration_ns > NEAR_RATE * carried_bytes * 8e9
        numbers.append(("rate, first byte to last" if is_of_a_part else "rate", rate_text(rate_bps)))
    if connection.path_rtt_ns is not None:
        numbers.append(("least round trip", time_text(connection.path_rtt_ns)))
    return Glance(connection.id, _ends(connection), duration, numbers, budget_bar(connection.budget[name].items_ns))


def _ends(connection: Connection) -> str:
    client, server = role_of(connection, "a"), role_of(connection, "b")
    return f"{client} {connection.a} → {server} {connection.b}"


@dataclass(frozen=True, slots=True)
class ConnectionOverview:
    """A connection as a page shows it above its figures.

    Attributes:
        facts: duration, close, and the capture point.
        bar: the time budget of the verdict's direction.
        budget: items that took time, with a row for each direction's data; `kernel` holds the kernels' counts.
        stalls: the first silences, each with its frames and the time span that shows it whole.
        exchanges: the longest of `exchange_count` requests with their answers; `exchange_text` sums up all.
    """

    verdict: VerdictView
    facts: Sequence[str]
    bar: Sequence[BarPart]
    budget: Sequence[tuple[str, tuple[BudgetRow | None, ...]]]
    kernel: Sequence[str]
    stalls: Sequence[tuple[StallRow, tuple[int, int], tuple[int, int]]]
    exchange_text: str
    exchanges: Sequence[ExchangeRow]
    exchange_count: int


def overview(connection: Connection) -> ConnectionOverview:
    """Return the content that a page shows above the figures of a connection."""
    verdict, budgets = connection.verdict, connection.budget
    items = [budgets[name].items_ns for name in ("a_to_b", "b_to_a")]
    stalls = []
    for stall in connection.stalls[:STALLS_OF_PAGE]:
        around_ns = stall.duration_ns // 4 + 1000
        span_ns = (stall.start_ns - around_ns, stall.end_ns + around_ns)
        stalls.append((stall_row(connection, stall), (stall.before_frame, stall.after_frame), span_ns))
    text, exchanges, count = view_exchanges(connection)
    return ConnectionOverview(
        verdict=view_verdict(verdict),
        facts=[time_text(connection.duration_ns), close_text(connection), _vantage(connection)],
        bar=budget_bar(budgets[verdict.direction or "a_to_b"].items_ns),
        budget=compare_budgets(items, connection.duration_ns),
        kernel=[
            f"The {role_of(connection, name[0])}: {'; '.join(lines)}."
            for name, budget in budgets.items()
            if (lines := kernel_lines(budget))
        ],
        stalls=stalls,
        exchange_text=text,
        exchanges=exchanges,
        exchange_count=count,
    )


def _vantage(connection: Connection) -> str:
    if connection.a.address == connection.b.address:
        return "captured on the host of both ends"
    place = connection.vantage
    if place in ("a", "b"):
        return f"captured near the {role_of(connection, place)}"
    return "captured in between" if place == "between" else "capture point unknown"
