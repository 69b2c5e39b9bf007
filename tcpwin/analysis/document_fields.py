"""Names that select fields of the JSON document."""

from __future__ import annotations

from tcpwin import _engine


def field_names() -> tuple[str, ...]:
    """Return the names of all fields, their groups, and the members that are not fields."""
    names = [name for name, _ in _engine.FIELD_MEMBERS]
    for kind in ("connection", "direction"):
        for group, _, fields in _engine.field_groups(kind):
            names += [group, *fields]
    return tuple(dict.fromkeys(names))
