"""What limited each connection: where its time went, findings by rules, with their evidence, cost and remedy.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin._lazy import loader

if TYPE_CHECKING:
    from tcpwin.findings._analysis import Analysis, Connection
    from tcpwin.findings._budget import GROUPS, ITEMS, Budget, KernelLimits
    from tcpwin.findings._case import Case
    from tcpwin.findings._check import Findings, asked_of, check, choose
    from tcpwin.findings._compare import Change, Comparison, FindingChange, Pair, compare
    from tcpwin.findings._finding import BLAMES, CONFIDENCES, Evidence, Finding, Remedy, Severity
    from tcpwin.findings._rule import Rule, Threshold, all_rules
    from tcpwin.findings._summary import Summary, summarize
    from tcpwin.findings._verdict import Verdict, judge_connection

_HOMES = {
    "_analysis": ("Analysis", "Connection"),
    "_budget": ("Budget", "GROUPS", "ITEMS", "KernelLimits"),
    "_case": ("Case",),
    "_check": ("Findings", "asked_of", "check", "choose"),
    "_compare": ("Change", "Comparison", "FindingChange", "Pair", "compare"),
    "_finding": ("BLAMES", "CONFIDENCES", "Evidence", "Finding", "Remedy", "Severity"),
    "_rule": ("Rule", "Threshold", "all_rules"),
    "_summary": ("Summary", "summarize"),
    "_verdict": ("Verdict", "judge_connection"),
}

__all__ = [
    "BLAMES",
    "CONFIDENCES",
    "GROUPS",
    "ITEMS",
    "Analysis",
    "Budget",
    "Case",
    "Change",
    "Comparison",
    "Connection",
    "Evidence",
    "Finding",
    "FindingChange",
    "Findings",
    "KernelLimits",
    "Pair",
    "Remedy",
    "Rule",
    "Severity",
    "Summary",
    "Threshold",
    "Verdict",
    "all_rules",
    "asked_of",
    "check",
    "choose",
    "compare",
    "judge_connection",
    "summarize",
]

__getattr__ = loader(__name__, _HOMES)
