"""`tcpwin reference`: published results to compare with."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli import completion
from tcpwin.cli.bdp import parse_rate, parse_rtt, parse_size
from tcpwin.cli.io import ConnectionNumber, check_connection, colour_option, show
from tcpwin.cli.options import CaptureOptions, WithSnapshots, capture_options

if TYPE_CHECKING:
    from tcpwin.reference import Comparison

SCHEMA = "tcpwin/reference/1"


def _parsed(
    parse: Callable[[str], Fraction],
) -> Callable[[click.Context, click.Parameter, str | None], Fraction | None]:
    return lambda ctx, param, value: None if value is None else parse(value)  # noqa: ARG005


@click.command(cls=WithSnapshots)
@click.argument("name", required=False, metavar="[NAME]", shell_complete=completion.references)
@click.option(
    "--like",
    metavar="FILE",
    shell_complete=completion.files,
    help="Compare a connection of this capture or bundle with the nearest runs.",
)
@click.option(
    "--connection", type=ConnectionNumber(), metavar="N", help="With --like: the connection; default: the worst."
)
@capture_options()
@click.option("--rtt", callback=_parsed(parse_rtt), metavar="TIME", help="Find runs by round trip: 300ms.")
@click.option(
    "--rate",
    callback=_parsed(parse_rate),
    metavar="RATE",
    help="Find runs by the path's rate: 1gbit; with --like: the rate of its path.",
)
@click.option("--rmem", callback=_parsed(parse_size), metavar="SIZE", help="Find runs by the maximum of tcp_rmem: 6M.")
@click.option("--window", callback=_parsed(parse_size), metavar="SIZE", help="Find runs by largest receive window: 4M.")
@click.option("--kernel", metavar="VERSION", help="Find runs by Linux version: 5.15.")
@click.option("--workload", metavar="NAME", help="Find runs by workload: oscillating-reader, iperf3, messages ...")
@click.option("--limit", type=click.IntRange(min=1), default=3, show_default=True, help="Number of runs to show.")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON document.")
@colour_option
def reference(
    name: str | None,
    like: str | None,
    connection: int | None,
    options: CaptureOptions,
    rtt: Fraction | None,
    rate: Fraction | None,
    rmem: Fraction | None,
    window: Fraction | None,
    kernel: str | None,
    workload: str | None,
    limit: int,
    as_json: bool,
    colour: str,
) -> None:
    """List published results, or show one: settings, path, and what was measured.

    NAME is a reference, or one run of it: cloudflare-oscil-300ms/170p2. `library` lists the lab's own runs, `articles`
    the articles, and `articles/ably` one article's numbers with the command that shows tcpwin's. With --rtt, --rate and
    so on: the runs nearest to a path, and why. With --like FILE: a connection compared with the nearest runs, and a
    prediction with their settings; of a bundle without packets, its sockets are compared.
    """
    from tcpwin.reference import references

    if like is not None:
        if name is not None or any(each is not None for each in (rtt, rmem, window, kernel, workload)):
            raise click.UsageError("--like takes path, settings and workload from FILE; only --rate goes with it")
        _write_likeness(_compared(like, options, connection, rate, limit), as_json, colour)
        return
    if options.snapshots or options.clock_offset is not None or options.member is not None or connection is not None:
        raise click.UsageError("--with, --clock-offset, --capture and --connection go with --like")
    criteria = (rtt, rate, rmem, window, kernel, workload)
    if any(each is not None for each in criteria):
        if name is not None:
            raise click.UsageError("NAME shows one reference; --rtt, --rate and similar options search all")
        _write_nearest(rtt, rate, rmem, window, kernel, workload, limit, as_json, colour)
    elif name is not None:
        _write_one(name, as_json, colour)
    elif as_json:
        from tcpwin.reference import describe_reference

        _write_document(references=[describe_reference(each) for each in references().values()])
    else:
        from tcpwin.render import render_references

        show([render_references(references().values())], colour)


def _compared(
    like: str,
    options: CaptureOptions,
    number: int | None,
    rate: Fraction | None,
    limit: int,
) -> Comparison:
    from tcpwin.errors import SourceError
    from tcpwin.hosts import is_bundle
    from tcpwin.reference import compare, compare_measured, measure_sockets

    rate_bps = None if rate is None else float(rate)
    if is_bundle(like) and not options.snapshots and options.member is None:
        from tcpwin.hosts import Bundle

        with Bundle.open(like) as bundle:
            has_packets = bool(bundle.captures)
        if not has_packets:
            if number is not None:
                raise click.UsageError("--connection needs packets, and this bundle has none")
            return compare_measured(measure_sockets(like, rate_bps=rate_bps), limit=limit)
    analysis = options.analyze((like,), keep=True)
    check_connection(number, len(analysis))
    if not len(analysis):
        raise SourceError(f"{like}: the capture has no TCP connection")
    chosen = analysis.worst(1)[0] if number is None else analysis.connections[number]
    return compare(chosen, rate_bps=rate_bps, limit=limit)


def _write_likeness(comparison: Comparison, as_json: bool, colour: str) -> None:
    if as_json:
        from tcpwin.reference import describe_comparison

        _write_document(comparison=describe_comparison(comparison))
        return
    from tcpwin.render import render_likeness

    show([render_likeness(comparison)], colour)


def _write_library(name: str, as_json: bool, colour: str) -> None:
    from tcpwin.reference import describe_lab_run, library

    runs = [run for run in library().values() if name in ("", run.name)]
    if not runs:
        raise click.UsageError(f"the library has no run {name[:80]!r}{_hint(name, list(library()))}")
    if as_json:
        _write_document(library=[describe_lab_run(run) for run in runs])
        return
    from tcpwin.render import render_lab_run, render_library

    show([render_lab_run(runs[0]) if name else render_library(runs)], colour)


def _write_articles(name: str, as_json: bool, colour: str) -> None:
    from tcpwin.reference import articles, describe_article

    found = [article for article in articles().values() if name in ("", article.name)]
    if not found:
        raise click.UsageError(f"unknown article {name[:80]!r}; there are {', '.join(articles())}")
    if as_json:
        _write_document(articles=[describe_article(article) for article in found])
        return
    from tcpwin.render import render_article, render_articles

    show([render_article(found[0]) if name else render_articles(found)], colour)


def _write_one(name: str, as_json: bool, colour: str) -> None:
    from tcpwin.reference import ARTICLES, LIBRARY, references

    wanted, _, run_name = name.partition("/")
    if wanted == ARTICLES:
        _write_articles(run_name, as_json, colour)
        return
    if wanted == LIBRARY:
        _write_library(run_name, as_json, colour)
        return
    found = references().get(wanted)
    if found is None:
        raise click.UsageError(f"unknown reference {wanted[:80]!r}{_hint(wanted, list(references()))}")
    runs = [run for run in found.runs if run_name in ("", run.name)]
    if not runs:
        names = ", ".join(run.name for run in found.runs)
        raise click.UsageError(f"{wanted} has no run {run_name[:80]!r}; it has {names}")
    if as_json:
        from tcpwin.reference import describe_reference

        _write_document(references=[describe_reference(found, runs)])
        return
    from tcpwin.render import render_reference

    show([render_reference(found, runs)], colour)


def _write_nearest(
    rtt: Fraction | None,
    rate: Fraction | None,
    rmem: Fraction | None,
    window: Fraction | None,
    kernel: str | None,
    workload: str | None,
    limit: int,
    as_json: bool,
    colour: str,
) -> None:
    from tcpwin.reference import nearest, references

    workloads = sorted({run.workload for each in references().values() for run in each.runs})
    if workload is not None and workload not in workloads:
        raise click.UsageError(f"unknown workload {workload[:80]!r}: choose one of {', '.join(workloads)}")
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
        from tcpwin.reference import describe_run

        _write_document(
            nearest=[{"distance": near.distance, "why": near.why, **describe_run(near.run)} for near in found]
        )
        return
    from tcpwin.render import render_nearest

    show([render_nearest(found)], colour)


def _hint(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name[:100], known, n=3, cutoff=0.4)
    return f": did you mean {', '.join(close)}?" if close else "; `tcpwin reference` lists them"


def _write_document(**content: Any) -> None:
    import json

    click.echo(json.dumps({"schema": SCHEMA, **content}, indent=1))
