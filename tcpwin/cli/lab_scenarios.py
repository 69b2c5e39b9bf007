"""Scenarios as they are named on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tcpwin.lab import Scenario


def check_set(wanted: str | None, found: Iterable[Scenario]) -> None:
    """Refuse a set that no scenario is in."""
    sets = sorted({name for each in found for name in each.sets})
    if wanted is not None and wanted not in sets:
        raise click.UsageError(f"there is no set {wanted}; there are {', '.join(sets)}")


def chosen(names: Sequence[str], wanted: str | None, *, every: bool) -> list[Scenario]:
    """The scenarios of these names and of a set, or all of them, each once."""
    from tcpwin.lab import find_scenario, scenarios

    found = [find_scenario(name) for name in names]
    if wanted is not None or every:
        known = list(scenarios())
        check_set(wanted, known)
        found += [each for each in known if (every or wanted in each.sets) and each.name not in names]
    return found
