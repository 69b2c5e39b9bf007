"""Measurements of one transfer for comparison with references: path, receiver, settings, pace, limit.

In: a connection of a capture, or the samples of its socket without a capture. Out: Measured; unknown values are None.
It uses no reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from tcpwin.analysis import DirectionName
from tcpwin.hosts import Host, SettingsSample
from tcpwin.kernel import adv_win_scale_of
from tcpwin.limits import GROUPS, Connection, Verdict
from tcpwin.paths import RANDOM, fit_path, host_of
from tcpwin.reference.pace import BULK, MESSAGES, OSCILLATING, SECOND_NS, Pace, pace_of
from tcpwin.units import count_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpwin.analysis import Direction

COUNTERS = (
    *("TcpExtPruneCalled", "TcpExtTCPRcvCollapsed", "TcpExtTCPRcvQDrop", "TcpExtTCPOFODrop"),
    *("TcpExtTCPToZeroWindowAdv", "TcpRetransSegs"),
)
"""Counters of the receiver, except the last."""
COLLAPSE = "net.ipv4.tcp_collapse_max_bytes"
BUSY_SHARE = 0.5
PATH_SHARE = 0.1
"""Share of a transfer: if data flowed evenly at its best rate for this long, that rate is the path's."""
LEAST_MESSAGES = 10
LEAST_BULK_BYTES = 1_000_000
LEAST_ROUND_TRIPS = 15
"""Shorter transfers are all slow start: 12 doublings of ten segments fill 1 Gbit/s over 300 ms."""
FIRST_FLIGHT_BYTES = 10 * 1448
"""Ten segments of Ethernet (RFC 6928)."""

WINDOW_LIMITS = ("receiver_window", "receiver_application")
"""Limits caused by a receive window."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of one transfer.

    Attributes:
        name: both ends.
        receiver: the receiver as text: ``a``, or an address.
        connection, direction: its number and ``a_to_b`` or ``b_to_a``; None without a capture.
        rtt_ns: minimum round trip of the path.
        path_rate_bps: the path's rate, if given or visible in the packets; else None.
        loss_share: share of data segments lost randomly or because of other traffic; 0 without loss, or if its own
            queue dropped them.
        goodput_bps: goodput over the whole transfer.
        best_second_bps: rate of its best second; None for connections too long to know single seconds.
        volume_bytes, duration_ns: payload, and its duration; without handshake and close if visible.
        window_max_bytes, window_mean_bytes: receive window.
        flight_max_bytes, flight_mean_bytes: data in flight.
        kernel: the receiver's kernel release.
        rmem_max_bytes, adv_win_scale: the receiver's settings; the third value of tcp_rmem.
        wmem_max_bytes: the sender's: the third value of tcp_wmem.
        is_patched: whether the receiver's kernel does not collapse large queues; None if its settings are unknown.
        settings, sender_settings: settings of the receiver's and the sender's host, never merged.
        workload: the references' name for its shape, or None; `shape` describes it.
        limit: the limit with most time, of `tcpwin.limits.LIMITS`; `limited_by` as text.
        second_limit: another limit with about as much time, or None.
        is_problem, cost_ns: whether something can be done about the limit, and the time that it cost.
        algorithm: the sender's congestion control, if known.
        is_reader_slow: the receiver's application kept the window small.
        is_unscaled: window scaling is off: at most 65,535 bytes, whatever the settings.
        first_flight_bytes: data sent before the first ACK.
        window_ns: time that the receive window held the sender back.
        idle_restart_ns: cost of restarts after idle.
        zero_window_ns, stall_count, stall_ns: time with the window closed; silences in which somebody waited.
        message_p50_ns, message_p99_ns: delays of messages.
        counters: increases of `COUNTERS` while the hosts were watched.
    """

    name: str
    receiver: str
    connection: int | None = None
    direction: DirectionName | None = None
    rtt_ns: int | None = None
    path_rate_bps: float | None = None
    loss_share: float = 0.0
    goodput_bps: float | None = None
    best_second_bps: float | None = None
    volume_bytes: int = 0
    duration_ns: int = 0
    window_max_bytes: int | None = None
    window_mean_bytes: float | None = None
    flight_max_bytes: int | None = None
    flight_mean_bytes: float | None = None
    kernel: str | None = None
    rmem_max_bytes: int | None = None
    wmem_max_bytes: int | None = None
    adv_win_scale: int | None = None
    is_patched: bool | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    sender_settings: Mapping[str, str] = field(default_factory=dict)
    workload: str | None = None
    shape: str = ""
    limit: str = "capture"
    limited_by: str = "limited by something unknown"
    second_limit: str | None = None
    is_problem: bool = False
    cost_ns: int = 0
    algorithm: str | None = None
    is_reader_slow: bool = False
    is_unscaled: bool = False
    first_flight_bytes: int = FIRST_FLIGHT_BYTES
    window_ns: int = 0
    idle_restart_ns: int = 0
    zero_window_ns: int | None = None
    stall_count: int | None = None
    stall_ns: int | None = None
    message_p50_ns: int | None = None
    message_p99_ns: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict)


def measure_connection(
    connection: Connection, *, rate_bps: float | None = None, verdict: Verdict | None = None
) -> Measured | None:
    """Measure a connection's larger direction from a capture and its snapshots; None if nothing was judged.

    Reads the source again for the pace, like `Connection.series`.

    Args:
        rate_bps: the path's rate, if known.
        verdict: its verdict, if already known.
    """
    verdict = verdict or connection.verdict
    if verdict.direction is None:
        return None
    # A verdict may be about the direction that lost most, which may carry only a request; no run is like that.
    larger: DirectionName = "b_to_a" if verdict.direction == "a_to_b" else "a_to_b"
    sizes = {"a_to_b": connection.a_to_b.unique_bytes, "b_to_a": connection.b_to_a.unique_bytes}
    if sizes[larger] > sizes[verdict.direction]:
        verdict = connection.verdicts[larger]
    direction = verdict.direction or larger
    receiver = "b" if direction == "a_to_b" else "a"
    data = connection.a_to_b if direction == "a_to_b" else connection.b_to_a
    budget = connection.budget[direction]
    groups = budget.groups_ns
    pace = _pace(connection, direction)
    rtt_ns = connection.path_rtt_ns or data.rtt_min_ns
    path = fit_path(connection, direction, findings=())
    shown_bps = None if path is None else path.rate_bps.value
    workload, shape = _shape(data, groups, budget.total_ns, pace, rtt_ns=rtt_ns, path_rate_bps=shown_bps)
    if workload == BULK and rtt_ns and budget.total_ns < LEAST_ROUND_TRIPS * rtt_ns:
        workload, shape = (
            None,
            f"a transfer of {budget.total_ns / rtt_ns:.0f} round trips, during which windows still grow",
        )
    fills_path = groups["path"] >= PATH_SHARE * max(budget.total_ns, 1)
    # The published runs contain drops by the receiver's kernel, but no loss on the path.
    is_refused = "receiver_memory" in (verdict.limit, verdict.second_limit, verdict.also)
    is_chance = path is not None and path.loss_kind == RANDOM and not is_refused
    return Measured(
        name=f"connection {connection.id}, {connection.a} → {connection.b}",
        receiver=receiver,
        connection=connection.id,
        direction=direction,
        rtt_ns=rtt_ns,
        path_rate_bps=rate_bps or shown_bps or (pace.best_bps or data.goodput_bps if fills_path else None),
        loss_share=path.loss_share.value or 0.0 if path is not None and is_chance else 0.0,
        goodput_bps=data.goodput_bps,
        best_second_bps=pace.best_bps if pace.step_ns < 2 * SECOND_NS else None,
        volume_bytes=data.acked_bytes or data.unique_bytes,
        duration_ns=budget.total_ns - groups["closed"] - groups["handshake"],
        window_max_bytes=data.receive_window_max_bytes,
        window_mean_bytes=data.receive_window_mean_bytes,
        flight_max_bytes=data.sender_flight_max_bytes or data.flight_max_bytes,
        flight_mean_bytes=data.sender_flight_mean_bytes or data.flight_mean_bytes,
        workload=workload,
        shape=shape,
        limit=verdict.limit,
        limited_by=verdict.limited_by,
        second_limit=verdict.second_limit,
        is_problem=verdict.is_problem,
        cost_ns=verdict.cost_ns or 0,
        algorithm=None if path is None or path.algorithm is None else path.algorithm.name,
        is_reader_slow=verdict.limit == "receiver_application",
        is_unscaled=data.window_scale.state == "disabled",
        first_flight_bytes=data.initial_flight_bytes or FIRST_FLIGHT_BYTES,
        window_ns=sum(budget.items_ns[item] for item in GROUPS["receiver"]),
        idle_restart_ns=data.idle_restart_cost_ns,
        zero_window_ns=data.zero_window_ns,
        stall_count=connection.stall_count,
        stall_ns=connection.stall_ns,
        message_p50_ns=data.message_delay_p50_ns,
        message_p99_ns=data.message_delay_p99_ns,
        **host_facts(*(host_of(connection, direction, role) for role in ("receiver", "sender"))),
    )


class HostFacts(TypedDict):
    """Values from host snapshots, by the fields of `Measured`."""

    kernel: str | None
    rmem_max_bytes: int | None
    wmem_max_bytes: int | None
    adv_win_scale: int | None
    is_patched: bool | None
    settings: Mapping[str, str]
    sender_settings: Mapping[str, str]
    counters: Mapping[str, int]


def host_facts(receiver: Host | None, sender: Host | None) -> HostFacts:
    """Return the values in the hosts' snapshots, by the fields of `Measured`."""
    from tcpwin.limits.evidence import growth

    settings = None if receiver is None else receiver.settings
    others = {} if sender is None or sender.settings is None else sender.settings.values
    release = None if receiver is None or receiver.kernel is None else receiver.kernel.release
    if release is None and settings is not None:
        release = settings.values.get("kernel.osrelease")
    counted = {**growth(sender, COUNTERS[-1]), **growth(receiver, *COUNTERS[:-1])}
    watched = receiver is not None and bool(receiver.counter_sources)
    return {
        "kernel": release,
        "rmem_max_bytes": _largest(settings, "net.ipv4.tcp_rmem"),
        "wmem_max_bytes": _largest(None if sender is None else sender.settings, "net.ipv4.tcp_wmem"),
        "adv_win_scale": adv_win_scale_of(settings),
        # Only a patched kernel has the setting, and 0 disables the patch.
        "is_patched": None if settings is None else bool(settings.number(COLLAPSE)),
        "settings": {} if settings is None else settings.values,
        "sender_settings": others,
        "counters": {name: counted.get(name, 0) for name in COUNTERS if watched or name in counted},
    }


def _largest(settings: SettingsSample | None, name: str) -> int | None:
    sizes = None if settings is None else settings.numbers(name)
    return sizes[2] if sizes is not None and len(sizes) == 3 and sizes[2] > 0 else None


def _pace(connection: Connection, direction: DirectionName) -> Pace:
    series = connection.series("goodput", direction=direction)
    pairs: Iterator[tuple[int, int]] = zip(series.time_ns.tolist(), series.sum.tolist(), strict=True)
    return pace_of(pairs, width_ns=series.width_ns)


def _at_the_paths_rate_ns(data: Direction, path_rate_bps: float | None) -> float:
    """Return the time of a mean message at the path's rate, or 0 if the rate is unknown."""
    return 8e9 * data.acked_bytes / data.messages / path_rate_bps if path_rate_bps else 0.0


def _shape(
    data: Direction,
    groups: Mapping[str, int],
    total_ns: int,
    pace: Pace,
    *,
    rtt_ns: int | None,
    path_rate_bps: float | None,
) -> tuple[str | None, str]:
    """Return the reference workload that a transfer resembles, and a description."""
    waiting_ns = groups["application"] + groups["turns"]
    busy_ns = total_ns - waiting_ns - groups["handshake"] - groups["closed"]
    if data.messages >= LEAST_MESSAGES and waiting_ns >= BUSY_SHARE * total_ns:
        if _at_the_paths_rate_ns(data, path_rate_bps) > (rtt_ns or 0):
            return None, "messages that take longer at the path's rate than a round trip, so that no window decides"
        return MESSAGES, f"{data.messages:,} messages with pauses between them"
    if waiting_ns >= BUSY_SHARE * total_ns:
        return None, "the sender had nothing to send for most of the time, and sent few messages"
    carried_bytes = data.acked_bytes or data.unique_bytes
    if carried_bytes < LEAST_BULK_BYTES:
        return None, f"only {count_text(carried_bytes, 'byte')}, too few to compare"
    if groups["receiver"] >= 0.1 * max(busy_ns, 1) and pace.oscillates:
        return OSCILLATING, "fast seconds alternate with slow ones in which the window held the sender back"
    most, mean = data.receive_window_max_bytes, data.receive_window_mean_bytes
    slow = data.zero_window_ns >= 0.1 * max(busy_ns, 1)
    if groups["receiver"] >= BUSY_SHARE * busy_ns and (slow or (most and mean is not None and mean < most / 2)):
        return None, "a reader that was slow or stopped, and did not alternate like the published one"
    return BULK, "a bulk transfer: the sender had data nearly all the time"
