"""Limits, budget items, owners and the verdict's fields by name, from the engine's tables: the only list of each."""

from __future__ import annotations

from tcpwin import _engine

_LIMITS, _ITEMS, _FIELDS = _engine.limits(), _engine.budget_items(), _engine.verdict_fields()

LIMITS: tuple[str, ...] = tuple(row["name"] for row in _LIMITS)
"""What limits a connection."""
LIMIT_NAMES: dict[str, str] = {row["name"]: row["label"] for row in _LIMITS}
"""Limits in words: at most 18 characters, so that two columns of a legend fit a phone."""
LIMIT_PHRASES: dict[str, str] = {row["name"]: row["phrase"] for row in _LIMITS}
"""Limits after *limited by*, with the roles of the ends left open."""
LIMIT_GROUPS: dict[str, str] = {row["name"]: row["group"] for row in _LIMITS}
"""The group whose colour and symbol a limit has."""
MENDABLE = frozenset(row["name"] for row in _LIMITS if row["is_mendable"])
"""Limits that somebody can lift; the others work as designed, or are unknown. A handshake is mended only where it was
disturbed."""
HELD_BY: dict[str, tuple[str, ...]] = {row["name"]: tuple(row["held_by"]) for row in _LIMITS}
"""The items whose time may turn out to be a limit's, the likeliest first."""

ITEMS: tuple[str, ...] = tuple(row["name"] for row in _ITEMS)
"""Items of the time budget, group after group."""
ITEM_NAMES: dict[str, str] = {row["name"]: row["label"] for row in _ITEMS}
"""Items in words, as short as `LIMIT_NAMES`."""
ITEM_LIMITS: dict[str, str] = {row["name"]: row["limit"] for row in _ITEMS}
"""The limit that each item's time is due to, by the packets alone."""
SLOW_LIMITS: dict[str, str] = {row["name"]: row["slow_limit"] for row in _ITEMS}
"""`ITEM_LIMITS` of a direction with a slow reader."""
WINDOW_ITEMS = tuple(row["name"] for row in _ITEMS if row["is_window"])
"""Items in which the receive window held the sender."""
RECOVERY_ITEMS = tuple(row["name"] for row in _ITEMS if row["is_recovery"])
"""Items in which a loss was being repaired."""
SILENT_ITEMS = tuple(row["name"] for row in _ITEMS if row["is_silent"])
"""Items in whose time nothing came through: lifting their limit gains all of it."""
GROUPS: dict[str, tuple[str, ...]] = {
    group: tuple(row["name"] for row in _ITEMS if row["group"] == group) for group, _ in _engine.budget_groups()
}
"""Items by what they belong to: time in a window that losses cut is the losses'."""
GROUP_NAMES: dict[str, str] = dict(_engine.budget_groups())
"""Groups in words."""

OWNERS: tuple[str, ...] = tuple(_engine.OWNERS)
"""Who can change it; ``application`` and ``host`` where it is both ends', or not known which."""
ENDS: tuple[str, ...] = tuple(_engine.ENDS)
"""Roles of the ends a and b."""
CONFIDENCES: tuple[str, ...] = tuple(_engine.CONFIDENCES)
"""From the lowest. `certain`: read off the packets or the kernel's count. `likely`: judged; the likely alternatives are
ruled out. `possible`: one of several readings."""

LIMIT_ORDER: tuple[str, ...] = tuple(_engine.LIMIT_ORDER)
"""Of limits that have the same time the first of these is named."""
MIN_COST_NS = _engine.MIN_COST_NS
"""Less is below what a person notices, and below Linux's shortest retransmission timeout."""
MIN_SHARE = _engine.MIN_SHARE
"""Of the time in which a sender had work: what costs less works as designed."""

VERDICT_FIELDS: tuple[str, ...] = tuple(row["name"] for row in _FIELDS if not row["is_column_only"])
"""Attributes of `Verdict` that every machine form has, by these names."""
VERDICT_COLUMNS: tuple[str, ...] = tuple(row["name"] for row in _FIELDS)
"""Attributes of `Verdict` that have a column each."""
