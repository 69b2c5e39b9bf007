"""The judge's division of time: what each limit has, which is the largest, what was lost, and whether that matters.

In: numbers of one direction, or columns of all directions of a capture: the same lines serve both, so that nothing
decides twice. Out: Traits, Loss, Division. It reads no packets and has no words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from tcpwin.limits.tables import (
    ITEM_LIMITS,
    ITEMS,
    LIMITS,
    MENDABLE,
    RECOVERY_ITEMS,
    SILENT_ITEMS,
    SLOW_LIMITS,
    WINDOW_ITEMS,
)

MIN_COST_NS = 200_000_000
"""Less is below what a person notices, and below Linux's shortest retransmission timeout."""
MIN_SHARE = 0.1
"""Of the time in which a sender had work: what costs less is at work as designed."""
CLOSE_SHARE = 0.1
"""Limits within this share of the duration of each other are of like size: the rounds they are told by are coarse."""
LIKE_SHARE = 2 / 3
"""So are those of which the second has this share of the first's time."""
MISSED_SHARE = 0.01
"""Of the data: a capture that lacks more makes flights, and what limited them, uncertain."""
READER_SHARE = 0.04
"""Of the window's time: so much in which ACKs waited for the reader says who keeps the window full."""
DOUBLED_SHARE = 0.4
"""Of the data sent again: where a capture holds both ends, half of it are copies."""
DOUBLED_SEGMENTS = 10
"""Of fewer segments a few that were really lost may be as many."""
QUEUED_SHARE = 0.25
"""Of the least round trip: a mean queue that is longer stood while packets were lost."""
CLOSED_SHARE = 0.1
"""Of the window's time: a window that is closed for so long closes for want of a reader; below, it is merely small."""
ANSWER_SHARE = 0.5
"""Of the time in which a sender had nothing to send: so much before its answers, and they are what took the time."""
ANSWER_ROUND_TRIPS = 10
"""A first byte after more of them is late by its application: away from the sender a round trip is in it."""
ORDER = tuple(dict.fromkeys([*(ITEM_LIMITS[item] for item in ITEMS), *LIMITS]))
"""Of limits that have the same time the first is named."""
NONE = ORDER.index("none")
PATH_RATE, CONGESTION = (ORDER.index(limit) for limit in ("path_rate", "congestion_control"))
_IDLE = ("none", "sender_application", "handshake")
"""Limits whose time is none in which the sender had work."""
GROUPS_WEIGHED = tuple(
    tuple(place for place, item in enumerate(ITEMS) if ITEM_LIMITS[item] in limits)
    for limits in (MENDABLE, set(_IDLE), {"handshake"}, set(ORDER))
)
"""Places in `ITEMS` of the items that `weigh` takes the sums of: of those lost, whichever of a window's two limits they
are of, of those in which the sender had no work, of the handshake, and of all."""

Pick = Callable[[Any, Any, Any], Any]
"""``where`` of arrays; of one connection the same of plain numbers."""


def pick_one(condition: Any, one: Any, other: Any) -> Any:
    """``where`` of plain numbers."""
    return one if condition else other


class Traits(NamedTuple):
    """What a direction is like, as far as the judge and its opinions ask; each a truth value, or a column of them.

    Attributes:
        is_slow: a window that held the sender back did so for want of a reader: it was closed, or low, or ACKs waited.
        is_mostly_closed: at least half of the window's time it was closed.
        is_mostly_recovering: at least as much time went to recovery of losses as to the smaller flights after it.
        is_growing: at least as much time went to slow start as to a congestion window that had grown.
        is_missed: the capture lacks so much of the data that flights are uncertain.
        is_doubled: much of the data is there again, as where a capture holds both ends.
        is_queued: packets waited in a queue, for much of the least round trip.
        is_read_late: ACKs, or the end, waited for the receiver's application.
        is_answering: most of the time in which it had nothing to send passed before its answers.
    """

    is_slow: Any
    is_mostly_closed: Any
    is_mostly_recovering: Any
    is_growing: Any
    is_missed: Any
    is_doubled: Any
    is_queued: Any
    is_read_late: Any
    is_answering: Any


def traits_of(number: Callable[[str], Any], is_scaled: Any, items_ns: Mapping[str, Any]) -> Traits:
    """The traits of a direction.

    Args:
        number: a field of the direction, 0 where it has no value.
        is_scaled: window scaling is not known to be off.
        items_ns: of its budget.
    """
    window_ns = sum(items_ns[item] for item in WINDOW_ITEMS)
    reader_ns = items_ns["reader"]
    acked = number("acked_bytes")
    segments, queue_ns = number("data_segments"), number("queue_mean_ns")
    turns, first_byte_ns = number("turns"), number("first_byte_p50_ns")
    return Traits(
        is_slow=is_slow_of(number, is_scaled, items_ns),
        is_mostly_closed=items_ns["zero_window"] * 2 >= window_ns,
        is_mostly_recovering=sum(items_ns[item] for item in RECOVERY_ITEMS) >= items_ns["after_loss"],
        is_growing=is_growing_of(items_ns),
        is_missed=number("missed_bytes") > MISSED_SHARE * (acked + (acked == 0)),
        is_queued=(queue_ns > 0) & (queue_ns >= QUEUED_SHARE * number("rtt_min_ns")),
        is_read_late=reader_ns > 0,
        is_answering=(first_byte_ns * turns > ANSWER_SHARE * items_ns["application"])
        & (first_byte_ns > ANSWER_ROUND_TRIPS * number("rtt_min_ns")),
        is_doubled=(segments >= DOUBLED_SEGMENTS) & (number("retransmissions") >= DOUBLED_SHARE * segments),
    )


def is_slow_of(number: Callable[[str], Any], is_scaled: Any, items_ns: Mapping[str, Any]) -> Any:
    """The trait `is_slow` of a direction; for the arguments see `traits_of`."""
    window_ns = sum(items_ns[item] for item in WINDOW_ITEMS)
    most, mean = number("receive_window_max_bytes"), number("receive_window_mean_bytes")
    is_closed = (number("zero_window_episode_count") > 0) & (number("zero_window_ns") >= CLOSED_SHARE * window_ns)
    reader_ns = items_ns["reader"]
    is_unread = (reader_ns > 0) & (reader_ns >= READER_SHARE * window_ns)
    is_low = is_scaled & (mean > 0) & (mean < most / 2)
    return is_closed | is_low | is_unread


def is_growing_of(items_ns: Mapping[str, Any]) -> Any:
    """The trait `is_growing` of a direction with these items."""
    return items_ns["slow_start"] >= items_ns["congestion"]


class Loss(NamedTuple):
    """What a direction lost, and whether that matters: what `Division` says of it."""

    lost_ns: Any
    is_problem: Any


def weigh(sums_ns: Iterable[Any], *, is_disturbed: Any, is_stalled: Any, is_sampled: Any) -> Loss:
    """What `divide` says of a direction's loss where no rule found anything, by sums alone.

    Args:
        sums_ns: of its budget's `GROUPS_WEIGHED`; for the others see `divide`.
    """
    lost_ns, idle_ns, handshake_ns, total_ns = sums_ns
    disturbed_ns = handshake_ns * is_disturbed
    lost_ns = lost_ns + disturbed_ns
    busy_ns = total_ns - idle_ns + disturbed_ns
    return Loss(lost_ns, _is_problem(lost_ns, busy_ns, is_stalled, is_sampled))


def _is_problem(lost_ns: Any, busy_ns: Any, is_stalled: Any, is_sampled: Any) -> Any:
    is_much = (lost_ns >= MIN_COST_NS) & ((lost_ns >= MIN_SHARE * busy_ns) | is_stalled)
    return is_much & (is_sampled ^ True)


class Division(NamedTuple):
    """The time of a direction by limit, and what follows from it. Limits are places in `ORDER`.

    Attributes:
        times_ns: of each limit.
        lost_to_ns: of each limit, the part that somebody can mend.
        total_ns: the connection's duration.
        first, first_ns: the limit with most time; `NONE` with 0 where nothing limited it.
        second, second_ns: another of like size; `NONE` where there is none.
        lost_ns: time lost to what somebody can mend.
        busy_ns: time in which the sender had work.
        is_problem: so much was lost that somebody should look: `MIN_COST_NS` and `MIN_SHARE`, or it stalls for good.
        also: the limit that lost most, where the first can not be mended and there is a problem; else `NONE`.
    """

    times_ns: tuple[Any, ...]
    lost_to_ns: tuple[Any, ...]
    total_ns: Any
    first: Any
    first_ns: Any
    second: Any
    second_ns: Any
    lost_ns: Any
    busy_ns: Any
    is_problem: Any
    also: Any


def divide(
    times_ns: Mapping[str, Any],
    mended_ns: Mapping[str, Any],
    *,
    is_disturbed: Any,
    is_stalled: Any,
    is_sampled: Any,
    pick: Pick,
) -> Division:
    """Divide a direction's life.

    Args:
        times_ns: of each limit that has any.
        mended_ns: of limits that are at work as designed, time of which a finding says that it is too much.
        is_disturbed: a segment of the handshake was sent again, or nobody answered.
        is_stalled: the capture, or a reset, ended it in a stall.
        is_sampled: the capture holds samples of it, which show no loss.
    """
    nothing = is_disturbed * 0
    lost, busy_ns = _lost(times_ns, mended_ns, is_disturbed)
    times = tuple([times_ns.get(limit, nothing) for limit in ORDER])
    lost_to = tuple([lost.get(limit, nothing) for limit in ORDER])
    lost_ns, total_ns = sum(lost_to), sum(times)
    is_problem = _is_problem(lost_ns, busy_ns, is_stalled, is_sampled)
    first, first_ns, second, second_ns = _largest_two(times, pick)
    most_lost, *_ = _largest_two(lost_to, pick)
    is_like = (first_ns - second_ns < CLOSE_SHARE * total_ns) | (second_ns >= LIKE_SHARE * first_ns)
    is_like = is_like & (second_ns > 0)
    # A path that carries more carries it to the next limit, which is as near: what stands beside it is named first.
    # But a congestion window that grows faster grows to what the path gives.
    is_near = is_like & (second_ns >= LIKE_SHARE * first_ns)
    is_hidden = ((first == PATH_RATE) & (second != CONGESTION)) | ((first == CONGESTION) & (second == PATH_RATE))
    is_hidden = is_hidden & is_near
    first, second = pick(is_hidden, second, first), pick(is_hidden, first, second)
    first_ns, second_ns = pick(is_hidden, second_ns, first_ns), pick(is_hidden, first_ns, second_ns)
    if isinstance(first, int):
        lost_to_first = lost_to[first]
    else:
        lost_to_first = nothing
        for place, ns in enumerate(lost_to):
            lost_to_first = pick(first == place, ns, lost_to_first)
    return Division(
        times_ns=times,
        lost_to_ns=lost_to,
        total_ns=total_ns,
        first=first,
        first_ns=first_ns,
        second=pick(is_like, second, NONE),
        second_ns=pick(is_like, second_ns, 0),
        lost_ns=lost_ns,
        busy_ns=busy_ns,
        is_problem=is_problem,
        also=pick(is_problem & (lost_to_first == 0), most_lost, NONE),
    )


def lose(
    times_ns: Mapping[str, int], mended_ns: Mapping[str, int], *, is_disturbed: bool, is_stalled: bool, is_sampled: bool
) -> Loss:
    """What `divide` says of one direction's loss, without which limit has most."""
    lost, busy_ns = _lost(times_ns, mended_ns, is_disturbed)
    lost_ns = sum(lost.values())
    return Loss(lost_ns, _is_problem(lost_ns, busy_ns, is_stalled, is_sampled))


def _lost(times_ns: Mapping[str, Any], mended_ns: Mapping[str, Any], is_disturbed: Any) -> tuple[dict[str, Any], Any]:
    """What of the time of each limit that has any somebody can mend, and the time in which the sender had work."""
    lost = {limit: ns for limit, ns in times_ns.items() if limit in MENDABLE}
    mended = dict(mended_ns)
    if "handshake" in times_ns:
        # All of it where it was disturbed.
        beyond_ns = times_ns["handshake"] - mended.get("handshake", 0)
        mended["handshake"] = mended.get("handshake", 0) + beyond_ns * is_disturbed
    lost |= {limit: ns for limit, ns in mended.items() if limit not in MENDABLE}
    idle_ns = sum([times_ns.get(limit, 0) - mended.get(limit, 0) for limit in _IDLE])
    return lost, sum(times_ns.values()) - idle_ns


def by_limit(items_ns: Mapping[str, Any], is_slow: Any, pick: Pick) -> dict[str, Any]:
    """The time of each limit by the items of a budget alone."""
    times: dict[str, Any] = {}
    if pick is pick_one:
        limits = SLOW_LIMITS if is_slow else ITEM_LIMITS
        for item, ns in items_ns.items():
            limit = limits[item]
            times[limit] = times.get(limit, 0) + ns
        return times
    for item, ns in items_ns.items():
        limit, slow = ITEM_LIMITS[item], SLOW_LIMITS[item]
        shares = ((limit, ns),) if slow == limit else ((slow, pick(is_slow, ns, 0)), (limit, pick(is_slow, 0, ns)))
        for name, own in shares:
            times[name] = times.get(name, 0) + own
    return times


def silent_by_limit(items_ns: Mapping[str, Any], is_slow: Any, pick: Pick) -> dict[str, Any]:
    """Of each limit's time that in which nothing came through."""
    return by_limit({item: items_ns[item] for item in SILENT_ITEMS}, is_slow, pick)


def _largest_two(times: tuple[Any, ...], pick: Pick) -> tuple[Any, Any, Any, Any]:
    """Place and time of the largest, and of the next; what limited nothing is none of them."""
    if pick is pick_one:
        return _largest_two_numbers(times)
    first = first_ns = second = second_ns = times[NONE] * 0
    first = second = first + NONE
    for place, ns in enumerate(times):
        if place == NONE:
            continue
        leads = ns > first_ns
        follows = ns > second_ns
        second, second_ns = (
            pick(leads, first, pick(follows, place, second)),
            pick(leads, first_ns, pick(follows, ns, second_ns)),
        )
        first, first_ns = pick(leads, place, first), pick(leads, ns, first_ns)
    return first, first_ns, second, second_ns


def _largest_two_numbers(times: tuple[int, ...]) -> tuple[int, int, int, int]:
    """The same of plain numbers."""
    first, first_ns, second, second_ns = NONE, 0, NONE, 0
    for place, ns in enumerate(times):
        if ns <= second_ns or place == NONE:
            continue
        if ns > first_ns:
            first, first_ns, second, second_ns = place, ns, first, first_ns
        else:
            second, second_ns = place, ns
    return first, first_ns, second, second_ns


class Lossy(Protocol):
    """A direction of which it is known what it lost."""

    @property
    def lost_ns(self) -> Any: ...
    @property
    def is_problem(self) -> Any: ...


def worse(one: Lossy, other: Lossy, is_other_main: Any, pick: Pick) -> Any:
    """Whether the connection's verdict is that of the other direction: it lost more, or has more data where none did.

    Where both lost the same, the direction with more data speaks for the connection.
    """
    both = one.is_problem & other.is_problem
    by_loss = pick(one.lost_ns == other.lost_ns, is_other_main, other.lost_ns > one.lost_ns)
    return pick(both, by_loss, pick(one.is_problem | other.is_problem, other.is_problem, is_other_main))
