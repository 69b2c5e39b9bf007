"""One connection in words and numbers: what limited it, what each direction did, budgets, stalls, what was sent again.

In: a connection whose details were read (`Analysis.follow`), and its findings. Out: ConnectionView, all of it text with
units. The words are those of `tcpwin analyze`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tcpwin.analysis import Direction, Event
from tcpwin.figures import ITEM_WORDS
from tcpwin.limits import GROUPS, ITEMS, Budget, Connection, Finding, Verdict, role_of
from tcpwin.render.kernel.hosts import render_sockets
from tcpwin.render.text.analysis import close_text, render_direction
from tcpwin.render.text.summary import longest_stalls
from tcpwin.render.verdict_words import VerdictWords, verdict_words
from tcpwin.units import bytes_text, name_text, share_text, time_text

RESENT_SHOWN = 20
GROUP_OF = {item: group for group, items in GROUPS.items() for item in items}


@dataclass(frozen=True, slots=True)
class Share:
    """One item of a time budget.

    Attributes:
        group: of `tcpwin.limits.GROUPS`, by which it is coloured.
        words: the item.
        time, share: as text; `percent` is the share as a number from 0 to 100.
    """

    group: str
    words: str
    time: str
    share: str
    percent: float


@dataclass(frozen=True, slots=True)
class DirectionView:
    """The data of one direction.

    Attributes:
        name: ``client → server``.
        carried: how much, how fast.
        facts: what else there is to say of it, by name.
        budget: where the sender's time went, most first; empty where nothing was to be sent.
        sender: its role.
        basis: whose count the budget is.
    """

    name: str
    sender: str
    carried: str
    facts: Sequence[tuple[str, str]]
    budget: Sequence[Share]
    basis: str


@dataclass(frozen=True, slots=True)
class ConnectionView:
    """A connection in full.

    Attributes:
        verdict: what limited it; `words` puts it in words.
        stalls: the longest silences: when, how long, whose, why, in flight, frames; `stalls_left` more are not told.
        resent: what was sent again or came late: frame, when, by whom, cause, original frame, frame of the ACK, age,
            length; `resent_left` more are not told.
        reasons: the rules that decided, and how often.
        happened: how often each kind of event did.
        sockets: what the hosts' sockets say.
    """

    connection: Connection
    ends: str
    duration: str
    close: str
    verdict: Verdict
    words: VerdictWords
    findings: Sequence[Finding]
    directions: Sequence[DirectionView]
    stalls: Sequence[tuple[str, ...]]
    stalls_left: int
    resent: Sequence[tuple[str, ...]]
    resent_left: int
    reasons: Sequence[str]
    happened: Sequence[tuple[str, int]]
    sockets: Sequence[str]


def tell_connection(connection: Connection, verdict: Verdict, findings: Sequence[Finding]) -> ConnectionView:
    """Put a connection, and the verdict on it, in words."""
    roles = {side: role_of(connection, side) for side in ("a", "b")}
    events = connection.events
    again = [each for each in events if each.cause is not None]
    stalls, stalls_left = longest_stalls(connection)
    guess = "" if connection.initiator_known else " (who initiated is guessed)"
    return ConnectionView(
        connection=connection,
        ends=f"{roles['a']} {connection.a} → {roles['b']} {connection.b}",
        duration=time_text(connection.duration_ns),
        close=close_text(connection) + guess,
        verdict=verdict,
        words=verdict_words(verdict),
        findings=findings,
        directions=list(_directions(connection)),
        stalls=[
            (
                time_text(stall.start_ns - connection.start_ns),
                time_text(stall.duration_ns),
                roles[stall.sender],
                stall.cause.replace("_", " "),
                bytes_text(stall.flight_bytes),
                f"{stall.before_frame} to {stall.after_frame}",
            )
            for stall in stalls
        ],
        stalls_left=stalls_left,
        resent=[_resent(each, connection.start_ns, roles) for each in again[:RESENT_SHOWN]],
        resent_left=max(len(again) - RESENT_SHOWN, 0),
        reasons=[
            f"{reason}: {count:,}, {confidence} confidence"
            for (reason, confidence), count in Counter((each.reason, each.confidence) for each in again).most_common()
        ],
        happened=Counter(name.replace("_", " ") for each in events for name in each.names).most_common(),
        sockets=[name_text(line) for line in render_sockets(connection)] if connection.socket_samples else [],
    )


def _directions(connection: Connection) -> Iterator[DirectionView]:
    client, server = role_of(connection, "a"), role_of(connection, "b")
    for name, sender, receiver in (("a_to_b", client, server), ("b_to_a", server, client)):
        direction: Direction = getattr(connection, name)
        if not (direction.data_segments or direction.missed_bytes or direction.retransmissions):
            continue
        head, *lines = render_direction(connection, sender, receiver, direction)
        budget = connection.budget[name]
        yield DirectionView(
            name=f"{sender} → {receiver}",
            sender=sender,
            carried=name_text(head.partition("  ")[2]),
            facts=[_fact(name_text(line.strip())) for line in lines],
            budget=list(_shares(budget)),
            basis=_basis(sender, budget),
        )


def _fact(line: str) -> tuple[str, str]:
    """``window of a: 0 B to 172 kB`` as its name and what is said of it."""
    name, colon, text = line.partition(": ")
    return (name, text) if colon and len(name) <= 32 else ("", line)


def _shares(budget: Budget) -> Iterator[Share]:
    for item in sorted(ITEMS, key=lambda item: -budget.items_ns[item]):
        ns = budget.items_ns[item]
        if ns:
            guess = " (suspected)" if item == "send_buffer" and budget.kernel is None else ""
            share = budget.share(item)
            yield Share(
                GROUP_OF[item], ITEM_WORDS[item] + guess, time_text(ns), share_text(share, places=1), 100 * share
            )


def _basis(sender: str, budget: Budget) -> str:
    if budget.kernel is None:
        return "by the packets"
    kernel, apart = budget.kernel, budget.disagreement or 0.0
    return (
        f"the {sender}'s kernel counts {time_text(kernel.rwnd_limited_ns)} waiting for the window and "
        f"{time_text(kernel.sndbuf_limited_ns)} for the send buffer, of {time_text(kernel.busy_ns)} busy; the window's "
        f"time by the packets alone is {share_text(apart, places=1)} of the duration off"
    )


def _resent(event: Event, start_ns: int, roles: Mapping[str, str]) -> tuple[str, ...]:
    return (
        str(event.frame),
        time_text(event.time_ns - start_ns),
        roles[event.direction[0]],
        (event.cause or "").replace("_", " "),
        "–" if event.original_frame is None else str(event.original_frame),
        "–" if event.trigger_frame is None else str(event.trigger_frame),
        "–" if event.age_ns is None else time_text(event.age_ns),
        bytes_text(event.length),
    )
