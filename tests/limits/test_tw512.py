"""TW512 nat-legs: a RST on one side of a router that translates, on both sides, and on unrelated connections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stories.boxes import RTT_S, exchange, reset
from stories.shown import Shown
from stories.story import Story, judged

import tcpwin

HAND_CHECKS = [
    {
        "capture": "OISF+suricata-verify/tests__bug-5437-02__input.pcap",
        "connection": 3,
        "direction": "a_to_b",
        "frames": [41],
        "saw": "Both connections have the client's port 54520 and the same ISNs; the RST 41 is on the second only.",
        "verdict": "right",
    }
]


def check_shown(shown: Shown) -> Iterator[str]:
    """Only the RST is shown, and only on its own side."""
    if len(shown.finding.evidence.frames) > 1:
        yield "more than the RST is shown"


def legs(folder: Path, *, resets: tuple[bool, bool], isn: int = 77) -> tcpwin.Analysis:
    """The same exchange, inside and outside a NAT that changes the client's port; each side with a RST or without."""
    files = []
    for number, has_reset in enumerate(resets):
        story = exchange(times=2)
        story.lines[:0] = [f"port a {40_000 + number}", f"isn a {isn if number else 77}", "isn b 99"]
        if has_reset:
            reset(story, "a", 0.0001)
        else:
            wait(story)
        files.append(story.write(folder, f"leg-{number}"))
    return tcpwin.analyze(files)


def wait(story: Story) -> None:
    """The client sends on, three times, and nothing comes back."""
    first = story.next["a"]
    story.wait(RTT_S).data("a", 300, flags="PA")
    for pause_s in (0.3, 0.6, 1.2):
        story.wait(pause_s).step("a", "PA", "len 300", seq=first)


def test_a_router_that_resets_one_side(tmp_path: Path) -> None:
    analysis = legs(tmp_path, resets=(False, True))
    waiting, half = analysis.connections[0].verdict, analysis.connections[1].verdict
    assert (waiting.limit, waiting.owner, waiting.confidence) == ("middlebox", "network", "certain")
    assert waiting.cost_ns > 2e9
    assert (half.limit, half.owner) == ("middlebox", "network")
    assert {each.code for each in analysis.findings.of(1)} & {"TW501", "TW512"} == {"TW512"}


def test_a_reset_on_both_sides_and_chance_ports(tmp_path: Path) -> None:
    assert not judged(legs(tmp_path, resets=(True, True)), "TW512")
    assert not judged(legs(tmp_path, resets=(False, True), isn=78), "TW512"), "other initial sequence numbers"
