"""The page of outputs before and after shows today's output."""

from __future__ import annotations

import re
import shlex

from cases import all_cases
from cli.command import CAPTURES, tcpwin

ROOT = CAPTURES.parent
PAGE = (ROOT / "tests" / "stories" / "BEFORE_AND_AFTER.md").read_text(encoding="utf8")
SHOWN = re.findall(r"^`tcpwin ([^`]+)`$.*?^After:\n\n```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_ten_are_shown() -> None:
    assert len(SHOWN) == PAGE.count("\nAfter:\n") == 10


@all_cases(("command", "after"), SHOWN, ids=[command for command, _ in SHOWN])
def test_after_is_what_is_printed_today(command: str, after: str) -> None:
    """`…` replaces omitted lines."""
    printed = tcpwin(*shlex.split(command), cwd=ROOT).stdout.decode()
    place = 0
    for part in re.split(r"^…\n", after, flags=re.MULTILINE):
        found = printed.find(part, place)
        assert found >= 0, f"not in today's output:\n{part}"
        place = found + len(part)
