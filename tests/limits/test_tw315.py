"""TW315 full-segments-missing: a path that drops large packets, captured at the receiver."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.boxes import answer, exchange
from stories.story import Story, judged

FULL = 1460 - 12


def cut_off(*, missing: int = 5 * FULL, tail: int = 700, wait_s: float = 4.0, six: bool = False) -> Story:
    """The client asks for a long answer, of which only the last, short segment comes; then it gives up."""
    story = exchange(near="a", six=six)
    story.data("a", 300, flags="PA")
    story.wait(0.04).acked["b"] = story.next["a"]
    lowest = story.next["b"]
    story.next["b"] += missing
    story.data("b", tail, flags="PA")
    story.ack("a", lowest, rest=f"<sack {lowest + missing}:{lowest + missing + tail}>")
    story.wait(wait_s).step("a", "FA")
    story.next["a"] += 1
    story.wait(0.04).acked["b"] = story.next["a"]
    story.step("b", "A")
    return story


@pytest.mark.parametrize("six", [False, True])
def test_only_the_short_end_of_an_answer_arrives(tmp_path: Path, *, six: bool) -> None:
    verdict, analysis = answer(cut_off(six=six), tmp_path)
    [finding] = judged(analysis, "TW315")
    assert (finding.direction, finding.owner, finding.confidence) == ("b_to_a", "network", "likely")
    assert finding.evidence.values == {"missing_bytes": 5 * FULL, "largest_arrived_bytes": 900}
    assert (verdict.limit, verdict.owner) == ("path_mtu", "network")


@pytest.mark.parametrize(
    "story", [cut_off(missing=700), cut_off(wait_s=0.5), cut_off(tail=FULL)], ids=["small hole", "soon over", "full"]
)
def test_what_else_may_be_missing(story: Story, tmp_path: Path) -> None:
    assert not judged(story.analyze(tmp_path), "TW315")


def test_a_hole_of_odd_size_is_only_possible(tmp_path: Path) -> None:
    [finding] = judged(cut_off(missing=5 * FULL + 7).analyze(tmp_path), "TW315")
    assert finding.confidence == "possible"


def test_a_bare_ack_tells_how_much_is_missing(tmp_path: Path) -> None:
    """Nothing of the answer arrives; the server's ACK of the client's FIN is numbered behind it."""
    story = exchange(near="a", times=1)
    story.data("a", 300, flags="PA")
    story.wait(0.04).acked["b"] = story.next["a"]
    story.step("b", "A")
    story.wait(5.0).step("a", "FA")
    story.next["a"] += 1
    story.wait(0.04).acked["b"] = story.next["a"]
    story.step("b", "A", seq=story.next["b"] + 11 * FULL)
    verdict, analysis = answer(story, tmp_path)
    [finding] = judged(analysis, "TW315")
    assert finding.evidence.values["missing_bytes"] == 11 * FULL
    assert verdict.limit == "path_mtu"
    assert verdict.cost_ns == pytest.approx(5e9, rel=0.1)
