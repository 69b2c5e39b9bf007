"""`tcpwin fields`: the documentation of the JSON document and the columns."""

from __future__ import annotations

import click

from tcpwin.cli.terminal import page


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Write the list as JSON.")
def fields(as_json: bool) -> None:
    """List every field of a connection and of its two directions: name, type, meaning, unit."""
    import json

    from tcpwin import _engine
    from tcpwin.analysis import SCHEMA

    groups = {group: _engine.fields(group) for group in ("connection", "direction")}
    if as_json:
        listing = {
            group: [{"name": name, "type": kind, "meaning": doc} for name, kind, doc in entries]
            for group, entries in groups.items()
        }
        click.echo(json.dumps({"schema": SCHEMA, **listing}, indent=1))
        return
    lines = [f"JSON schema {SCHEMA}: each of connections[] holds these; a_to_b and b_to_a hold a direction's."]
    for group, entries in groups.items():
        lines += ["", group, *(f"  {name:32} {kind:6} {doc}" for name, kind, doc in entries)]
    page(lines)
