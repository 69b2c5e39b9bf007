"""Build reports and comparisons of stored captures while the caller waits.

Runs in worker processes, which read the captures again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from tcpwin.limits import Connection, compare, plain
from tcpwin.render import full_verdict, headline, render, seen_twice, view_verdict
from tcpwin.render.report import Note, Report, render_page, seal_again
from tcpwin_web.anonymise.cryptopan import CryptoPan
from tcpwin_web.anonymise.page import replace_in_page
from tcpwin_web.jobs.work import FileSet, analyze_file_set
from tcpwin_web.results import layout

ReportForm = Literal["text", "html", "pdf", "md", "json"]
MOST_PAIRS = 100
"""Maximum number of pairs with endpoints and verdicts; the others have only numbers."""


def compare_file_sets(old: FileSet, new: FileSet, tolerance: float) -> dict[str, Any]:
    """Compare two captures of the same workload: did the new one go better or worse?"""
    before, after = old.analyze(), new.analyze()
    comparison = compare(before, after, tolerance=tolerance)
    document: dict[str, Any] = plain(comparison)
    for pair, matched in zip(document["pairs"][:MOST_PAIRS], comparison.pairs, strict=False):
        for name, connection in (
            ("old", before.connections[matched.match.old]),
            ("new", after.connections[matched.match.new]),
        ):
            pair[f"{name}_ends"] = ends_text(connection)
            pair[f"{name}_verdict"] = plain(full_verdict(connection.verdict))
            pair[f"{name}_limit"] = view_verdict(connection.verdict).label
    return {
        "schema": "tcpwin/comparison/1",
        "old": before.name,
        "new": after.name,
        "headline": headline(comparison),
        "is_seen_twice": seen_twice(before, after, comparison),
        **document,
    }


def ends_text(connection: Connection) -> str:
    """Return both endpoints of a connection."""
    return f"{connection.a} → {connection.b}"


def render_report(
    file_set: FileSet, form: ReportForm, limit: int, address_key: str | None = None, notes: Sequence[Note] = ()
) -> str:
    """Render a report as `tcpwin analyze` (text) or `tcpwin report` does; for a PDF, the page to print.

    Args:
        limit: maximum number of connections in full.
        address_key: key for mapping the addresses, if they are hidden. File names and host snapshots are left out then:
            they may contain anything.
        notes: notes on the capture; text has none.
    """
    if address_key is not None:
        file_set = _without_names(file_set)
    analysis = file_set.analyze()
    report = Report(analysis, limit, notes=notes)
    if form == "text":
        text = render(analysis, limit=limit)
    elif form == "json":
        text = report.json()
    elif form == "md":
        text = report.markdown()
    else:
        text = render_page(report.printed if form == "pdf" else report)
    if address_key is None:
        return text
    mapping = CryptoPan(bytes.fromhex(address_key))
    return seal_again(replace_in_page(text, mapping) if form in ("html", "pdf") else mapping.text(text))


def own_names(file_set: FileSet) -> set[str]:
    """Return the names of a capture, of its files and of their interfaces."""
    names = {file_set.name, *(name for each in file_set.files for name in (each.name, each.label))}
    facts = [each.facts for each in file_set.files if each.facts is not None]
    names.update(each.get("name") or "" for fact in facts for each in fact.get("interfaces", ()))
    return names - {""}


def prepare_shared(file_set: FileSet, folder: str) -> None:
    """Write a capture's results without host snapshots and names, next to the original results."""
    place = Path(folder) / layout.SHARED
    analyze_file_set(_without_names(file_set), str(place), f"{place}.new")


def _without_names(file_set: FileSet) -> FileSet:
    """Return only the capture files, under neutral names: those of files and interfaces may reveal hosts."""
    captures = [each for each in file_set.files if each.kind == "capture"]
    files = [
        replace(each, name=f"file {number}", label="", facts=_without_own_names(each.facts, f"file {number}"), notes=())
        for number, each in enumerate(captures, 1)
    ]
    return replace(file_set, name="a capture", files=files)


def _without_own_names(facts: Mapping[str, Any] | None, name: str) -> Mapping[str, Any] | None:
    if facts is None:
        return None
    interfaces = [{**each, "name": None} for each in facts.get("interfaces", ())]
    warnings = [{**each, "file": name} for each in facts.get("warnings", ())]
    # The digest would identify the capture.
    return {**facts, "file": name, "interfaces": interfaces, "warnings": warnings, "sha256": None}
