"""TW102 window-scale-stripped: one answer without the option among others with it, and among too few."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, judged
from stories.window_stories import one, sample, scaled

WITHOUT = ("<mss 1460,sackOK,ws 7>", "<mss 1460,sackOK>")


def connections(options: list[tuple[str, str]]) -> Story:
    """Consecutive connections from a to the same port of b, each with a request of one segment."""
    story = Story()
    for number, each in enumerate(options):
        story.setting(f"port a {40_000 + number}")
        story.next, story.acked, story.window = {"a": 0, "b": 0}, {"a": 0, "b": 0}, {"a": 64_240, "b": 65_160}
        story.handshake(options=each)
        story.data("a")
        story.wait(0.04).ack("b")
        story.close()
    return story


def test_fires_on_one_answer_without_the_option_among_others_with_it(tmp_path: Path) -> None:
    finding = one(connections([WITHOUT, scaled(7), scaled(7), scaled(7)]).analyze(tmp_path), "TW102")
    assert (finding.connection, finding.direction, finding.side) == (0, None, None)
    # The answer has SACK, so it is no SYN cookie, which would keep only the MSS.
    assert (finding.owner, finding.confidence, finding.cost_ns) == ("network", "likely", 0)
    assert finding.evidence.frames == (1,)
    assert finding.evidence.values == {"without_in_answer": 1, "with_in_both": 3}


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Too few others have the option.
    assert not judged(connections([WITHOUT, scaled(7), scaled(7)]).analyze(tmp_path), "TW102")
    # The SYN lacks the option.
    neither = ("<mss 1460,sackOK>", "<mss 1460,sackOK>")
    assert not judged(connections([neither, scaled(7), scaled(7), scaled(7)]).analyze(tmp_path), "TW102")


def test_an_answer_that_may_be_a_syn_cookie_is_less_sure(tmp_path: Path) -> None:
    bare = ("<mss 1460,sackOK,ws 7>", "<mss 1460>")
    assert one(connections([bare, scaled(7), scaled(7), scaled(7)]).analyze(tmp_path), "TW102").confidence == "possible"


def test_the_kernel_of_the_responder_proves_it(tmp_path: Path) -> None:
    text = sample("b", 0.1, "wscale:7,7 rto:240 rtt:40/1 mss:1460 cwnd:10 bytes_received:1460")
    finding = one(connections([WITHOUT]).analyze(tmp_path, snapshots={"ss_b.txt": text}), "TW102")
    assert (finding.connection, finding.owner, finding.confidence) == (0, "network", "certain")
    assert finding.evidence.values == {"without_in_answer": 1, "with_in_both": 0}


def test_a_kernel_that_does_not_scale_proves_nothing(tmp_path: Path) -> None:
    text = sample("b", 0.1, "rto:240 rtt:40/1 mss:1460 cwnd:10 bytes_received:1460")
    assert not judged(connections([WITHOUT]).analyze(tmp_path, snapshots={"ss_b.txt": text}), "TW102")
