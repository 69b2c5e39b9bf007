"""Findings as text, in the style of a linter: a line each with its cost, then its evidence and its fix.

In: an analysis and its findings. Out: lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tcpwin.limits import Analysis, Findings
from tcpwin.render.view.finding import FindingView, FindingViews, counts_line, frames_text
from tcpwin.units import count_text, name_text


def render_findings(analysis: Analysis, found: Findings, *, checked: int, limit: int | None = None) -> Iterator[str]:
    """Render the `limit` costliest findings (all with None), and the counts; `checked` rules were checked."""
    view = FindingViews(analysis, found)
    for finding in map(view, islice(found, limit)):
        yield heading(analysis, finding)
        yield from (f"    {line}" for line in details(finding))
        yield ""
    yield counts_line(analysis, found, checked=checked)
    left = sum(found.counts.values()) - min(len(found), len(found) if limit is None else limit)
    if left:
        yield f"{count_text(left, 'finding')} not shown: --limit N shows more, --select CODE those of one rule."


def heading(analysis: Analysis, finding: FindingView) -> str:
    """Return ``capture:#3 server→client TW201 zero-window-stall (warning, time lost 6.1 s, certain): text``."""
    id = "" if finding.connection is None else f":#{finding.connection}"
    place = " ".join(filter(None, (f"{analysis.name}{id}", finding.direction.replace(" ", ""))))
    weight = ", ".join([finding.severity, *finding.weight])
    return name_text(f"{place} {finding.title} ({weight}): {finding.text}")


def details(finding: FindingView) -> Iterator[str]:
    """Render ends, owner, evidence and remedy, one per line."""
    remedy = finding.remedy
    frames = frames_text(finding.frames) if finding.frames else ""
    lines = (
        ("ends", finding.ends),
        ("owner", finding.owner),
        ("evidence", f"{frames} ({finding.frames_of})" if finding.frames_of else frames),
        ("when", finding.when),
        ("values", ", ".join(map(" ".join, finding.values))),
        (finding.ruling.lower(), finding.ruled_out),
    )
    yield from (f"{name:<9}  {text}" for name, text in lines if text)
    if remedy is not None:
        yield f"{'remedy':<9}  {remedy.text}"
        yield from (f"{'':<9}  {setting}" for setting in remedy.settings)
        if remedy.side_effects:
            yield f"{'beware':<9}  {remedy.side_effects}"
