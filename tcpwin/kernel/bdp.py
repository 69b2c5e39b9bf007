"""Compute window, round trip or rate exactly from the other two.

In: integers, floats or Fractions. Out: whole bytes, or Fractions where rounding would lose precision.
"""

from __future__ import annotations

from fractions import Fraction

from tcpwin.errors import ArgumentError

Number = int | float | Fraction

FULL_PACKET_BYTES = 1500
"""A full Ethernet packet, including its IP and TCP headers."""
_LARGEST = 10**30
"""Larger than any round trip in nanoseconds and any rate; keeps every result within a float."""
_NS_PER_BYTE_SECOND = 8 * 10**9
"""Bits × nanoseconds in one byte × second."""


def exact(value: Number, name: str) -> Fraction:
    """Return the value as a Fraction.

    Raises:
        ArgumentError: it is zero, negative, infinite, out of range (10^±30) or not a number.
    """
    try:
        fraction = Fraction(value)
    except (ValueError, OverflowError):
        raise ArgumentError(f"{name} is not a number: {value}") from None
    if fraction <= 0:
        raise ArgumentError(f"{name} must be above 0")
    if not Fraction(1, _LARGEST) <= fraction <= _LARGEST:
        raise ArgumentError(f"{name} is out of range")
    return fraction


def bdp_bytes(rtt_ns: Number, rate_bps: Number) -> int:
    """Return the bandwidth-delay product: the bytes in flight when the path is full, rounded up.

    A window of that size fills the path; one byte less does not. It is rate × round trip ÷ 8 (RFC 7323 §1.1).

    Args:
        rtt_ns: round trip in nanoseconds.
        rate_bps: rate in bits per second.
    """
    return -(-exact(rtt_ns, "round trip") * exact(rate_bps, "rate") // _NS_PER_BYTE_SECOND)


def window_rate_bps(window_bytes: Number, rtt_ns: Number) -> Fraction:
    """Return the maximum rate of a window in bits per second: one window per round trip.

    With a congestion window of `cwnd` segments the window is cwnd × MSS: this is the `send` rate of `ss`
    (iproute2, misc/ss.c, tcp_show_info).
    """
    return exact(window_bytes, "window") * _NS_PER_BYTE_SECOND / exact(rtt_ns, "round trip")


def window_rtt_ns(window_bytes: Number, rate_bps: Number) -> Fraction:
    """Return the longest round trip, in nanoseconds, over which a window carries a rate."""
    return exact(window_bytes, "window") * _NS_PER_BYTE_SECOND / exact(rate_bps, "rate")


def segments(window_bytes: int, segment_bytes: int = FULL_PACKET_BYTES) -> int:
    """Return how many whole segments a window holds.

    Args:
        window_bytes: the window.
        segment_bytes: size of one segment. The default is a full packet with its headers, as in textbooks; pass the MSS
            (1448 with timestamps on Ethernet) to count payload, as Linux does.

    Raises:
        ArgumentError: the segment has no size, or the window is negative.
    """
    if segment_bytes < 1 or window_bytes < 0:
        raise ArgumentError(f"no segments of {segment_bytes} bytes in {window_bytes} bytes")
    return window_bytes // segment_bytes
