"""`tcpwin report`: the analysis as one self-contained file."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcpwin.cli.io import ConnectionNumber, check_connection, choose_output, show
from tcpwin.cli.options import CaptureOptions, WithSnapshots, capture_options
from tcpwin.cli.several import answer_each, exit_status, merge_option, separate, warn_of
from tcpwin.render.report import CONNECTIONS_SHOWN, FORMS, THEMES, Report, form_of
from tcpwin.sources import public_name

if TYPE_CHECKING:
    from tcpwin.limits import Analysis
    from tcpwin.render import CaptureRow
    from tcpwin.render.report import TwinView

MOST_TWINS = 3
"""Maximum number of connections of a report that are run: each takes from seconds to minutes."""


@click.command(cls=WithSnapshots)
@click.argument("captures", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@capture_options()
@merge_option
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(),
    metavar="OUT",
    help="Write to this file or, for several captures, into this folder.",
)
@click.option("--format", "form", type=click.Choice(FORMS), help="Format; default: by the extension of OUT, or html.")
@click.option(
    "--limit",
    default=CONNECTIONS_SHOWN,
    show_default=True,
    metavar="N",
    type=click.IntRange(0, 1000),
    help="Number of connections in full, worst first.",
)
@click.option(
    "--connection",
    "chosen",
    type=ConnectionNumber(),
    multiple=True,
    metavar="N",
    help="Show connection N in full, instead of the worst; may be repeated.",
)
@click.option(
    "--theme",
    type=click.Choice(THEMES),
    default="auto",
    show_default=True,
    help="Theme of HTML; readers can switch it.",
)
@click.option(
    "--anonymize", is_flag=True, help="Replace addresses, and omit names and host data; prefixes and ports are kept."
)
@click.option(
    "--verify",
    type=click.Path(exists=True, dir_okay=False),
    metavar="REPORT",
    help="Only check whether REPORT has these results (exit status 1 if not).",
)
@click.option(
    "--twin",
    "twin_folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Also run connections that no run of the library is like in the lab's kernel, as they are and without their "
    f"limit (at most {MOST_TWINS}); the bundles go to FOLDER.",
)
@click.option("--shift-times", is_flag=True, help="With --anonymize: move the first packet to 2000-01-01.")
def report(
    captures: tuple[str, ...],
    options: CaptureOptions,
    merge: bool,
    out: str | None,
    form: str | None,
    limit: int,
    chosen: tuple[int, ...],
    theme: str,
    anonymize: bool,
    verify: str | None,
    twin_folder: Path | None,
    shift_times: bool,
) -> int:
    """Write a report: summary, findings with evidence, the worst connections with figures, all others as a table.

    HTML is one file that opens from disk and needs no network. PDF is printed by the system's Chromium or Chrome. JSON
    is the analysis with findings and time budgets; Markdown is for tickets. Without -o the report goes to standard
    output.

    FILE is a capture, a bundle, or - for standard input. Several captures, or a folder of them, get one report each,
    and --merge reads them as one, as in `tcpwin analyze`. For a report on captures of both ends, use
    `tcpwin pair A B -o OUT.html`.
    """
    out = None if out == "-" else out
    if shift_times and not anonymize:
        raise click.UsageError("--shift-times goes with --anonymize")
    files = separate(captures, options, merge=merge)
    if files and (anonymize or verify is not None or twin_folder is not None):
        raise click.UsageError("--anonymize, --verify and --twin are for one capture")
    if twin_folder is not None and anonymize:
        raise click.UsageError("--twin does not go with --anonymize: its bundles have the capture's name and settings")
    if files and chosen:
        raise click.UsageError("--connection is for one capture: their numbers differ")
    if files:
        return _report_each(files, options, out, form or "html", limit, theme)
    if verify is not None:
        return _verify(verify, options.analyze(captures, keep=True))
    if out is not None and Path(out).is_dir():
        raise click.UsageError(f"{out} is a folder: name a file with -o OUT")
    try:
        form = form or form_of(out)
    except ValueError as error:
        raise click.UsageError(f"{error} by --format") from None
    if out is None and (form == "pdf" or (form == "html" and sys.stdout.isatty())):
        raise click.UsageError(f"{form} cannot be shown in a terminal: name a file with -o OUT")
    output = choose_output(form, False, out, (*captures, *options.snapshots))
    if form == "pdf":
        from tcpwin.render.report import find_browser

        # Check before a long capture is read in vain.
        find_browser()
    analysis = options.analyze(captures, keep=True)
    for number in chosen:
        check_connection(number, len(analysis))
    with ExitStack() as stack:
        if anonymize:
            from tcpwin.render import anonymized

            _, _, analysis = stack.enter_context(anonymized(analysis, shift_times=shift_times))
        made = Report(analysis, limit=max(limit, len(chosen)), chosen=chosen)
        if twin_folder is not None:
            made = replace(made, twins=_run_twins(made, twin_folder, Path(captures[0]).name.partition(".")[0]))
        if out is not None:
            made.write(out, form=form, theme=theme)
        elif form == "json":
            with output.opened() as file:
                made.write_json(file)
        else:
            with output.opened() as file:
                file.write(made.markdown() if form == "md" else made.html(theme=theme))
    return 0


def _run_twins(report: Report, folder: Path, name: str) -> dict[int, TwinView]:
    """Run a twin of each connection shown that has no run of the library like it."""
    from tcpwin.cli.whatif import try_twin
    from tcpwin.lab import LiftError, NetworkError, ScenarioError
    from tcpwin.lab.twin import describe_twin
    from tcpwin.paths import LIFTABLE, Changes
    from tcpwin.render.report import TwinView

    found: dict[int, TwinView] = {}
    for view, comparison in zip(report.connections, report.comparisons, strict=True):
        if len(found) == MOST_TWINS:
            break
        if comparison.lab is None or comparison.lab.why_not is None:
            continue
        id, verdict = view.connection.id, view.verdict
        is_lifted = verdict.is_problem and verdict.limit in LIFTABLE
        lifted = (verdict.limit,) if is_lifted else ()
        changes = Changes(lifted=lifted, words=tuple(f"lift {limit}" for limit in lifted))
        try:
            twin = try_twin(report.analysis, view.connection, changes, folder, name, None)
        except (LiftError, NetworkError, ScenarioError) as error:
            found[id] = TwinView(id, f"No twin: {error}.")
            continue
        heads = ("", "captured", "twin" if twin.is_twin else "run (not a twin)", "with the change")
        rows = [(words, *cells) for words, cells in twin.rows]
        found[id] = TwinView(
            id,
            twin.text,
            heads=heads[: len(rows[0])],
            rows=rows,
            doubts=twin.doubts,
            document=describe_twin(twin),
        )
    return found


def _verify(report: str, analysis: Analysis) -> int:
    """Say whether a report matches an analysis."""
    from tcpwin.render.report import check_report
    from tcpwin.units import name_text

    difference = check_report(report, analysis)
    click.echo(f"{name_text(report)}: {difference or 'its capture and results match'}")
    return 0 if difference is None else 1


def _report_each(files: list[str], options: CaptureOptions, out: str | None, form: str, limit: int, theme: str) -> int:
    """Write a report on each capture to a folder, and show the captures as a table."""
    if out is None or Path(out).is_file():
        raise click.UsageError(
            f"{len(files)} captures: name a folder for their reports with -o OUT (--merge reads them as one)"
        )
    if form == "pdf":
        from tcpwin.render.report import find_browser

        find_browser()
    from tcpwin.render import render_captures

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    names = _names(files, form)
    rows: list[CaptureRow] = []
    write = partial(_write_report, folder=folder, names=names, form=form, limit=limit, theme=theme)
    for answered in answer_each(files, write, options):
        warn_of(answered)
        if answered.answer is not None:
            rows.append(answered.answer)
    failures = len(files) - len(rows)
    show(render_captures(rows, failures))
    return exit_status(False, failures)


def _names(files: list[str], form: str) -> dict[str, str]:
    """Return the names of the reports by capture: its own, with a number if it is taken."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for file in files:
        stem = Path(file).name.split(".")[0] or "capture"
        name, number = f"{stem}.{form}", 1
        while name.casefold() in taken:
            number += 1
            name = f"{stem}-{number}.{form}"
        taken.add(name.casefold())
        names[file] = name
    return names


def _write_report(
    analysis: Analysis, file: str, _: object, *, folder: Path, names: dict[str, str], form: str, limit: int, theme: str
) -> CaptureRow:
    from tcpwin.render import capture_row

    Report(analysis, limit=limit).write(folder / names[file], form=form, theme=theme)
    return capture_row(analysis, public_name(file))
