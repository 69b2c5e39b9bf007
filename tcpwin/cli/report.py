"""`tcpwin report`: the answer as one self-contained file."""

from __future__ import annotations

import sys

import click

from tcpwin.cli.selection_options import selection_options
from tcpwin.cli.snapshot_options import WithSnapshots, measure, snapshot_options
from tcpwin.cli.ss import choose_output
from tcpwin.report.standalone import CONNECTIONS_SHOWN, FORMS, THEMES, Report, form_of


@click.command(cls=WithSnapshots)
@click.argument("captures", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@snapshot_options
@selection_options
@click.option("-o", "--output", "out", type=click.Path(dir_okay=False), metavar="OUT", help="Write to this file.")
@click.option("--format", "form", type=click.Choice(FORMS), help="Format; default: by the ending of OUT, or html.")
@click.option(
    "--limit",
    default=CONNECTIONS_SHOWN,
    show_default=True,
    metavar="N",
    type=click.IntRange(0, 1000),
    help="Number of connections in full, worst first.",
)
@click.option(
    "--theme",
    type=click.Choice(THEMES),
    default="auto",
    show_default=True,
    help="Theme of HTML; readers can switch it.",
)
def report(
    captures: tuple[str, ...],
    snapshots: tuple[str, ...],
    clock_offset: int | None,
    member: str | None,
    out: str | None,
    form: str | None,
    limit: int,
    theme: str,
) -> None:
    """Write a report: summary, findings with evidence, the worst connections with figures, all others as a table.

    HTML is one file that opens from disk and needs no network. PDF is printed by the system's Chromium or Chrome. JSON
    is the analysis with findings and time budgets; Markdown is for tickets. Without -o the report goes to standard
    output.

    FILE is a capture, several captures, a bundle, or - for standard input, as in `tcpwin analyze`. A report on captures
    of both ends is `tcpwin pair A B -o OUT.html`.
    """
    out = None if out == "-" else out
    try:
        chosen = form or form_of(out)
    except ValueError as error:
        raise click.UsageError(f"{error} by --format") from None
    if out is None and (chosen == "pdf" or (chosen == "html" and sys.stdout.isatty())):
        raise click.UsageError(f"{chosen} is nothing to read in a terminal: name a file with -o OUT")
    output = choose_output(chosen, False, out, (*captures, *snapshots))
    if chosen == "pdf":
        from tcpwin.report.standalone import find_browser

        # Before a long capture is read for nothing.
        find_browser()
    made = Report(measure(captures, snapshots, clock_offset=clock_offset, member=member, keep=True), limit=limit)
    if out is not None:
        made.write(out, form=chosen, theme=theme)
    elif chosen == "json":
        with output.opened() as file:
            made.write_json(file)
    else:
        with output.opened() as file:
            file.write(made.markdown() if chosen == "md" else made.html(theme=theme))
