"""Limits, budget items, owners and the verdict's fields by name, from the engine's tables."""

from __future__ import annotations

from tcpwin import _engine

_LIMITS, _ITEMS, _FIELDS = _engine.limits(), _engine.budget_items(), _engine.verdict_fields()

LIMITS: tuple[str, ...] = tuple(row["name"] for row in _LIMITS)
"""Everything that can limit a connection."""
LIMIT_NAMES: dict[str, str] = {row["name"]: row["label"] for row in _LIMITS}
"""Labels of limits: at most 18 characters, so that two columns of a legend fit a phone."""
LIMIT_PHRASES: dict[str, str] = {row["name"]: row["phrase"] for row in _LIMITS}
"""Phrases after *limited by*, with placeholders for the ends' roles."""
LIMIT_GROUPS: dict[str, str] = {row["name"]: row["group"] for row in _LIMITS}
"""The group whose colour and symbol a limit uses."""
MENDABLE = frozenset(row["name"] for row in _LIMITS if row["is_mendable"])
"""Limits that somebody can lift; others work as designed or are unknown. A handshake can be improved only if it was
disturbed."""
FAULTS = frozenset(row["name"] for row in _LIMITS if row["is_fault"])
REPORTABLE = frozenset(row["name"] for row in _LIMITS if row["is_reportable"])
"""Limits that mean something is broken; only findings attribute time to them."""
HELD_BY: dict[str, tuple[str, ...]] = {row["name"]: tuple(row["held_by"]) for row in _LIMITS}
"""Items whose time may belong to a limit, likeliest first."""

ITEMS: tuple[str, ...] = tuple(row["name"] for row in _ITEMS)
"""Items of the time budget, ordered by group."""
ITEM_NAMES: dict[str, str] = {row["name"]: row["label"] for row in _ITEMS}
"""Labels of items, as short as `LIMIT_NAMES`."""
ITEM_LIMITS: dict[str, str] = {row["name"]: row["limit"] for row in _ITEMS}
"""The limit that each item's time is attributed to, from the packets alone."""
SLOW_LIMITS: dict[str, str] = {row["name"]: row["slow_limit"] for row in _ITEMS}
"""`ITEM_LIMITS` for a direction with a slow reader."""
WINDOW_ITEMS = tuple(row["name"] for row in _ITEMS if row["is_window"])
"""Items in which the receive window limited the sender."""
RECOVERY_ITEMS = tuple(row["name"] for row in _ITEMS if row["is_recovery"])
"""Items in which a loss was being repaired."""
SILENT_ITEMS = tuple(row["name"] for row in _ITEMS if row["is_silent"])
"""Items in whose time nothing got through: lifting the limit gains all of it."""
GROUPS: dict[str, tuple[str, ...]] = {
    group: tuple(row["name"] for row in _ITEMS if row["group"] == group) for group, _ in _engine.budget_groups()
}
"""Items by cause: time in a window reduced by losses belongs to the losses."""
GROUP_NAMES: dict[str, str] = dict(_engine.budget_groups())
"""Labels of groups."""

OWNERS: tuple[str, ...] = tuple(_engine.OWNERS)
"""Who can lift a limit; ``application`` and ``host`` mean both ends or an unknown end."""
ENDS: tuple[str, ...] = tuple(_engine.ENDS)
"""Roles of the ends a and b."""
CONFIDENCES: tuple[str, ...] = tuple(_engine.CONFIDENCES)
"""Confidences, lowest first. `certain`: read directly from the packets or the kernel's counter. `likely`: judged, with
the likely alternatives ruled out. `possible`: one of several readings."""

LIMIT_ORDER: tuple[str, ...] = tuple(_engine.LIMIT_ORDER)
"""Tie-break order of limits with equal time."""
CHATTY_EXCHANGES = _engine.CHATTY_EXCHANGES
"""Exchanges from which a conversation is chatty: a page over TLS needs fewer."""
MIN_COST_NS = _engine.MIN_COST_NS
"""Minimum cost of a problem: what a person notices, and Linux's shortest retransmission timeout."""
MIN_SHARE = _engine.MIN_SHARE
"""Minimum cost of a problem as a share of the time in which the sender had work."""

VERDICT_FIELDS: tuple[str, ...] = tuple(row["name"] for row in _FIELDS)
"""Attributes of `Verdict` in every machine format, and the columns of verdicts."""
