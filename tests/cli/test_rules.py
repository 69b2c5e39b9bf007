"""`tcpwin rules`: the list as text and as JSON."""

from __future__ import annotations

import json

from cli.command import refused, tcpwin

from tcpwin.limits import all_rules


def test_a_line_for_each_rule() -> None:
    told = tcpwin("rules").stdout.decode().splitlines()
    assert [line.split()[:3] for line in told] == [
        [rule.code, rule.name, str(rule.severity)] for rule in all_rules().values()
    ]
    assert len({line.index(rule.title) for line, rule in zip(told, all_rules().values(), strict=True)}) == 1


def test_json() -> None:
    read = json.loads(tcpwin("rules", "--json").stdout)
    assert read["schema"] == "tcpwin/rules/1"
    assert [rule["code"] for rule in read["rules"]] == list(all_rules())
    [stall] = [rule for rule in read["rules"] if rule["code"] == "TW201"]
    assert stall == {
        "code": "TW201",
        "name": "zero-window-stall",
        "title": "the receiver's window was closed",
        "severity": "warning",
        "scope": "direction",
        "thresholds": {
            "stall_ns": {
                "default": 200_000_000,
                "unit": "ns",
                "reason": "Linux's shortest retransmission timeout; less is barely noticeable.",
            },
            "share": {
                "default": 0.02,
                "unit": "share",
                "reason": "A window that is closed for less than 2 % of the time works as designed.",
            },
        },
    }


def test_words_are_refused() -> None:
    assert "Got unexpected extra argument (TW201)" in refused("rules", "TW201", status=2)
