"""The defaults of `tcpwin check` and `tcpwin compare`, from a file in the project.

In: `tcpwin.toml`, or `[tool.tcpwin]` of `pyproject.toml`, here or in the nearest parent folder. Out: defaults of
options for click. The command line overrides them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tcpwin.cli.program import CONFIGURED

NAMES = ("tcpwin.toml", "pyproject.toml")
MOST_BYTES = 1 << 20
_TEXTS = {
    "check": {"fail-on": "fail_on", "filter": "filter"},
    "compare": {"fail-on": "fail_on", "tolerance": "tolerance"},
}
_PATHS = {"check": {"baseline": "baseline"}, "compare": {}}
"""Options whose values are paths relative to the folder of the settings."""
_LISTS = {"check": {"select": "select", "ignore": "ignore"}, "compare": {}}


def read_settings(named: str | None = None) -> dict[str, dict[str, Any]]:
    """Return the defaults of each command's options, by parameter name; none without a file.

    Args:
        named: the file to use instead of searching.

    Raises:
        UsageError: the file cannot be read, or has an invalid setting.
    """
    path = _find() if named is None else Path(named)
    if path is None:
        return {}
    tables = _tables(path)
    if tables is None:
        raise click.UsageError(f"{path} has no table [tool.tcpwin]")
    unknown = sorted(tables.keys() - {*CONFIGURED})
    if unknown:
        raise click.UsageError(f"{path}: unknown table {unknown[0]!r}: choose one of {', '.join(CONFIGURED)}")
    return {command: _defaults(path, command, table) for command, table in tables.items()}


def _find() -> Path | None:
    """Find the nearest file with settings, upwards from here."""
    try:
        here = Path.cwd()
    except OSError:
        return None
    for folder in (here, *here.parents):
        for name in NAMES:
            path = folder / name
            if path.is_file() and _tables(path) is not None:
                return path
    return None


def _tables(path: Path) -> dict[str, Any] | None:
    """Return the settings of a file; None for a `pyproject.toml` with settings of other tools only."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        is_project = path.name == "pyproject.toml"
        if is_project and b"tcpwin" not in data:
            return None
        if len(data) > MOST_BYTES:
            raise click.UsageError(f"{path} is too long for a file of settings")
        document = tomllib.loads(data.decode())
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise click.UsageError(f"{path} is not valid TOML: {error}") from None
    tool = document.get("tool")
    found = (tool.get("tcpwin") if isinstance(tool, dict) else None) if is_project else document
    if found is not None and not isinstance(found, dict):
        raise click.UsageError(f"{path}: tool.tcpwin is not a table")
    return found


def _defaults(path: Path, command: str, table: Any) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise click.UsageError(f"{path}: {command} is not a table")
    found: dict[str, Any] = {}
    for name, value in table.items():
        where = f"{path}: {command}.{name}"
        if name in _TEXTS[command]:
            found[_TEXTS[command][name]] = _text(where, value)
        elif name in _PATHS[command]:
            found[_PATHS[command][name]] = str(path.parent / _text(where, value))
        elif name in _LISTS[command]:
            if not isinstance(value, list):
                raise click.UsageError(f'{where} is not a list, such as ["TW201", "TW3"]')
            found[_LISTS[command][name]] = [_text(where, each) for each in value]
        elif name == "threshold" and command == "check":
            found["thresholds"] = [f"{key}={each}" for key, each in _thresholds(where, value).items()]
        else:
            known = [
                *_TEXTS[command],
                *_PATHS[command],
                *_LISTS[command],
                *(["threshold"] if command == "check" else []),
            ]
            raise click.UsageError(f"{where} is not a setting: choose one of {', '.join(known)}")
    return found


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise click.UsageError(f"{where} is not a quoted string")
    return value


def _thresholds(where: str, value: Any) -> dict[str, str]:
    """Return thresholds such as ``TW201.stall_ns = "500ms"``, with the name in quotes or without."""
    if not isinstance(value, Mapping):
        raise click.UsageError(f'{where} is not a table, such as TW201.stall_ns = "500ms"')
    found: dict[str, str] = {}
    for name, each in value.items():
        if isinstance(each, Mapping):
            found |= _thresholds(where, {f"{name}.{inner}": deeper for inner, deeper in each.items()})
        elif isinstance(each, bool) or not isinstance(each, str | int | float):
            raise click.UsageError(f'{where}.{name} is not an amount, such as "500ms"')
        else:
            found[name] = str(each)
    return found
