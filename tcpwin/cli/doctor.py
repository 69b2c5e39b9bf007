"""`tcpwin doctor`: what works here, what does not, and what would mend it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from tcpwin.cli.features import BROKEN, FEATURES, READY, State, examine
from tcpwin.cli.program import EXIT_PROBLEM
from tcpwin.cli.version import version_facts

SCHEMA = "tcpwin/doctor/1"
_NAMES = [feature.name for feature in FEATURES]


@click.command()
@click.argument("features", nargs=-1, type=click.Choice(_NAMES), metavar="[FEATURE]...")
@click.option("--json", "as_json", is_flag=True, help="Write the answer as JSON.")
def doctor(features: tuple[str, ...], as_json: bool) -> int:
    """Say what of tcpwin works on this machine, and what is missing for the rest.

    FEATURE asks for some only, each of which must be ready.

    Exit status: 0 all is well, 1 something that is installed does not load, or a FEATURE is not ready. That others are
    not installed is no failure.
    """
    states = examine(feature for feature in FEATURES if not features or feature.name in features)
    is_well = all(each.state == READY if features else each.state != BROKEN for each in states)
    if as_json:
        document: dict[str, Any] = {"schema": SCHEMA, "is_well": is_well, **version_facts()}
        click.echo(json.dumps({**document, "features": [asdict(each) for each in states]}, indent=1))
    else:
        facts = version_facts()
        click.echo(f"tcpwin {facts['version']} in {facts['location']}")
        click.echo(f"{facts['implementation']} {facts['python']} on {facts['system']} {facts['machine']}\n")
        for each in states:
            for line in _lines(each):
                click.echo(line)
    return 0 if is_well else EXIT_PROBLEM


def _lines(each: State) -> list[str]:
    lines = [f"{each.state:<8} {each.name:<10} {each.does}"]
    if each.found:
        lines[0] += f": {', '.join(each.found)}"
    if each.reason is not None:
        lines.append(f"{'':<20}{each.reason}{'' if each.install is None else f': {each.install}'}")
    return lines
