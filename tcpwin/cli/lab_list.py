"""`tcpwin lab list`: the scenarios."""

from __future__ import annotations

import click

from tcpwin.cli import completion


@click.command("list")
@click.option("--set", "wanted", metavar="NAME", shell_complete=completion.sets, help="Only the scenarios of this set.")
@click.option("--json", "as_json", is_flag=True, help="Write the list as JSON.")
def list_(wanted: str | None, as_json: bool) -> None:
    """List the scenarios that come with tcpwin, by set."""
    from tcpwin.cli.lab_scenarios import check_set
    from tcpwin.lab import scenarios

    found = list(scenarios())
    check_set(wanted, found)
    found = [each for each in found if wanted is None or wanted in each.sets]
    if as_json:
        import json

        rows = [
            {
                "name": each.name,
                "title": each.title,
                "sets": list(each.sets),
                "kernels": list(each.kernels),
                "workload": each.workload.name,
                "source": each.source,
            }
            for each in found
        ]
        click.echo(json.dumps({"schema": "tcpwin/lab-list/1", "scenarios": rows}, indent=1))
        return
    width = max(len(each.name) for each in found)
    for name in sorted({each.sets[0] for each in found}):
        click.echo(f"{name}:")
        for each in found:
            if each.sets[0] == name:
                kernels = "" if each.kernels == ("stock",) else f" ({', '.join(each.kernels)})"
                click.echo(f"  {each.name:<{width}}  {each.title}{kernels}")
