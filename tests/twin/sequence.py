"""Sequence numbers as plain integers: each 32-bit number is placed nearest to a known one (RFC 9293 §3.4)."""

MODULO = 1 << 32
FURTHEST = 1 << 30
"""No window reaches further (RFC 7323 §2.3), so numbers beyond belong to no connection."""


def place(raw: int, near: int) -> int:
    """Return the integer nearest to `near` that is `raw` modulo 2^32."""
    half = MODULO >> 1
    return near + (raw - near + half) % MODULO - half


def is_earlier(value: int, other: int) -> bool:
    """Return whether a 32-bit timestamp value is older than another (RFC 7323 §5.2)."""
    return place(value, other) < other
