"""`tcpwin check`: the limits of each connection, as findings; an exit status for CI."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import click

from tcpwin.cli import completion
from tcpwin.cli.io import (
    Output,
    choose_output,
    colour_option,
    complain,
    plain_lines,
    show,
    spare_captures,
    write_document,
    write_lines,
)
from tcpwin.cli.options import CaptureOptions, WithSnapshots, capture_options, require_packets
from tcpwin.cli.program import EXIT_PROBLEM
from tcpwin.cli.rules import chosen_rules, load_rules, parse_thresholds, threshold_option
from tcpwin.cli.several import (
    Answered,
    Piece,
    answer_each,
    captures_document,
    exit_status,
    hint_of_pieces,
    merge_option,
    separate,
    warn_of,
)
from tcpwin.sources import public_name
from tcpwin.units import name_text

if TYPE_CHECKING:
    from tcpwin.limits import Analysis, Baseline, Connection, Findings, Kind, Known, Rule, Severity
    from tcpwin.render import ConnectionTable

FORMS = ("text", "json", "sarif", "github", "junit")
SHOWN = 20
"""Default of --limit for text; the other formats are for programs, which get all findings."""
ROWS = 10
"""Maximum number of connections in the text's table."""
_ENDINGS = {"json": "json", "sarif": "sarif", "xml": "junit"}


@click.command(cls=WithSnapshots)
@click.argument("captures", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@capture_options()
@merge_option
@click.option(
    "--select",
    multiple=True,
    metavar="RULES",
    shell_complete=completion.rules,
    help="Apply only these rules: codes, prefixes or names, such as TW201,TW3.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="RULES",
    shell_complete=completion.rules,
    help="Hide the findings of these rules; verdicts still consider them.",
)
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
    help="Ignore the findings in this baseline, unless they cost more now.",
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
@click.option("--format", "form", type=click.Choice(FORMS), help="Format; default: text, or by the extension of OUT.")
@click.option("-o", "--output", "out", type=click.Path(dir_okay=False), metavar="OUT", help="Write to this file.")
@colour_option
def check(
    captures: tuple[str, ...],
    options: CaptureOptions,
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

    FILE is a capture, a bundle, or - for standard input. Several, or a folder of them, are checked separately, as in
    `tcpwin analyze`; --merge reads them as one. `tcpwin rules` lists the rules; `tcpwin explain CODE` explains one.
    """
    from tcpwin.limits import kinds_of, read_baseline

    # Wrong names and thresholds end the command before a capture is read.
    chosen_rules(select, ignore)
    parse_thresholds(thresholds)
    form = form or _ENDINGS.get((out or "").rpartition(".")[2].lower(), "text")
    output = choose_output(form, False, out, (*captures, *options.snapshots))
    known = None if baseline is None or write_baseline is not None else read_baseline(Path(baseline))
    gate = _Gate(select, ignore, thresholds, limit, fail_on, known, write_baseline, output)
    files = separate(captures, options, merge=merge)
    spare_captures((*captures, *files, *options.snapshots), write_baseline)
    if files:
        worst, failures = _check_each(files, options, gate, colour)
        return exit_status(write_baseline is None and gate.is_failed(worst), failures)
    analysis = options.analyze(captures, keep=True)
    found = gate.find(analysis)
    if write_baseline is not None:
        accept(kinds_of(Path(write_baseline), analysis, found), write_baseline)
        return 0
    gate.write(analysis, found, output, colour)
    return EXIT_PROBLEM if gate.is_failed(int(found.worst or 0)) else 0


@dataclass(frozen=True, slots=True)
class _Gate:
    """The command line's criteria for each capture.

    Attributes:
        known: the baseline of findings to set aside.
        accepted: the baseline to write with all findings, instead of the findings.
    """

    select: tuple[str, ...]
    ignore: tuple[str, ...]
    thresholds: tuple[str, ...]
    limit: int | None
    fail_on: str
    known: Baseline | None
    accepted: str | None
    output: Output

    @property
    def rules(self) -> list[Rule]:
        """The rules whose findings are shown."""
        return chosen_rules(self.select, self.ignore)

    @property
    def least(self) -> Severity | None:
        """The lowest severity that fails; None if none does."""
        from tcpwin.limits import Severity

        return None if self.fail_on == "never" else Severity[self.fail_on.upper()]

    def is_failed(self, worst: int) -> bool:
        """Return whether findings of at most this severity fail."""
        return self.least is not None and worst >= self.least

    def find(self, analysis: Analysis) -> Findings:
        """Apply the rules to a capture."""
        from tcpwin.limits import check as judge

        # Of several captures too: a gate must not open because a selection matched nothing.
        require_packets(analysis)
        rules = self.rules
        codes = {rule.code for rule in rules}
        # A limit remains the limit although nobody wants to read the rule that finds it.
        aside = [rule for code, rule in load_rules().items() if code not in codes]
        found = judge(analysis, chosen=rules, aside=aside, thresholds=parse_thresholds(self.thresholds))
        return found if self.known is None else self.known.set_aside(analysis, found)

    def blocks(self, analysis: Analysis, found: Findings) -> Iterator[Iterable[str] | ConnectionTable]:
        """Yield the text: summary, the connections with a problem if there are several, findings."""
        from tcpwin.limits import applicable_rules

        checked = len(applicable_rules(analysis, self.rules))
        return text_blocks(analysis, found, checked, SHOWN if self.limit is None else self.limit)

    def write(
        self,
        analysis: Analysis,
        found: Findings,
        output: Output,
        colour: str,
        warn: Callable[[str], object] = complain,
    ) -> None:
        """Write the findings on one capture."""
        for each in found.failed:
            warn(f"warning: {each}")
        if output.form != "text":
            write_document_of(analysis, found, self, output, warn)
        elif output.path is None:
            show(self.blocks(analysis, found), colour)
        else:
            write_lines(plain_lines(self.blocks(analysis, found)), output)


def accept(kinds: Mapping[Kind, Known], out: str) -> None:
    """Write a baseline, and report it."""
    from tcpwin.limits import baseline_document
    from tcpwin.output import open_whole
    from tcpwin.units import count_text, name_text

    with open_whole(out) as file:
        file.write(json.dumps(baseline_document(kinds), indent=1) + "\n")
    click.echo(f"{name_text(out)}: {count_text(sum(known.count for known in kinds.values()), 'finding')} known")


def text_blocks(
    analysis: Analysis, found: Findings, checked: int, limit: int
) -> Iterator[Iterable[str] | ConnectionTable]:
    """Return the summary, the connections with a problem if there are several, and the findings."""
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
    yield render_findings(analysis, found, checked=checked, limit=limit)


def write_document_of(
    analysis: Analysis, found: Findings, gate: _Gate, output: Output, warn: Callable[[str], object]
) -> None:
    """Write the findings on one capture in a format for programs."""
    from tcpwin.limits import applicable_rules

    rules = gate.rules
    checked = applicable_rules(analysis, rules)
    shown = list(islice(found, gate.limit))
    left_out = sum(found.counts.values()) - len(shown)
    if output.form == "json":
        from tcpwin.limits import (
            SCHEMA,
            Verdicts,
            describe_capture,
            describe_finding,
            describe_judged,
            describe_rule,
        )

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
        verdict = Verdicts(analysis, found).of
        described = (describe_finding(each, analysis, verdict(each)) for each in shown)
        write_document(SCHEMA, "findings", described, lambda: facts, output)
        return
    if output.form == "sarif":
        from tcpwin.render import sarif_document
        from tcpwin.version import __version__

        write_lines(
            [json.dumps(sarif_document(analysis, found, shown, rules=rules, version=__version__), indent=1)], output
        )
    elif output.form == "junit":
        from tcpwin.render import junit_document

        write_lines([junit_document(analysis, found, shown, rules=checked, fail_on=gate.least).rstrip("\n")], output)
    else:
        from tcpwin.render import counts_line, render_github

        write_lines(
            [*render_github(analysis, found, shown), counts_line(analysis, found, checked=len(checked))], output
        )
    if left_out:
        warn(f"warning: {left_out} findings omitted")


def _connection(connection: Connection, judged: dict[str, Any]) -> dict[str, Any]:
    return {"id": connection.id, "a": str(connection.a), "b": str(connection.b), **judged}


class _Found(NamedTuple):
    """The findings on a capture: blocks of text, or a file with the document."""

    worst: int
    piece: Piece
    blocks: list[list[str] | ConnectionTable]
    document: Path | None
    kinds: dict[Kind, Known]


def _check_each(files: list[str], options: CaptureOptions, gate: _Gate, colour: str) -> tuple[int, int]:
    """Write the findings on each capture; return the worst severity, 0 without any, and the number of failures."""
    from tempfile import TemporaryDirectory

    output = gate.output
    with TemporaryDirectory(prefix="tcpwin-") as folder:
        answers: list[Answered[_Found]] = []
        for each in answer_each(files, partial(_find, gate=gate, folder=Path(folder)), options):
            warn_of(each)
            if gate.accepted is None and output.form == "text" and output.path is None:
                show(_blocks(each), colour)
            answers.append(each)
        if gate.accepted is not None:
            kinds = (each.answer.kinds for each in answers if each.answer is not None)
            accept({kind: count for part in kinds for kind, count in part.items()}, gate.accepted)
        elif output.form == "text":
            if output.path is not None:
                write_lines((line for each in answers for line in plain_lines(_blocks(each))), output)
        else:
            _write_together(answers, output)
    found = [each.answer for each in answers if each.answer is not None]
    if len(found) == len(files):
        hint_of_pieces([each.piece for each in found])
    return max((each.worst for each in found), default=0), len(files) - len(found)


def _find(analysis: Analysis, file: str, warn: Callable[[str], object], *, gate: _Gate, folder: Path) -> _Found:
    from tcpwin.limits import kinds_of

    found = gate.find(analysis)
    piece = Piece.of(analysis, public_name(file))
    if gate.accepted is not None:
        return _Found(0, piece, [], None, kinds_of(Path(gate.accepted), analysis, found))
    worst = int(found.worst or 0)
    if gate.output.form == "text":
        for each in found.failed:
            warn(f"warning: {each}")
        blocks = [list(each) if isinstance(each, Iterable) else each for each in gate.blocks(analysis, found)]
        return _Found(worst, piece, blocks, None, {})
    path = folder / uuid4().hex
    gate.write(analysis, found, Output(gate.output.form, str(path)), "never", warn)
    return _Found(worst, piece, [], path, {})


def _blocks(each: Answered[_Found]) -> Iterator[Iterable[str] | ConnectionTable]:
    if each.answer is not None:
        yield [f"== {name_text(each.file)}"]
        yield from each.answer.blocks
        yield [""]


def _write_together(answers: Sequence[Answered[_Found]], output: Output) -> None:
    from tcpwin.render import join_junit, join_sarif, render_unreadable

    failures = {each.file: each.failure for each in answers if each.failure is not None}
    if output.form == "json":
        with captures_document(output) as add:
            for each in answers:
                add(each, None if each.answer is None else each.answer.document)
        return
    paths = [each.answer.document for each in answers if each.answer is not None and each.answer.document is not None]
    documents = (path.read_text(encoding="utf-8", errors="surrogateescape") for path in paths)
    if output.form == "github":
        lines = chain((document.rstrip("\n") for document in documents), render_unreadable(failures))
        write_lines(lines, output)
    elif output.form == "junit":
        write_lines([join_junit(documents, failures).rstrip("\n")], output)
    else:
        write_lines([json.dumps(join_sarif(map(json.loads, documents), failures.values()), indent=1)], output)
