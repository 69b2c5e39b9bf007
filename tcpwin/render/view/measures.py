"""Measurements of a connection in words: rows of a table with a column for each direction."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tcpwin.analysis import DIRECTIONS
from tcpwin.render.view.direction import is_burst
from tcpwin.units import bytes_text, rate_text, share_text, time_text

SHARES = ("p5", "p25", "p50", "p75", "p95", "p99")
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Measure:
    """A row: its name, and its value for the data of a and of b."""

    name: str
    values: tuple[str, str]


@dataclass(frozen=True)
class Percentiles:
    """A row of percentiles: quantity, direction, and the value at each of `SHARES`."""

    name: str
    direction: str
    values: tuple[str, ...]


def measures(connection: Facts) -> list[tuple[str, list[Measure]]]:
    """Return groups of rows, without rows that have no value in either direction."""
    groups: list[tuple[str, list[tuple[str, Callable[[Facts], str | None]]]]] = [
        (
            "Data",
            [
                ("sent", _of(bytes_text, "unique_bytes", shows_zero=False)),
                ("acknowledged", _acknowledged),
                ("goodput", _goodput),
                ("throughput", _of(rate_text, "throughput_bps")),
                ("segments", _of(_count, "segments")),
                ("largest segment", _of(bytes_text, "mss_bytes", shows_zero=False)),
            ],
        ),
        (
            "Receive window of the other side",
            [
                ("scale", _scale),
                ("least", _of(bytes_text, "receive_window_min_bytes")),
                ("mean", _of(bytes_text, "receive_window_mean_bytes")),
                ("greatest", _of(bytes_text, "receive_window_max_bytes")),
                ("closed", _closed),
                ("limited the sender for", _of(time_text, "window_limited_ns", shows_zero=False)),
            ],
        ),
        (
            "In flight",
            [
                ("mean", _of(bytes_text, "flight_mean_bytes")),
                ("greatest", _of(bytes_text, "flight_max_bytes")),
                ("of the window, on average", _of(share_text, "window_utilisation")),
                ("congestion control", _algorithm),
            ],
        ),
        (
            "Losses and order",
            [
                ("retransmissions", _of(_count, "retransmissions")),
                ("by timeout", _of(_count, "rto_retransmissions", shows_zero=False)),
                ("spurious", _of(_count, "spurious_retransmissions", shows_zero=False)),
                ("in loss recovery", _of(time_text, "recovery_ns", shows_zero=False)),
                ("arrived out of order", _of(_count, "out_of_order", shows_zero=False)),
                ("idle restarts", _of(_count, "idle_restarts", shows_zero=False)),
            ],
        ),
        (
            "Time",
            [
                ("minimum round trip", _of(time_text, "rtt_min_ns")),
                ("smoothed round trip", _of(time_text, "rtt_smoothed_ns")),
                ("retransmission timeout", _of(time_text, "rto_ns")),
                ("messages", _of(_count, "messages", shows_zero=False)),
                ("median message delay", _of(time_text, "message_delay_p50_ns")),
                ("95th percentile", _of(time_text, "message_delay_p95_ns")),
                ("99th percentile", _of(time_text, "message_delay_p99_ns")),
            ],
        ),
    ]
    sides = [{**connection[side], "algorithm": connection["algorithm"][side]} for side in DIRECTIONS]
    found = []
    for title, rows in groups:
        cells = [(name, [value_of(facts) for facts in sides]) for name, value_of in rows]
        rows_left = [Measure(name, (a or "–", b or "–")) for name, (a, b) in cells if a or b]
        if rows_left:
            found.append((title, rows_left))
    return found


def percentiles(connection: Facts) -> list[Percentiles]:
    """Return the percentiles that are known: of window and flight over time, and of round trips over ACKs."""
    found: list[Percentiles] = []
    for side in DIRECTIONS:
        direction = " → ".join(connection["roles"][end] for end in (side[0], side[-1]))
        if not connection[side]["payload_bytes"] and not connection[side]["acked_bytes"]:
            continue
        of_time = connection["percentiles"][side]
        kinds = [("receive window", "receive_window"), ("in flight", "flight"), ("in flight minus SACKed", "pipe")]
        for name, key in kinds:
            values = [of_time[key][share] for share in SHARES]
            if key != "pipe" or of_time[key] != of_time["flight"]:
                _add(found, name, direction, values, bytes_text)
        trips = [connection["round_trips"][side][f"{share}_ns"] for share in SHARES]
        _add(found, "round trip at the capture point", direction, trips, time_text)
    return found


def _add(found: list[Percentiles], name: str, direction: str, values: list[Any], text: Callable[[Any], str]) -> None:
    if None not in values:
        found.append(Percentiles(name, direction, tuple(text(each) for each in values)))


def _of(text: Callable[[Any], str], field: str, *, shows_zero: bool = True) -> Callable[[Facts], str | None]:
    def value_of(facts: Facts) -> str | None:
        value = facts[field]
        return None if value is None or not (value or shows_zero) else text(value)

    return value_of


def _algorithm(facts: Facts) -> str | None:
    algorithm = facts["algorithm"]
    return algorithm and f"{algorithm['name']} ({algorithm['confidence']}): {algorithm['evidence']}"


def _acknowledged(facts: Facts) -> str | None:
    return "not captured" if _is_answer_missing(facts) else bytes_text(facts["acked_bytes"])


def _goodput(facts: Facts) -> str | None:
    value = facts["goodput_bps"]
    if value is None or _is_answer_missing(facts) or is_burst(facts["data_segments"], facts["acked_bytes"]):
        return None
    return rate_text(value)


def _is_answer_missing(facts: Facts) -> bool:
    """Return true if data was captured without the acknowledging side: the flight is then unknown."""
    return facts["flight_max_bytes"] is None and bool(facts["payload_bytes"])


def _scale(facts: Facts) -> str:
    state = str(facts["window_scale_state"]).replace("_", " ")
    if facts["window_scale_shift"] is not None:
        return f"{state}, shift {facts['window_scale_shift']}"
    return f"{state}, shift {facts['window_scale_min']} to {facts['window_scale_max']}"


def _closed(facts: Facts) -> str | None:
    count = facts["zero_window_episode_count"]
    if not count:
        return None
    times = "once" if count == 1 else f"{count:,} times"
    longest = "" if count == 1 else f", at most {time_text(facts['zero_window_longest_ns'])}"
    return f"{times}, {time_text(facts['zero_window_ns'])} in all{longest}"


def _count(value: float) -> str:
    return f"{value:,.0f}"
