"""Settings of a workload: a frozen dataclass, its fields read from a scenario's table or from options.

In: names and values from TOML. Out: an instance, or SettingsError with the wrong name or value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import Field, field, fields
from typing import Any, TypeVar

from tcpwin.errors import TcpwinError

T = TypeVar("T")
_KINDS: dict[str, type] = {"int": int, "float": float, "bool": bool, "tuple[int, ...]": int, "str": str}
_SHOWN = {"int": "a whole number", "float": "a number", "bool": "true or false", "tuple[int, ...]": "whole numbers"}
_SHOWN["str"] = "a word"


class SettingsError(TcpwinError):
    """An unknown setting of a workload, or an invalid value."""


def setting(
    default: Any,
    text: str,
    *,
    least: float = 0,
    most: float = math.inf,
    words: tuple[str, ...] = (),
    is_always_listed: bool = True,
) -> Any:
    """Declare a field: its default, a one-line description, and its minimum and maximum.

    `words`: allowed words. `is_always_listed`: list it even with its default (`list_settings`).
    """
    metadata = {"help": text, "least": least, "most": most, "words": words, "is_always_listed": is_always_listed}
    return field(default=default, metadata=metadata)


def list_settings(settings: Any) -> dict[str, Any]:
    """Return these settings for a run's truth."""
    return {
        each.name: value
        for each in fields(settings)
        if (value := getattr(settings, each.name)) != each.default or each.metadata["is_always_listed"]
    }


def read_settings(kind: type[T], values: Mapping[str, object], *, where: str) -> T:
    """Create an instance of these settings, with defaults for missing ones. Error messages begin with `where`."""
    known: dict[str, Field[Any]] = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            has = ", ".join(known) or "none"
            raise SettingsError(f"{where}: unknown setting {name}; available: {has}")
    return kind(**{name: _value(known[name], value, where) for name, value in values.items()})


def _value(each: Field[Any], value: object, where: str) -> object:
    kind = str(each.type)
    is_many = kind.startswith("tuple")
    if is_many:
        value = tuple(value) if isinstance(value, list | tuple) else ()
    elif kind == "float" and type(value) is int:
        value = float(value)
    parts = value if isinstance(value, tuple) else (value,)
    is_empty = not parts and each.default != ()
    if is_empty or any(type(part) is not _KINDS[kind] for part in parts):
        raise SettingsError(f"{where}: {each.name} must be {_SHOWN[kind]}")
    if kind == "str":
        words = each.metadata["words"]
        if value not in words:
            raise SettingsError(f"{where}: {each.name} must be of {', '.join(word or '(nothing)' for word in words)}")
        return value
    least, most = each.metadata["least"], each.metadata["most"]
    if any(isinstance(part, float) and not math.isfinite(part) for part in parts):
        raise SettingsError(f"{where}: {each.name} must be a finite number")
    if any(part < least for part in parts):
        raise SettingsError(f"{where}: {each.name} must be {least} or more")
    if any(part > most for part in parts):
        raise SettingsError(f"{where}: {each.name} must be {most} or less")
    return value
