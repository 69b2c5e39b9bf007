"""`tcpwin rules`: what `tcpwin check` can find."""

from __future__ import annotations

import click

from tcpwin.cli.rule_options import load_rules
from tcpwin.cli.terminal import page


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Write the list as JSON.")
def rules(as_json: bool) -> None:
    """List the rules of `tcpwin check`: code, name, severity, what each finds."""
    found = load_rules().values()
    if as_json:
        import json

        from tcpwin.limits import describe_rule

        click.echo(json.dumps({"schema": "tcpwin/rules/1", "rules": [describe_rule(rule) for rule in found]}, indent=1))
        return
    from tcpwin.render import render_rules

    page(render_rules(found))
