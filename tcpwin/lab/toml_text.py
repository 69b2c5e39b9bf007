"""Write a scenario's table as TOML, for which `tomllib` has no writer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def render_toml(table: Mapping[str, Any]) -> str:
    """Write plain keys first, then each table, with tables within a table as dotted keys."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if not isinstance(value, Mapping)]
    for heading, inner in table.items():
        if isinstance(inner, Mapping) and inner:
            lines += ["", f"[{_key(heading)}]", *_dotted(inner, "")]
    return "\n".join(lines) + "\n"


def _dotted(table: Mapping[str, Any], before: str) -> list[str]:
    lines: list[str] = []
    for key, value in table.items():
        name = before + _key(key)
        lines += _dotted(value, f"{name}.") if isinstance(value, Mapping) else [f"{name} = {_value(value)}"]
    return lines


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key)


def _value(value: Any) -> str:
    """Write a value as JSON, which TOML shares for text, numbers, booleans and lists of them."""
    return json.dumps(value, ensure_ascii=False)
