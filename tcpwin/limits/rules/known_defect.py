"""## What it finds

A known defect of a kernel, a stack or a device, by its signature on the wire and in the host's records.

## Why it matters

No setting cures a defect: the host needs an update, or the documented workaround.

## How it is judged

`tcpwin/limits/defects` has one file for each defect, with conditions on the affected direction. If records of the host
are available, its kernel version must be affected, its settings must be those that the defect needs, and its counters
must have grown; the finding is then `likely`. Without records, kernel defects are not reported, and those of other
stacks are at most `possible`: an explanation, not a warning.

## When it is wrong

Distributions add fixes to older kernels without changing the version.

## What to do

Read the sources that the finding names, and update or apply the workaround.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tcpwin.limits.case import Case
from tcpwin.limits.defects import Defect, known_defects
from tcpwin.limits.evidence.hosts import growth, kernel_version
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule

if TYPE_CHECKING:
    from tcpwin.hosts import Host

ON_THE_WIRE = tuple(defect for defect in known_defects() if defect.when)
MOST = 20
"""Directions judged for each defect."""


def judge(case: Case) -> Iterator[Finding]:
    for defect, chosen in zip(ON_THE_WIRE, case.asked, strict=True):
        for id, way in list(chosen)[:MOST]:
            judged = replace(case, subject=case.analysis.connections[id], direction=way)
            side = judged.sender if defect.side == "sender" else judged.receiver
            host = judged.host(side)
            if host is None and defect.part == "stack":
                yield _finding(judged, defect, side, is_confirmed=False)
            elif host is not None and is_affected(defect, host):
                yield _finding(judged, defect, side, is_confirmed=defect.is_of_host)


def is_affected(defect: Defect, host: Host) -> bool:
    """Return whether a host's records are consistent with a defect."""
    from tcpwin.kernel import parse_kernel

    version = kernel_version(host)
    if version is None and (defect.from_version or defect.before_version):
        return False
    if version is not None:
        if defect.from_version and version < parse_kernel(defect.from_version):
            return False
        if defect.before_version and version >= parse_kernel(defect.before_version):
            return False
    settings = host.settings
    if any(settings is None or settings.number(name) != value for name, value in defect.settings.items()):
        return False
    return not defect.counters or bool(growth(host, *defect.counters))


def _finding(case: Case, defect: Defect, side: str, *, is_confirmed: bool) -> Finding:
    who = case.the(side)
    doubt = "" if is_confirmed else ". Its records would confirm or refute it"
    return case.finding(
        f"{who} shows a known defect: {defect.title}. {defect.signature} {defect.effect}{doubt}".rstrip("."),
        owner="host",
        side=side,
        confidence="likely" if is_confirmed else "possible",
        severity=Severity.WARNING if is_confirmed else Severity.INFO,
        evidence=Evidence(values={"defect": defect.name, "sources": " ".join(defect.sources)}),
        remedy=Remedy(f"{defect.fix} Until then: {defect.workaround} See {defect.sources[0]}."),
    )


RULE = Rule(
    code="TW709",
    name="known-defect",
    title="a known defect of a kernel, stack or device",
    severity=Severity.INFO,
    scope="capture",
    asks=tuple(("direction", defect.when) for defect in ON_THE_WIRE),
    judge=judge,
    page=__doc__,
)
