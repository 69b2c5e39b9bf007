"""`tcpwin check`: what limited each connection, as findings; an exit status for CI."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli import completion
from tcpwin.cli.inputs import spare_captures
from tcpwin.cli.program import EXIT_PROBLEM, complain
from tcpwin.cli.rule_options import chosen_rules, parse_thresholds, threshold_option
from tcpwin.cli.selection_options import selection_options
from tcpwin.cli.several import exit_status, merge_option, separate
from tcpwin.cli.snapshot_options import WithSnapshots, measure, snapshot_options
from tcpwin.cli.ss import Output, choose_output, write_document, write_lines
from tcpwin.cli.terminal import colour_option, plain_lines, show

if TYPE_CHECKING:
    from tcpwin.limits import Analysis, Connection, Findings, Kind, Known, Rule
    from tcpwin.render import ConnectionTable

FORMS = ("text", "json", "sarif", "github", "junit")
SHOWN = 20
"""Findings of a text where --limit is not given; the other formats are for programs, which take all."""
ROWS = 10
"""Connections in the table of a text."""
_ENDINGS = {"json": "json", "sarif": "sarif", "xml": "junit"}


@click.command(cls=WithSnapshots)
@click.argument("captures", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@snapshot_options
@selection_options
@merge_option
@click.option(
    "--select",
    multiple=True,
    metavar="RULES",
    shell_complete=completion.rules,
    help="Apply only these rules: codes, prefixes or names, as TW201,TW3.",
)
@click.option("--ignore", multiple=True, metavar="RULES", shell_complete=completion.rules, help="Skip these rules.")
@threshold_option
@click.option(
    "--fail-on",
    type=click.Choice(("info", "warning", "error", "never")),
    default="warning",
    show_default=True,
    help="Exit with 1 for a finding of at least this severity.",
)
@click.option(
    "--baseline",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Set aside the findings that this baseline knows, unless they cost more now.",
)
@click.option(
    "--write-baseline",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write all findings to this file as a baseline, and exit with 0.",
)
@click.option(
    "--limit", type=click.IntRange(min=0), metavar="N", help=f"Write at most N findings; text shows {SHOWN} by default."
)
@click.option("--format", "form", type=click.Choice(FORMS), help="Format; default: text, or by the ending of OUT.")
@click.option("-o", "--output", "out", type=click.Path(dir_okay=False), metavar="OUT", help="Write to this file.")
@colour_option
def check(
    captures: tuple[str, ...],
    snapshots: tuple[str, ...],
    clock_offset: int | None,
    member: str | None,
    merge: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    thresholds: tuple[str, ...],
    fail_on: str,
    baseline: str | None,
    write_baseline: str | None,
    limit: int | None,
    form: str | None,
    out: str | None,
    colour: str,
) -> int:
    """Apply rules to each connection: findings with evidence, cost, owner and fix, the costliest first.

    FILE is a capture, a bundle, or - for standard input; several, or a folder of them, are checked each by itself, as
    in `tcpwin analyze`, and --merge reads them as one. `tcpwin rules` lists the rules; `tcpwin explain CODE` explains
    one.
    """
    from tcpwin.limits import Severity, kinds_of, read_baseline
    from tcpwin.limits import check as judge

    rules = chosen_rules(select, ignore)
    settings = parse_thresholds(thresholds)
    form = form or _ENDINGS.get((out or "").rpartition(".")[2].lower(), "text")
    output = choose_output(form, False, out, (*captures, *snapshots))
    least = None if fail_on == "never" else Severity[fail_on.upper()]
    known = None if baseline is None or write_baseline is not None else read_baseline(Path(baseline))
    files = separate(captures, merge=merge, snapshots=snapshots, member=member)
    spare_captures((*captures, *files, *snapshots), write_baseline)
    if files:
        from tcpwin.cli.check_several import check_each

        worst, failures = check_each(
            files,
            clock_offset=clock_offset,
            select=select,
            ignore=ignore,
            thresholds=thresholds,
            limit=limit,
            fail_on=fail_on,
            known=known,
            accepted=write_baseline,
            output=output,
            colour=colour,
        )
        if write_baseline is not None:
            return exit_status(False, failures)
        return exit_status(least is not None and worst >= least, failures)
    analysis = measure(captures, snapshots, clock_offset=clock_offset, member=member, keep=True)
    require_packets(analysis)
    found = judge(analysis, chosen=rules, thresholds=settings)
    if write_baseline is not None:
        accept(kinds_of(Path(write_baseline), analysis, found), write_baseline)
        return 0
    if known is not None:
        found = known.set_aside(analysis, found)
    write_findings(analysis, found, rules, limit, least, output, colour)
    return EXIT_PROBLEM if least is not None and (found.worst or 0) >= least else 0


def require_packets(analysis: Analysis) -> None:
    """A gate must not open because a filter or a span took nothing of a capture.

    Raises:
        SourceError: packets are there, and none was selected.
    """
    from tcpwin.errors import SourceError
    from tcpwin.units import count_text, name_text

    capture = analysis.capture
    if analysis.selection is not None and capture.packets == capture.packets_left_out > 0:
        raise SourceError(
            f"{name_text(analysis.name)}: of {count_text(capture.packets, 'packet')} none was selected: "
            f"{name_text(str(analysis.selection))}"
        )


def accept(kinds: Mapping[Kind, Known], out: str) -> None:
    """Write a baseline, and say so."""
    from tcpwin.limits import baseline_document
    from tcpwin.output import open_whole
    from tcpwin.units import count_text, name_text

    with open_whole(out) as file:
        file.write(json.dumps(baseline_document(kinds), indent=1) + "\n")
    click.echo(f"{name_text(out)}: {count_text(sum(known.count for known in kinds.values()), 'finding')} known")


def text_blocks(
    analysis: Analysis, found: Findings, asked: int, limit: int
) -> Iterator[Iterable[str] | ConnectionTable]:
    """The summary, the connections with a problem where there are several, and the findings."""
    from tcpwin.limits import problems, summarize
    from tcpwin.render import render_findings, render_summary, tabulate_connections
    from tcpwin.units import count_text

    yield [*render_summary(summarize(analysis, found), analysis), ""]
    if len(analysis) > 1 and (ids := problems(analysis, found)):
        yield tabulate_connections(analysis, ids[:ROWS], found)
        if len(ids) > ROWS:
            more = count_text(len(ids) - ROWS, "more connection")
            yield [f"{more} with a problem not shown: `tcpwin analyze --limit N` shows more, --format json all."]
        yield [""]
    yield render_findings(analysis, found, asked=asked, limit=limit)


def write_findings(
    analysis: Analysis,
    found: Findings,
    rules: list[Rule],
    limit: int | None,
    fail_on: Any,
    output: Output,
    colour: str,
) -> None:
    """Write what was found in one capture."""
    from tcpwin.limits import asked_of

    asked = asked_of(analysis, rules)
    for each in found.failed:
        complain(f"warning: {each}")
    shown = list(islice(found, limit))
    left_out = sum(found.counts.values()) - len(shown)
    if output.form == "text":
        blocks = text_blocks(analysis, found, len(asked), SHOWN if limit is None else limit)
        if output.path is None:
            show(blocks, colour)
        else:
            write_lines(plain_lines(blocks), output)
        return
    if output.form == "json":
        from tcpwin.limits import SCHEMA, describe_capture, describe_finding, describe_judged, describe_rule

        facts = {
            "name": analysis.name,
            **describe_capture(analysis, found),
            "connections": (
                _connection(*each) for each in zip(analysis, describe_judged(analysis, found), strict=True)
            ),
            "rules": [describe_rule(rule) for rule in rules],
            "counts": dict(found.counts),
            "left_out": left_out,
            "known": len(found.known),
            "failed": list(found.failed),
        }
        write_document(SCHEMA, "findings", (describe_finding(each, analysis) for each in shown), lambda: facts, output)
        return
    if output.form == "sarif":
        from tcpwin.render import sarif_document
        from tcpwin.version import __version__

        write_lines(
            [json.dumps(sarif_document(analysis, found, shown, rules=rules, version=__version__), indent=1)], output
        )
    elif output.form == "junit":
        from tcpwin.render import junit_document

        write_lines([junit_document(analysis, found, shown, rules=asked, fail_on=fail_on).rstrip("\n")], output)
    else:
        from tcpwin.render import counts_line, render_github

        write_lines([*render_github(analysis, found, shown), counts_line(analysis, found, asked=len(asked))], output)
    if left_out:
        complain(f"warning: {left_out} findings left out")


def _connection(connection: Connection, judged: dict[str, Any]) -> dict[str, Any]:
    return {"id": connection.id, "a": str(connection.a), "b": str(connection.b), **judged}
