"""Window, round trip and rate: each from the other two, exactly.

In: integers, floats or Fractions. Out: whole bytes, or Fractions where a whole number would lose something.
"""

from __future__ import annotations

from fractions import Fraction

from tcpwin.errors import ArgumentError

Number = int | float | Fraction

FULL_PACKET_BYTES = 1500
"""A full packet on Ethernet, its IP and TCP headers with it."""
_LARGEST = 10**30
"""No round trip in nanoseconds and no rate comes near it; it keeps every result within a float."""
_NS_PER_BYTE_SECOND = 8 * 10**9
"""Bits × nanoseconds that make one byte × second."""


def exact(value: Number, name: str) -> Fraction:
    """The value as a Fraction.

    Raises:
        ArgumentError: it is zero, negative, infinite, beyond all sense (10^±30) or not a number.
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
    """The bandwidth-delay product: bytes that are in flight when the path is full, rounded up to a whole byte.

    A window of that size fills the path; one byte less does not. Rate × round trip ÷ 8 (RFC 7323 §1.1).

    Args:
        rtt_ns: round trip in nanoseconds.
        rate_bps: rate in bits per second.
    """
    return -(-exact(rtt_ns, "round trip") * exact(rate_bps, "rate") // _NS_PER_BYTE_SECOND)


def window_rate_bps(window_bytes: Number, rtt_ns: Number) -> Fraction:
    """The most that a window carries over a round trip, in bits per second: one window a round trip.

    With a congestion window of `cwnd` segments the window is cwnd × MSS: this is the `send` rate of `ss`
    (iproute2, misc/ss.c, tcp_show_info).
    """
    return exact(window_bytes, "window") * _NS_PER_BYTE_SECOND / exact(rtt_ns, "round trip")


def window_rtt_ns(window_bytes: Number, rate_bps: Number) -> Fraction:
    """The longest round trip, in nanoseconds, over which a window carries a rate."""
    return exact(window_bytes, "window") * _NS_PER_BYTE_SECOND / exact(rate_bps, "rate")


def segments(window_bytes: int, segment_bytes: int = FULL_PACKET_BYTES) -> int:
    """How many whole segments a window holds; what is left over does not make one.

    Args:
        window_bytes: the window.
        segment_bytes: what one segment counts. The default is a full packet with its headers, as textbooks count; give
            the MSS (1448 with timestamps on Ethernet) to count payload, as Linux does.

    Raises:
        ArgumentError: the segment has no size, or the window is negative.
    """
    if segment_bytes < 1 or window_bytes < 0:
        raise ArgumentError(f"no segments of {segment_bytes} bytes in {window_bytes} bytes")
    return window_bytes // segment_bytes
