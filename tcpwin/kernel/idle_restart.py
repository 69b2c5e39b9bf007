"""The congestion window after a pause, by Linux's rule.

In: the window before, the silence, the retransmission timeout. Out: segments, and the round trips lost.
"""

from __future__ import annotations

from tcpwin.errors import ArgumentError

INITIAL_WINDOW_SEGMENTS = 10
"""TCP_INIT_CWND (RFC 6928); a route's initcwnd replaces it."""


def cwnd_after_idle(
    cwnd_segments: int, idle_ns: int, rto_ns: int, *, initial_window_segments: int = INITIAL_WINDOW_SEGMENTS
) -> int:
    """Return the congestion window, in segments, at the first send after a silence with nothing in flight.

    One halving for each further RTO that has begun, down to min(initial window, window):
    `tcp_slow_start_after_idle_check` (include/net/tcp.h) and `tcp_cwnd_restart` (net/ipv4/tcp_output.c), with
    net.ipv4.tcp_slow_start_after_idle at 1 and a congestion control other than BBR. RFC 5681 §4.1 goes to the floor in
    one step.

    Raises:
        ArgumentError: a window or the RTO is not above 0.
    """
    if min(cwnd_segments, rto_ns, initial_window_segments) < 1:
        raise ArgumentError(
            f"window {cwnd_segments}, RTO {rto_ns} and initial window {initial_window_segments}: not all above 0"
        )
    floor = min(initial_window_segments, cwnd_segments)
    halvings = -(-idle_ns // rto_ns) - 1
    # Years of silence give huge numbers; a window is at its floor after as many halvings as it has bits.
    return max(cwnd_segments >> min(max(halvings, 0), cwnd_segments.bit_length()), floor)


def round_trips_to_regain(before_segments: int, after_segments: int) -> int:
    """Return the round trips of slow start, which doubles, from one window to another: ⌈log2(before ÷ after)⌉."""
    if min(before_segments, after_segments) < 1:
        raise ArgumentError(f"windows {before_segments} and {after_segments}: not both above 0")
    return (-(-before_segments // after_segments) - 1).bit_length()
