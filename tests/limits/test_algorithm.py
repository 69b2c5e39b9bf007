"""The sender's congestion control, from a snapshot or its behaviour, and the advice against loss that follows."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from reference import LAB_RUNS
from stories.hostsaid import ss
from stories.story import Story, judged

import tcpwin
from tcpwin.limits import Algorithm, algorithms_of, describe_judged

RTT = 0.02
WINDOW = 20
LOSSES = 9
ROUNDS = 6


def saw(after: Callable[[int, int], int]) -> Story:
    """A sender that repeatedly loses one segment of its window.

    Args:
        after: window after each round since the loss, as a function of the window before it.
    """
    story = Story().handshake(RTT)
    window = WINDOW
    for _ in range(LOSSES):
        for _ in range(2):
            story.burst("a", window).wait(RTT).ack("b")
        first = story.next["a"]
        story.burst("a", window).wait(RTT)
        for got in range(2, window + 1):
            story.ack("b", first, rest=f"<sack {first + 1460}:{first + got * 1460}>")
            if got == 4:
                story.step("a", "A", "len 1460", seq=first)
        story.wait(RTT).ack("b")
        for number in range(ROUNDS):
            window = after(WINDOW, number)
            story.burst("a", window).wait(RTT).ack("b")
        window = WINDOW
    return story.close(RTT)


def reno(before: int, number: int) -> int:
    return before // 2 + 1 + number


def cubic(before: int, number: int) -> int:
    return before * 7 // 10 + 1 + number // 2


def bbr(before: int, _: int) -> int:
    return before


@pytest.mark.parametrize(("sender", "name"), [(reno, "reno"), (cubic, "cubic"), (bbr, "bbr")])
def test_recognised_by_the_reduction_after_a_loss(sender: Callable[[int, int], int], name: str, tmp_path: Path) -> None:
    analysis = saw(sender).analyze(tmp_path)
    [connection] = analysis.connections
    told = algorithms_of(connection)
    assert told["b_to_a"] is None
    algorithm = told["a_to_b"]
    assert (algorithm.name, algorithm.source) == (name, "packets")
    assert algorithm.confidence == ("possible" if name == "bbr" else "likely")
    assert f"{LOSSES}" in algorithm.evidence or f"{LOSSES - 1}" in algorithm.evidence
    assert connection.a_to_b.sender_algorithm == name
    # Do not recommend the algorithm already in use.
    [finding] = judged(analysis, "TW307", {"TW307.cost_ns": 1e6, "TW307.share": 0.01})
    advice = " ".join((finding.remedy.text, *finding.remedy.settings)).lower()
    assert ("bbr" in advice) is (name != "bbr")


def test_a_snapshot_says_it_for_certain(tmp_path: Path) -> None:
    story = saw(reno)
    bare = story.analyze(tmp_path)
    [connection] = bare.connections
    said = ss(str(connection.a), str(connection.b), times=(connection.start_ns / 1e9 + 1,)).replace("cubic", "vegas")
    analysis = story.analyze(tmp_path, snapshots={"ss_sender.txt": said})
    told = algorithms_of(analysis.connections[0])["a_to_b"]
    assert told == Algorithm("vegas", "certain", "ss", "a snapshot of its socket names it")
    document = io.StringIO()
    analysis.write_json(document)
    assert json.loads(document.getvalue())["connections"][0]["algorithm"] == {
        "a_to_b": {
            "name": "vegas",
            "confidence": "certain",
            "source": "ss",
            "evidence": "a snapshot of its socket names it",
        },
        "b_to_a": None,
    }


def test_several_connections_are_recognised_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = saw(cubic).analyze(tmp_path)
    [alone] = describe_judged(analysis)
    monkeypatch.setattr("tcpwin.limits.verdict_document.FEW", 0)
    [together] = describe_judged(analysis)
    assert alone["algorithm"]["a_to_b"]["name"] == "cubic"
    assert together["algorithm"] == alone["algorithm"]


@pytest.mark.parametrize(
    ("run", "name"),
    [
        ("loss1_cubic_sack1", "cubic"),
        ("loss1_reno_sack0", "reno"),
        # Out-of-order data reported by SACK counts as in flight and looks like a probe that falls back.
        ("loss1_reorder_cubic_sack1", "cubic"),
    ],
)
def test_agrees_with_the_kernel_in_lab_runs(run: str, name: str) -> None:
    folder = LAB_RUNS / run
    assert f" {name} " in (folder / "ss_snd.txt").read_text(encoding="utf8")
    sent = tcpwin.analyze(folder / "snd.pcap.gz")
    assert name in {each.sender_algorithm for each in (sent.connections[0].a_to_b, sent.connections[0].b_to_a)}
    # Behind the path's queue, the flight is not the window.
    received = tcpwin.analyze(folder / "rcv.pcap.gz").connections[0]
    assert {received.a_to_b.sender_algorithm, received.b_to_a.sender_algorithm} == {None}
