"""`tcpwin fields`: the documentation of the JSON document and the columns."""

from __future__ import annotations

import click


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
    click.echo(f"JSON schema {SCHEMA}: each of connections[] holds these; a_to_b and b_to_a hold a direction's.")
    for group, entries in groups.items():
        click.echo(f"\n{group}")
        for name, kind, doc in entries:
            click.echo(f"  {name:32} {kind:6} {doc}")
