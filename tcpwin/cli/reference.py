"""`tcpwin reference`: published results to compare with."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import click

from tcpwin.cli.bdp import parse_rate, parse_rtt, parse_size

SCHEMA = "tcpwin/reference/1"


def _parsed(
    parse: Callable[[str], Fraction],
) -> Callable[[click.Context, click.Parameter, str | None], Fraction | None]:
    return lambda ctx, param, value: None if value is None else parse(value)  # noqa: ARG005


@click.command()
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--rtt", callback=_parsed(parse_rtt), metavar="TIME", help="Nearest runs: round trip, 300ms.")
@click.option("--rate", callback=_parsed(parse_rate), metavar="RATE", help="Nearest runs: rate of the path, 1gbit.")
@click.option("--rmem", callback=_parsed(parse_size), metavar="SIZE", help="Nearest runs: most of tcp_rmem, 6M.")
@click.option(
    "--window", callback=_parsed(parse_size), metavar="SIZE", help="Nearest runs: largest receive window, 4M."
)
@click.option("--kernel", metavar="VERSION", help="Nearest runs: Linux, 5.15.")
@click.option("--workload", metavar="NAME", help="Nearest runs: oscillating-reader, iperf3, messages ...")
@click.option("--limit", type=click.IntRange(min=1), default=3, show_default=True, help="How many of the nearest.")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON document.")
def reference(
    name: str | None,
    rtt: Fraction | None,
    rate: Fraction | None,
    rmem: Fraction | None,
    window: Fraction | None,
    kernel: str | None,
    workload: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List published results, or show one: settings, path, and what was measured.

    NAME is a reference, or one run of it: cloudflare-oscil-300ms/170p2. With --rtt, --rate and the like: the runs that
    are nearest to a path, and why.
    """
    from tcpwin.reference import references

    asked = (rtt, rate, rmem, window, kernel, workload)
    if any(each is not None for each in asked):
        if name is not None:
            raise click.UsageError("NAME shows one reference; --rtt, --rate and the like look through all")
        _write_nearest(rtt, rate, rmem, window, kernel, workload, limit, as_json)
    elif name is not None:
        _write_one(name, as_json)
    elif as_json:
        from tcpwin.reference._document import describe_reference

        _write_document(references=[describe_reference(each) for each in references().values()])
    else:
        from tcpwin.report._reference import render_references

        for line in render_references(references().values()):
            click.echo(line)


def _write_one(name: str, as_json: bool) -> None:
    from tcpwin.reference import references

    wanted, _, run_name = name.partition("/")
    found = references().get(wanted)
    if found is None:
        raise click.UsageError(f"there is no reference {wanted[:80]!r}{_hint(wanted, list(references()))}")
    runs = [run for run in found.runs if run_name in ("", run.name)]
    if not runs:
        names = ", ".join(run.name for run in found.runs)
        raise click.UsageError(f"{wanted} has no run {run_name[:80]!r}; it has {names}")
    if as_json:
        from tcpwin.reference._document import describe_reference

        _write_document(references=[describe_reference(found, runs)])
        return
    from tcpwin.report._reference import render_reference

    for line in render_reference(found, runs):
        click.echo(line)


def _write_nearest(
    rtt: Fraction | None,
    rate: Fraction | None,
    rmem: Fraction | None,
    window: Fraction | None,
    kernel: str | None,
    workload: str | None,
    limit: int,
    as_json: bool,
) -> None:
    from tcpwin.reference import nearest, references

    workloads = sorted({run.workload for each in references().values() for run in each.runs})
    if workload is not None and workload not in workloads:
        raise click.UsageError(f"there is no workload {workload[:80]!r}; there are {', '.join(workloads)}")
    try:
        found = nearest(
            rtt_ns=None if rtt is None else round(rtt),
            rate_bps=None if rate is None else float(rate),
            rmem_max_bytes=None if rmem is None else round(rmem),
            window_bytes=None if window is None else round(window),
            kernel=kernel,
            workload=workload,
            limit=limit,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        from tcpwin.reference._document import describe_run

        _write_document(
            nearest=[{"distance": near.distance, "why": near.why, **describe_run(near.run)} for near in found]
        )
        return
    from tcpwin.report._reference import render_nearest

    for line in render_nearest(found):
        click.echo(line)


def _hint(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name[:100], known, n=3, cutoff=0.4)
    return f": did you mean {', '.join(close)}?" if close else "; `tcpwin reference` lists them"


def _write_document(**content: Any) -> None:
    import json

    click.echo(json.dumps({"schema": SCHEMA, **content}, indent=1))
