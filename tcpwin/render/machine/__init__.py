"""Findings in the formats of other programs: SARIF, JUnit, GitHub annotations."""
