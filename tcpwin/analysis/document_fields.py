"""The names by which fields of the JSON document are chosen."""

from __future__ import annotations

from tcpwin import _engine


def field_names() -> tuple[str, ...]:
    """Return the names of all fields and their groups, and of the members that are not fields."""
    names = [name for name, _ in _engine.FIELD_MEMBERS]
    for kind in ("connection", "direction"):
        for group, _, fields in _engine.field_groups(kind):
            names += [group, *fields]
    return tuple(dict.fromkeys(names))
