"""Plan a Linux host for a path: buffers, shift, the lines to set, and what the defaults reach.

In: round trip, rate, and known facts about the kernel. Out: Plan, for the maximum needs of one connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tcpwin.kernel.bdp import FULL_PACKET_BYTES, Number, bdp_bytes, exact, segments, window_rate_bps
from tcpwin.kernel.defaults import SCALING_RATIO_SINCE, Defaults, Kernel, kernel_defaults
from tcpwin.kernel.memory import HALF_RATIO, AdvWinScale, MemoryModel, ScalingRatio
from tcpwin.kernel.scale import MAX_WINDOW_BYTES, linux_shift, smallest_shift

ETHERNET_MSS_BYTES = 1448
"""Payload of a full packet of 1,500 bytes with IPv4 and TCP timestamps."""
SEND_BUFFER_FACTOR = 2
"""Send buffer per byte in flight: the factor by which the kernel itself grows sk_sndbuf (`tcp_sndbuf_expand`,
net/ipv4/tcp_input.c: recovery needs 1.7, rounded up). BBR uses 3."""
MAX_SETTING_BYTES = (1 << 31) - 1
"""tcp_rmem and tcp_wmem are signed 32-bit numbers."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What a buffer achieves over the round trip.

    Attributes:
        buffer_bytes: the largest buffer, the third value of tcp_rmem or tcp_wmem.
        window_bytes: bytes in flight that it allows.
        rate_bps: rate of these bytes in bits per second; may exceed the wanted rate.
        share: share of the wanted rate, at most 1.
    """

    buffer_bytes: int
    window_bytes: int
    rate_bps: Fraction
    share: Fraction


@dataclass(frozen=True, slots=True)
class Plan:
    """The needs of a path.

    Attributes:
        rtt_ns, rate_bps: the path: nanoseconds, bits per second.
        kernel: the assumed version; None if unknown.
        model: model that converts the receive buffer to a window.
        window_bytes: bytes in flight that fill the path; receive and congestion window must both reach it.
        mss_bytes, segments: payload of a segment, and the window in whole segments.
        packets: the window in whole packets of 1,500 bytes, including headers.
        smallest_shift: smallest window scale shift that can express the window; None if none can.
        offered_shift: shift that a Linux receiver offers with `receive_buffer_bytes`.
        receive_buffer_bytes: third value of tcp_rmem that allows the window by the model.
        send_buffer_bytes: third value of tcp_wmem: `SEND_BUFFER_FACTOR` × window. This is a rule of thumb: large
            segments need less, small writes more.
        defaults: the kernel's defaults.
        default_receive, default_send: what the defaults achieve.
        lines: sysctl lines for needs beyond the defaults.
        notes: sentences to read before setting them.
    """

    rtt_ns: Fraction
    rate_bps: Fraction
    kernel: Kernel | None
    model: MemoryModel
    window_bytes: int
    mss_bytes: int
    segments: int
    packets: int
    smallest_shift: int | None
    offered_shift: int
    receive_buffer_bytes: int
    send_buffer_bytes: int
    defaults: Defaults
    default_receive: Reach
    default_send: Reach
    lines: tuple[str, ...]
    notes: tuple[str, ...]


def plan(
    rtt_ns: Number,
    rate_bps: Number,
    *,
    kernel: Kernel | None = None,
    adv_win_scale: int | None = None,
    scaling_ratio: int = HALF_RATIO,
    mss_bytes: int = ETHERNET_MSS_BYTES,
) -> Plan:
    """Plan what a path needs of both hosts.

    Args:
        rtt_ns: round trip in nanoseconds.
        rate_bps: wanted rate in bits per second.
        kernel: version of the host's kernel. If None, the window is half of the buffer, as by default in either model,
            and the defaults are those of 4.20 to 6.5.
        adv_win_scale: the host's `net.ipv4.tcp_adv_win_scale`, by default the version's. No effect from 6.6 on.
        scaling_ratio: from 6.6 on, window in 256ths of the buffer. The kernel measures it per connection, starting with
            128; a connection's ratio is 256 × Recv-Q ÷ `r` of `ss -tm`.
        mss_bytes: payload of a segment.

    Raises:
        ArgumentError: a number is invalid or out of range.
    """
    rtt, rate = exact(rtt_ns, "round trip"), exact(rate_bps, "rate")
    window = bdp_bytes(rtt, rate)
    model = planning_model(kernel, adv_win_scale=adv_win_scale, scaling_ratio=scaling_ratio)
    receive, send = model.space_from_window(window), SEND_BUFFER_FACTOR * window
    defaults = kernel_defaults(kernel)
    usual = planning_model(kernel, adv_win_scale=None, scaling_ratio=scaling_ratio)
    receive_max, send_max = defaults.tcp_rmem_bytes[2], defaults.tcp_wmem_bytes[2]
    return Plan(
        rtt_ns=rtt,
        rate_bps=rate,
        kernel=kernel,
        model=model,
        window_bytes=window,
        mss_bytes=mss_bytes,
        segments=segments(window, mss_bytes),
        packets=segments(window, FULL_PACKET_BYTES),
        smallest_shift=smallest_shift(window),
        offered_shift=linux_shift(max(receive, receive_max)),
        receive_buffer_bytes=receive,
        send_buffer_bytes=send,
        defaults=defaults,
        default_receive=reach(receive_max, usual.window_from_space(receive_max), rtt, rate),
        default_send=reach(send_max, send_max // SEND_BUFFER_FACTOR, rtt, rate),
        lines=_lines(receive, send, model, usual, defaults),
        notes=_notes(window, receive, send, model, kernel, adv_win_scale),
    )


def planning_model(kernel: Kernel | None, *, adv_win_scale: int | None, scaling_ratio: int = HALF_RATIO) -> MemoryModel:
    """Return the model that a plan uses."""
    if kernel is not None and kernel >= SCALING_RATIO_SINCE:
        return ScalingRatio(scaling_ratio)
    scale = kernel_defaults(kernel).adv_win_scale if adv_win_scale is None else adv_win_scale
    return AdvWinScale(1 if scale is None else scale)


def reach(buffer_bytes: int, window_bytes: int, rtt_ns: Fraction, rate_bps: Fraction) -> Reach:
    """Return the share of a rate that a window reaches; 0 for an empty window."""
    rate = window_rate_bps(window_bytes, rtt_ns) if window_bytes > 0 else Fraction(0)
    return Reach(buffer_bytes, window_bytes, rate, min(rate / rate_bps, Fraction(1)))


def setting_line(name: str, *values: int) -> str:
    """Return a line of sysctl.conf: ``net.ipv4.tcp_rmem = 4096 131072 525000000``."""
    return f"{name} = {' '.join(str(value) for value in values)}"


def _lines(receive: int, send: int, model: MemoryModel, usual: MemoryModel, defaults: Defaults) -> tuple[str, ...]:
    lines = []
    for name, (least, start, most), needed in (
        ("net.ipv4.tcp_rmem", defaults.tcp_rmem_bytes, receive),
        ("net.ipv4.tcp_wmem", defaults.tcp_wmem_bytes, send),
    ):
        if needed > most:
            lines.append(setting_line(name, least, start, min(needed, MAX_SETTING_BYTES)))
    if isinstance(model, AdvWinScale) and model != usual:
        lines.append(setting_line("net.ipv4.tcp_adv_win_scale", model.scale))
    return tuple(lines)


def _notes(
    window: int, receive: int, send: int, model: MemoryModel, kernel: Kernel | None, adv_win_scale: int | None
) -> tuple[str, ...]:
    notes = []
    if window > MAX_WINDOW_BYTES:
        notes.append(
            f"No shift can express this window: the maximum is {MAX_WINDOW_BYTES:,} bytes (RFC 7323 §2.3). Use several "
            "connections."
        )
    if max(receive, send) > MAX_SETTING_BYTES:
        notes.append(f"A setting cannot be that large: the maximum is {MAX_SETTING_BYTES:,}, and the lines stop there.")
    if isinstance(model, ScalingRatio):
        notes.append(
            f"From 6.6 on the kernel measures the share of payload per connection; {model.ratio}/256 is assumed here. "
            "A connection's ratio is 256 × Recv-Q ÷ r of `ss -tm`."
        )
        if adv_win_scale is not None:
            notes.append("tcp_adv_win_scale has no effect from 6.6 on.")
    elif kernel is None and adv_win_scale is None:
        notes.append("Kernel unknown: assuming the defaults of 4.20 to 6.5, and half of the buffer for the window.")
    notes.append(
        f"The send buffer is {SEND_BUFFER_FACTOR} × the window, the kernel's own factor (3 with BBR): large segments "
        "need less, small writes more."
    )
    notes.append(
        "net.core.rmem_max and wmem_max bound only SO_RCVBUF and SO_SNDBUF, which switch autotuning off for the socket."
    )
    return tuple(notes)
