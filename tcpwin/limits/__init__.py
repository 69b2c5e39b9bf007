"""What limited each connection: where its time went, findings by rules, with their evidence, cost and remedy.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.lazy import loader

if TYPE_CHECKING:
    from tcpwin.limits.analysis import Analysis, Connection
    from tcpwin.limits.budget import GROUPS, ITEMS, Budget, KernelLimits
    from tcpwin.limits.case import Case
    from tcpwin.limits.comparison import Change, Comparison, FindingChange, Pair, compare
    from tcpwin.limits.finding import BLAMES, CONFIDENCES, Evidence, Finding, Remedy, Severity
    from tcpwin.limits.findings import Findings, asked_of, check, choose
    from tcpwin.limits.rule import Rule, Threshold, all_rules
    from tcpwin.limits.summary import Summary, summarize
    from tcpwin.limits.verdict import Verdict, judge_connection

_HOMES = {
    "analysis": ("Analysis", "Connection"),
    "budget": ("Budget", "GROUPS", "ITEMS", "KernelLimits"),
    "case": ("Case",),
    "findings": ("Findings", "asked_of", "check", "choose"),
    "comparison": ("Change", "Comparison", "FindingChange", "Pair", "compare"),
    "finding": ("BLAMES", "CONFIDENCES", "Evidence", "Finding", "Remedy", "Severity"),
    "rule": ("Rule", "Threshold", "all_rules"),
    "summary": ("Summary", "summarize"),
    "verdict": ("Verdict", "judge_connection"),
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
