"""`tcpwin lab show`: one scenario, and what it would change."""

from __future__ import annotations

import click

from tcpwin.cli import completion


@click.command()
@click.argument("name", metavar="SCENARIO", shell_complete=completion.scenarios)
@click.option("--steps", is_flag=True, help="Also list each change that makes its network.")
def show(name: str, steps: bool) -> None:
    """Show a scenario: its file, which can be copied and changed, and how its network is made.

    SCENARIO is a name that `tcpwin lab list` lists, or the path of a file.
    """
    from tcpwin.lab import find_scenario, plan

    scenario = find_scenario(name)
    click.echo(scenario.text, nl=False)
    if steps:
        for kernel in scenario.kernels:
            click.echo(f"\n{kernel}:")
            for step in plan(scenario, kernel):
                click.echo(f"  {step.text}")
