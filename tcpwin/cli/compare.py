"""`tcpwin compare`: the same workload before and after a change, with an exit status for CI."""

from __future__ import annotations

import re
from dataclasses import replace

import click

from tcpwin.cli.io import colour_option, complain, show
from tcpwin.cli.options import SELECTION, CaptureOptions, WithSnapshots, capture_options
from tcpwin.cli.program import EXIT_PROBLEM
from tcpwin.cli.rules import chosen_rules
from tcpwin.cli.whatif import Setting

SCHEMA = "tcpwin/comparison/1"
_FAILING = ("worse", "unmatched")


def _tolerance(ctx: click.Context, param: click.Parameter, value: str) -> float:  # noqa: ARG001
    found = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)(%?)", value)
    share = None if found is None else float(found[1]) / (100 if found[2] else 1)
    if share is None or share > 1:
        raise click.BadParameter(f"{value[:40]!r} is not a share such as 10% or 0.1.")
    return share


@click.command(cls=WithSnapshots)
@click.argument("old", type=click.Path(allow_dash=True), metavar="OLD")
@click.argument("new", type=click.Path(allow_dash=True), metavar="NEW")
@click.option(
    "--change",
    "changes",
    type=Setting(),
    multiple=True,
    metavar="END.NAME=VALUE",
    help="What was changed, as for `tcpwin whatif --set`: receiver.tcp_rmem=32M; adds what it was predicted to bring; "
    "may be repeated.",
)
@click.option("--with-old", multiple=True, metavar="SNAPSHOT...", help="Host snapshots taken with OLD.")
@click.option("--with-new", multiple=True, metavar="SNAPSHOT...", help="Host snapshots taken with NEW.")
@capture_options("window_scales", *SELECTION, "member")
@click.option(
    "--tolerance",
    default="10%",
    show_default=True,
    callback=_tolerance,
    metavar="SHARE",
    help="Smaller differences count as the same.",
)
@click.option(
    "--limit", default=10, show_default=True, type=click.IntRange(min=0), metavar="N", help="Number of pairs to show."
)
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option(
    "--fail-on",
    type=click.Choice(("worse", "never")),
    default="never",
    show_default=True,
    help="Exit with 1 if it is worse, or if nothing can be compared.",
)
@colour_option
def compare(
    old: str,
    new: str,
    changes: tuple[tuple[str, str], ...],
    with_old: tuple[str, ...],
    with_new: tuple[str, ...],
    options: CaptureOptions,
    tolerance: float,
    limit: int,
    form: str,
    fail_on: str,
    colour: str,
) -> int:
    """Compare the same workload before (OLD) and after (NEW) a change: better, worse or the same, and why.

    OLD and NEW are captures or bundles. Connections are paired by server, order, size and duration.

    With --change, also say what the change was predicted to bring to the pair that lost most time, and what it brought.

    `tcpwin compare before.zip after.zip --change receiver.tcp_rmem=32M`
    """
    if old == new == "-":
        raise click.UsageError("standard input (-) can be read once")
    from tcpwin.hosts import is_bundle
    from tcpwin.limits import check
    from tcpwin.limits import compare as judge

    rules = chosen_rules((), ())
    if options.member is not None and not (is_bundle(old) or is_bundle(new)):
        raise click.UsageError("--capture names a capture in a bundle: give a folder, .zip or .tar.gz")
    before, after = (
        replace(options, snapshots=snapshots, member=options.member if is_bundle(path) else None).analyze(
            (path,), keep=True
        )
        for path, snapshots in ((old, with_old), (new, with_new))
    )
    found = [check(analysis, chosen=rules) for analysis in (before, after)]
    comparison = judge(before, after, old_findings=found[0], new_findings=found[1], tolerance=tolerance)
    effect, refused = None, None
    if changes:
        from tcpwin.paths import ChangeError, WhatIfError, judge_change

        try:
            effect = judge_change(before, after, changes, comparison=comparison, tolerance=tolerance)
        except ChangeError as error:
            raise click.UsageError(str(error)) from None
        except WhatIfError as error:
            refused = str(error)
    if form == "json":
        import json

        from tcpwin.limits import plain

        document = {"schema": SCHEMA, "old": before.name, "new": after.name, **plain(comparison)}
        if effect is not None:
            from tcpwin.paths import describe_effect

            document["effect"] = describe_effect(effect)
        elif refused is not None:
            document["effect"] = {"refused": refused}
        click.echo(json.dumps(document, indent=1))
    else:
        from tcpwin.render import render_comparison

        show([render_comparison(before, after, comparison, limit=limit, effect=effect)], colour)
        if refused is not None:
            complain(f"warning: the change cannot be judged: {refused}")
    return EXIT_PROBLEM if fail_on == "worse" and comparison.verdict in _FAILING else 0
