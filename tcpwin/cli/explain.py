"""`tcpwin explain`: the page of one rule."""

from __future__ import annotations

import click

from tcpwin.cli import completion
from tcpwin.cli.program import complain
from tcpwin.cli.rule_options import find_rule, nearest
from tcpwin.cli.terminal import page

EXIT_USAGE = 2


@click.command()
@click.argument("name", metavar="RULE", shell_complete=completion.one_rule)
@click.option("--json", "as_json", is_flag=True, help="Write the page as JSON.")
def explain(name: str, as_json: bool) -> int:
    """Explain a rule: what it finds, why that matters, how it is judged, when it is wrong, what to do.

    RULE is a code or a name that `tcpwin rules` lists: TW201 or zero-window-stall.
    """
    rule = find_rule(name)
    if rule is None:
        complain(f"no rule is called {name[:60]}: {nearest(name)}")
        return EXIT_USAGE
    if as_json:
        import json

        from tcpwin.limits import describe_page

        click.echo(json.dumps({"schema": "tcpwin/rule/1", **describe_page(rule)}, indent=1))
        return 0
    from tcpwin.render import render_page

    page(render_page(rule))
    return 0
