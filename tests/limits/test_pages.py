"""Every rule's page has its headings in order, content under each, its thresholds, and lines that fit a terminal."""

from __future__ import annotations

import re
import subprocess
import sys
from inspect import signature
from pathlib import Path

from cases import all_cases

import tcpwin
from tcpwin import _engine
from tcpwin.limits import all_rules
from tcpwin.limits.document import HEADINGS, sections

RULES = {code: rule for code, rule in all_rules().items() if rule.judge.__module__.startswith("tcpwin.")}
EACH = all_cases("code", RULES)
TCPWIN = Path(sys.executable).with_name("tcpwin")


def test_headings_are_those_of_the_house() -> None:
    assert HEADINGS == ("What it finds", "Why it matters", "How it is judged", "When it is wrong", "What to do")


@EACH
def test_headings_in_their_order(code: str) -> None:
    page = RULES[code].page
    assert page.startswith("## ")
    assert re.findall(r"^#+ .*$", page, re.MULTILINE) == [f"## {heading}" for heading in HEADINGS]


@EACH
def test_no_section_is_empty(code: str) -> None:
    found = sections(RULES[code].page)
    assert tuple(found) == HEADINGS
    assert {heading: text for heading, text in found.items() if len(text.split()) < 5} == {}
    ended = (".", ".)", "```", "|")
    assert {heading: text for heading, text in found.items() if not text.endswith(ended)} == {}


@EACH
def test_thresholds_are_named_where_it_is_judged(code: str) -> None:
    rule = RULES[code]
    judged = set(re.findall(r"`([^`\n]+)`", sections(rule.page)["How it is judged"]))
    assert set(rule.thresholds) - judged == set()


@EACH
def test_measured_names_in_backticks_exist(code: str) -> None:
    """A name with a unit is a threshold, an engine field, a value of the evidence, or an option of `analyze`."""
    rule = RULES[code]
    fields = {name for group in ("connection", "direction") for name, _, _ in _engine.fields(group)}
    said = set(re.findall(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+)*_(?:ns|bytes|bps|share))`", rule.page))
    source = Path(rule.judge.__code__.co_filename).read_text(encoding="utf8")
    values = set(re.findall(r'"([a-z0-9_]+)"', source))
    assert said - set(rule.thresholds) - fields - values - set(signature(tcpwin.analyze).parameters) == set()


@EACH
def test_lines_fit_and_hold_no_control_character(code: str) -> None:
    assert all(len(line) <= 120 and line.isprintable() for line in RULES[code].page.splitlines())


def test_sections_of_any_text() -> None:
    assert sections("") == {}
    assert sections("no heading") == {}
    assert sections("## A\n\none\n\ntwo\n## B\n## A\nthree\n") == {"A": "one\n\ntwo\nthree", "B": ""}


def test_command_prints_a_page() -> None:
    done = subprocess.run([TCPWIN, "explain", "zero-window-stall"], text=True, capture_output=True, check=True)
    headings = [line for line in done.stdout.splitlines() if line in HEADINGS]
    assert tuple(headings) == HEADINGS
