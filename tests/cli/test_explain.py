"""`tcpwin explain`: a rule by code or name, as text and as JSON; an unknown word."""

from __future__ import annotations

import json

import pytest
from cases import all_cases
from cli.command import refused, tcpwin

from tcpwin.limits import all_rules
from tcpwin.limits.document import HEADINGS


@pytest.mark.parametrize("word", ["TW201", "tw201", "zero-window-stall", "Zero-Window-Stall"])
def test_code_or_name(word: str) -> None:
    told = tcpwin("explain", word).stdout.decode().splitlines()
    assert told[:4] == [
        "TW201 zero-window-stall: the receiver's window was closed",
        "warning, checks each direction with zero_window_ns >= stall_ns",
        "",
        "What it finds",
    ]
    assert [line for line in told if line in HEADINGS] == list(HEADINGS)
    assert told[-4:] == [
        "Thresholds",
        "  Set with `tcpwin check --threshold TW201.NAME=VALUE`.",
        "  stall_ns  200ms: Linux's shortest retransmission timeout; less is barely noticeable.",
        "  share     2%: A window that is closed for less than 2 % of the time works as designed.",
    ]


def test_json() -> None:
    read = json.loads(tcpwin("explain", "--json", "TW201").stdout)
    rule = all_rules()["TW201"]
    assert list(read) == [
        "schema",
        "code",
        "name",
        "title",
        "severity",
        "scope",
        "thresholds",
        "when",
        "yields_to",
        "page",
        "sections",
    ]
    assert (read["schema"], read["code"], read["page"]) == ("tcpwin/rule/1", "TW201", rule.page)
    assert read["when"] == [["zero_window_ns", ">=", "{stall_ns}"]]
    assert read["yields_to"] == ["TW204"]
    assert tuple(read["sections"]) == HEADINGS


@all_cases(
    ("word", "ending"),
    [
        ("zero-windw-stall", "did you mean TW201 (zero-window-stall)?"),
        ("zero_window_stall", "did you mean TW201 (zero-window-stall)?"),
        ("nonsense-of-a-kind-that-nobody-wrote", "`tcpwin rules` lists them"),
        ("", "`tcpwin rules` lists them"),
    ],
)
def test_unknown_word_is_one_sentence(word: str, ending: str) -> None:
    assert refused("explain", word, status=2) == f"tcpwin: no rule is called {word}: {ending}\n"


def test_words_of_one_rule_explain_it_and_of_several_list_them() -> None:
    assert tcpwin("explain", "window", "closed", "good").stdout == tcpwin("explain", "TW203").stdout
    listed = tcpwin("explain", "zero", "window").stdout.decode().splitlines()
    assert [line.split()[0] for line in listed] == ["TW201", "TW203"]


def test_long_and_odd_words() -> None:
    assert refused("explain", "x" * 100_000, status=2) == (
        f"tcpwin: no rule is called {'x' * 60}: `tcpwin rules` lists them\n"
    )
    assert refused("explain", "\x1b[31m\n", status=2) == (
        "tcpwin: no rule is called \\x1b[31m\\n: `tcpwin rules` lists them\n"
    )


def test_usage() -> None:
    assert "Missing argument 'RULE'" in refused("explain", status=2)
