"""What lifting a limit would have gained: time in its state, less what the same bytes take up to the next limit.

In: the division of a direction's life, and what it carried; numbers of one direction, or columns of many. Out: Gain. A
path that is lifted carries four times as much, as `tcpwin lab lift` does; what else is lifted leaves the path and, but
for itself, the receive window in a round trip. Bytes are spread evenly over the time that the path's rate does not
explain, but for that in which nothing came through at all. Against the lab's lifts of 200 drawn worlds see
docs/time-budget.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

PATH_FACTOR = 4
"""By which a lifted path carries more."""
HELD_GAIN = 2 / 3
"""Of the time in which a buffer, a pacing writer or a policer kept the path from being filled, where its rate does not
show: any gain of 44 % to 100 % is within a factor of 1.5 of it, as were most in docs/worlds.md."""
PACED_SHARE = 0.8
"""Of the life: an application that limits for longer paces what it writes; one that pauses carries nothing then."""
MOST_DOUBLINGS = 24
INITIAL_WINDOW_BYTES = 14_600
"""Of ten segments (RFC 6928): who sends less at first had less to send, or waits for an older stack."""
NOTHING: Mapping[str, Any] = {}
_HELD = ("sender_application", "send_buffer", "path_policer")
_MODELLED = (*_HELD, "receiver_window", "receiver_application", "path_rate", "path_loss", "congestion_control")


class Carried(NamedTuple):
    """What a direction carried, and over what; 0 where it is not known.

    Attributes:
        path_bps: of the bottleneck.
        window_bytes: the largest receive window; `first_window_bytes`: the one at the beginning.
        first_flight_bytes: before the first ACK.
        round_trip_ns: the least of the path.
        paused_ns: of pauses of its sender that are longer than a retransmission timeout.
    """

    bytes: Any
    path_bps: Any
    window_bytes: Any
    first_window_bytes: Any
    first_flight_bytes: Any
    round_trip_ns: Any
    paused_ns: Any = 0


class Gain(NamedTuple):
    """By how much sooner it would have ended, and between which bounds, in nanoseconds.

    Attributes:
        carried_bytes: what came through in the limit's time; 0 where the path's rate is not known.
    """

    likely_ns: Any
    low_ns: Any
    high_ns: Any
    carried_bytes: Any = 0


def carried_of(number: Callable[[str], Any], round_trip_ns: Any) -> Carried:
    """What a direction carried.

    Args:
        number: a field of the direction, 0 where it has no value.
    """
    return Carried(
        number("acked_bytes"),
        number("path_rate_bps"),
        number("receive_window_max_bytes"),
        number("receive_window_initial_bytes"),
        number("initial_flight_bytes"),
        round_trip_ns,
        number("idle_ns"),
    )


def gain_of(
    first: Any,
    times_ns: Sequence[Any],
    order: Sequence[str],
    carried: Carried,
    is_growing: Any,
    pick: Callable[..., Any],
    silent_ns: Mapping[str, Any] = NOTHING,
) -> Gain:
    """What lifting the first limit alone would have gained.

    Args:
        first: its place in `order`.
        times_ns: of each limit of `order`.
        silent_ns: of each limit's time that in which nothing came through.
        is_growing: the congestion window was at its beginning for most of its time.
        pick: ``where`` of columns, or of plain numbers.
    """

    places = _places(tuple(order))

    def is_one_of(*limits: str) -> Any:
        if isinstance(first, int):
            return order[first] in limits
        return sum((first == places[limit]) for limit in limits) > 0

    def of_first(values: Sequence[Any]) -> Any:
        if isinstance(first, int):
            return values[first]
        return sum(pick(first == place, value, 0) for place, value in enumerate(values))

    by_name = dict(zip(order, times_ns, strict=True))
    total_ns, first_ns = sum(times_ns), of_first(times_ns)
    moving_ns = total_ns - by_name["handshake"] - by_name["none"]
    path_ns = by_name["path_rate"] + by_name["path_policer"]
    is_path, is_window = is_one_of("path_rate", "path_policer"), is_one_of("receiver_window")
    is_ramp = is_one_of("congestion_control") & is_growing
    modelled = is_one_of(*_MODELLED)
    # Bytes a nanosecond.
    path = carried.path_bps / 8e9
    is_known = (path > 0) & modelled
    path = pick(path > 0, path, 1.0)
    has_window = (carried.window_bytes > 0) & (carried.round_trip_ns > 0)
    window = carried.window_bytes / pick(has_window, carried.round_trip_ns, 1)
    up_to = pick(is_path, PATH_FACTOR * path, path)
    up_to = pick(has_window & (is_window ^ True) & (window < up_to), window, up_to)
    rest = _least(carried.bytes - path * path_ns, pick)
    silent = [0] * len(order)
    for limit, ns in silent_ns.items():
        silent[places[limit]] = _lesser(ns, by_name[limit], pick)
    silent_first_ns = of_first(silent)
    carrying_ns = first_ns - silent_first_ns
    others_ns = moving_ns - path_ns - sum(silent)
    even = rest * pick(others_ns > 0, carrying_ns / pick(others_ns > 0, others_ns, 1), pick(carrying_ns > 0, 1, 0))
    paused = _least(carried.bytes - path * (moving_ns - first_ns), pick)
    is_pausing = is_one_of("sender_application") & (first_ns < PACED_SHARE * total_ns)
    own = pick(is_path, path * first_ns, pick(is_pausing, paused, even))
    most = pick(is_path | (carrying_ns == 0), own, pick(rest > own, rest, own))
    ramp_ns = pick(is_ramp, carried.round_trip_ns, 0)
    likely_ns = _least(first_ns - own / up_to - ramp_ns, pick)
    low_ns = first_ns - most / up_to - ramp_ns
    low_ns = pick(low_ns > silent_first_ns, low_ns, silent_first_ns)
    if is_ramp is not False:
        # A congestion window that begins wide open meets the receive window, which begins small as well, and doubles
        # each round trip from there as the ramp does (`tcp_rcv_space_adjust`, net/ipv4/tcp_input.c): as many are saved
        # as the ramp takes to come to where that begins.
        doublings = _doublings(carried.first_flight_bytes, carried.first_window_bytes, pick)
        most_ns = _whole(doublings * carried.round_trip_ns)
        likely_ns = pick(is_ramp & (most_ns > 0) & (most_ns < likely_ns), most_ns, likely_ns)
    # Whatever is lifted, a transfer begins with slow start; what it takes cannot be gained.
    room_ns = _least(total_ns - by_name["handshake"] - by_name["none"] - _slow_start_ns(carried, pick), pick)
    # Of a life that is shorter without its silence something else is wrong.
    room_ns = pick(room_ns > silent_first_ns, room_ns, silent_first_ns)
    is_floored = is_known & (is_one_of("congestion_control") ^ True) & (likely_ns > room_ns)
    likely_ns = pick(is_floored, room_ns, likely_ns)
    low_ns = pick(low_ns > likely_ns, likely_ns, low_ns)
    # Without the path's rate: what a path of four times the rate leaves, and of what holds a sender back the middle.
    paused_ns = pick(is_one_of("sender_application"), _lesser(carried.paused_ns, carrying_ns, pick), 0)
    part = pick(is_one_of(*_HELD), HELD_GAIN, pick(is_one_of("path_rate"), 1 - 1 / PATH_FACTOR, 1.0))
    unknown_ns = silent_first_ns + paused_ns + (carrying_ns - paused_ns) * part
    return Gain(
        _whole(pick(is_known, likely_ns, unknown_ns)),
        _whole(pick(is_known, low_ns, pick(modelled, silent_first_ns, first_ns))),
        _whole(first_ns),
        pick(is_known, own, 0),
    )


def _doublings(flight: Any, window: Any, pick: Callable[..., Any]) -> Any:
    """The logarithm of a window by a flight, to base 2, with a straight line between whole numbers; 0 of none."""
    ratio = pick((flight > 0) & (window > flight), window / pick(flight > 0, flight, 1), 1.0)
    count = ratio * 0.0
    for _ in range(MOST_DOUBLINGS):
        count = count + pick(ratio >= 2, 1, 0)
        ratio = pick(ratio >= 2, ratio / 2, ratio)
    return count + ratio - 1


def _slow_start_ns(carried: Carried, pick: Callable[..., Any]) -> Any:
    """The least that the bytes take in slow start, doubled each round trip; 0 where the beginning is not known."""
    is_seen = (carried.first_flight_bytes > 0) & (carried.round_trip_ns > 0)
    flight = pick(carried.first_flight_bytes > INITIAL_WINDOW_BYTES, carried.first_flight_bytes, INITIAL_WINDOW_BYTES)
    rounds, sent = 0, 0
    for _ in range(MOST_DOUBLINGS):
        rounds = rounds + pick(sent < carried.bytes, 1, 0)
        sent, flight = sent + flight, flight * 2
    return pick(is_seen, rounds * carried.round_trip_ns, 0)


@cache
def _places(order: tuple[str, ...]) -> dict[str, int]:
    return {limit: place for place, limit in enumerate(order)}


def part_of(gained_ns: Any, part_ns: Any, time_ns: Any) -> Any:
    """Of what a limit's lifting would have gained that of a part of its time."""
    return _whole(gained_ns * (part_ns / time_ns))


def _least(value: Any, pick: Callable[..., Any]) -> Any:
    return pick(value > 0, value, 0)


def _lesser(one: Any, other: Any, pick: Callable[..., Any]) -> Any:
    return pick(one < other, one, other)


def _whole(value: Any) -> Any:
    return value.astype("int64") if hasattr(value, "astype") else int(value)
