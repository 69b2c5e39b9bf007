"""What limited each connection: where its time went, findings by rules, with their evidence, cost and remedy.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.lazy import loader

if TYPE_CHECKING:
    from tcpwin.limits.algorithm import Algorithm, algorithms_of
    from tcpwin.limits.baseline import Baseline, Kind, Known, baseline_document, kinds_of, read_baseline
    from tcpwin.limits.budget import Budget, KernelLimits
    from tcpwin.limits.bulk import budget_columns, verdict_columns, verdict_parts
    from tcpwin.limits.case import Case
    from tcpwin.limits.claims import is_about, is_part_of
    from tcpwin.limits.comparison import Change, Comparison, FindingChange, Pair, compare
    from tcpwin.limits.crossing import Crossing
    from tcpwin.limits.document import (
        HEADINGS,
        SCHEMA,
        describe_finding,
        describe_page,
        describe_rule,
        plain,
        read_finding,
        sections,
    )
    from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
    from tcpwin.limits.findings import Findings, asked_of, check, choose
    from tcpwin.limits.life import Life, life_of
    from tcpwin.limits.ranking import problems, worst
    from tcpwin.limits.roles import role_of, roles_of, way_of
    from tcpwin.limits.rooms import (
        budgets_of,
        findings_of,
        problems_of,
        summary_of,
        verdict_of,
        verdicts_of,
        worst_verdict_of,
    )
    from tcpwin.limits.rule import ENTRY_POINTS, Rule, Threshold, all_rules
    from tcpwin.limits.summary import DAMAGED, Summary, advice_label, cost_sentence, summarize
    from tcpwin.limits.tables import (
        CONFIDENCES,
        GROUP_NAMES,
        GROUPS,
        ITEM_LIMITS,
        ITEM_NAMES,
        ITEMS,
        LIMIT_GROUPS,
        LIMIT_NAMES,
        LIMITS,
        OWNERS,
        VERDICT_COLUMNS,
        VERDICT_FIELDS,
    )
    from tcpwin.limits.verdict import (
        Verdict,
        choose_direction,
        judge_connection,
        judge_directions,
    )
    from tcpwin.limits.verdict_document import (
        describe_algorithms,
        describe_budget,
        describe_capture,
        describe_judged,
        describe_summary,
        describe_verdict,
        judged_members,
    )

_HOMES = {
    "algorithm": (
        "Algorithm",
        "algorithms_of",
    ),
    "budget": (
        "Budget",
        "KernelLimits",
    ),
    "bulk": (
        "budget_columns",
        "verdict_columns",
        "verdict_parts",
    ),
    "case": ("Case",),
    "claims": ("is_about", "is_part_of"),
    "comparison": (
        "Change",
        "Comparison",
        "FindingChange",
        "Pair",
        "compare",
        "cost_sentence",
    ),
    "crossing": ("Crossing",),
    "document": (
        "HEADINGS",
        "SCHEMA",
        "describe_finding",
        "describe_page",
        "describe_rule",
        "plain",
        "read_finding",
        "sections",
    ),
    "finding": (
        "Evidence",
        "Finding",
        "Remedy",
        "Severity",
    ),
    "baseline": ("Baseline", "Kind", "Known", "baseline_document", "kinds_of", "read_baseline"),
    "findings": (
        "Findings",
        "asked_of",
        "check",
        "choose",
    ),
    "life": ("Life", "life_of"),
    "ranking": (
        "problems",
        "worst",
    ),
    "roles": (
        "role_of",
        "roles_of",
        "way_of",
    ),
    "rooms": (
        "budgets_of",
        "findings_of",
        "problems_of",
        "summary_of",
        "verdict_of",
        "verdicts_of",
        "worst_verdict_of",
    ),
    "rule": (
        "ENTRY_POINTS",
        "Rule",
        "Threshold",
        "all_rules",
    ),
    "summary": (
        "DAMAGED",
        "Summary",
        "advice_label",
        "cost_sentence",
        "summarize",
    ),
    "tables": (
        "CONFIDENCES",
        "GROUPS",
        "GROUP_NAMES",
        "ITEMS",
        "ITEM_LIMITS",
        "ITEM_NAMES",
        "LIMITS",
        "LIMIT_GROUPS",
        "LIMIT_NAMES",
        "OWNERS",
        "VERDICT_COLUMNS",
        "VERDICT_FIELDS",
    ),
    "verdict": (
        "Verdict",
        "choose_direction",
        "judge_connection",
        "judge_directions",
    ),
    "verdict_document": (
        "describe_algorithms",
        "describe_budget",
        "describe_capture",
        "describe_judged",
        "describe_summary",
        "describe_verdict",
        "judged_members",
    ),
}

__all__ = [
    "CONFIDENCES",
    "DAMAGED",
    "ENTRY_POINTS",
    "GROUPS",
    "GROUP_NAMES",
    "HEADINGS",
    "ITEMS",
    "ITEM_LIMITS",
    "ITEM_NAMES",
    "LIMITS",
    "LIMIT_GROUPS",
    "LIMIT_NAMES",
    "OWNERS",
    "SCHEMA",
    "VERDICT_COLUMNS",
    "VERDICT_FIELDS",
    "Algorithm",
    "Baseline",
    "Budget",
    "Case",
    "Change",
    "Comparison",
    "Crossing",
    "Evidence",
    "Finding",
    "FindingChange",
    "Findings",
    "KernelLimits",
    "Kind",
    "Known",
    "Life",
    "Pair",
    "Remedy",
    "Rule",
    "Severity",
    "Summary",
    "Threshold",
    "Verdict",
    "advice_label",
    "algorithms_of",
    "all_rules",
    "asked_of",
    "baseline_document",
    "budget_columns",
    "budgets_of",
    "check",
    "choose",
    "choose_direction",
    "compare",
    "cost_sentence",
    "describe_algorithms",
    "describe_budget",
    "describe_capture",
    "describe_finding",
    "describe_judged",
    "describe_page",
    "describe_rule",
    "describe_summary",
    "describe_verdict",
    "findings_of",
    "is_about",
    "is_part_of",
    "judge_connection",
    "judge_directions",
    "judged_members",
    "kinds_of",
    "life_of",
    "plain",
    "problems",
    "problems_of",
    "read_baseline",
    "read_finding",
    "role_of",
    "roles_of",
    "sections",
    "summarize",
    "summary_of",
    "verdict_columns",
    "verdict_of",
    "verdict_parts",
    "verdicts_of",
    "way_of",
    "worst",
    "worst_verdict_of",
]

__getattr__ = loader(__name__, _HOMES)
