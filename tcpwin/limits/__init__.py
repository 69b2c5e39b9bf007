"""Limits of each connection: time budgets, verdicts, and the findings of rules with evidence, cost and remedy."""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
