"""TW608 clocks-disagree: samples that contradict the packets, a clock that is seconds off, and a matching one."""

from __future__ import annotations

from pathlib import Path

from stories.hostsaid import A, B, ss
from stories.parts import CAPTURES, SYNS
from stories.story import Story, judged

import tcpwin
from tcpwin.limits import Severity

SECOND = 1_000_000_000
START = 1_600_000_000


def transfer() -> Story:
    """Every 100 ms a segment of a, acknowledged after 40 ms; the first at 0.04 s, a hundred in all."""
    story = Story().handshake(options=SYNS)
    for _ in range(100):
        story.data("a")
        story.wait(0.04).ack("b")
        story.wait(0.06)
    return story


def samples(shift: float, *, wrong: bool = False) -> str:
    """Return sent and acknowledged bytes of a's socket every 200 ms, by a clock that is `shift` seconds behind."""
    texts = []
    for number in range(2, 98, 2):
        # 90 ms after segment `number` was sent, it and all earlier ones had been acknowledged.
        time = START + 0.04 + 0.1 * number + 0.09 - shift
        # The wrong samples have the byte counts of times that jump back and forth by seconds.
        count = (number * 37 % 97 if wrong else number) + 1
        texts.append(ss(A, B, f"bytes_sent:{1460 * count} bytes_acked:{1460 * count + 1}", times=(time,)))
    return "".join(texts)


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # The same clock.
    analysis = transfer().analyze(tmp_path, snapshots={"ss_client.txt": samples(0.0)})
    assert analysis.hosts[0].clock.method == "same_clock"
    assert not judged(analysis, "TW608")
    # A clock that is slightly off.
    analysis = transfer().analyze(tmp_path, snapshots={"ss_client.txt": samples(0.5)})
    assert analysis.hosts[0].clock.method == "estimated"
    assert not judged(analysis, "TW608")
    assert judged(analysis, "TW608", {"TW608.offset_ns": 0.3 * SECOND})
    # The lab's runs.
    assert not judged(tcpwin.analyze(CAPTURES / "bundles" / "slow-reader.zip"), "TW608")


def test_says_that_a_clock_is_seconds_off(tmp_path: Path) -> None:
    analysis = transfer().analyze(tmp_path, snapshots={"ss_client.txt": samples(3.0)})
    [finding] = judged(analysis, "TW608")
    assert (finding.side, finding.owner, finding.confidence) == ("client", "nobody", "certain")
    assert (finding.severity, finding.cost_ns) == (Severity.INFO, 0)
    offset = finding.evidence.values["offset_ns"]
    assert abs(float(offset) - 3 * SECOND) <= 0.1 * SECOND
    assert finding.evidence.values["samples"] == 48
    assert finding.evidence.values["weakens"] == "none"
    assert " behind the capture's" in finding.text


def test_warns_of_bounds_that_are_wide(tmp_path: Path) -> None:
    analysis = transfer().analyze(tmp_path, snapshots={"ss_client.txt": samples(0.5)})
    [finding] = judged(analysis, "TW608", {"TW608.uncertainty_ns": 1e6})
    assert finding.severity == Severity.WARNING
    assert finding.evidence.values["weakens"] == "TW2, TW4"


def test_warns_of_samples_that_contradict_the_packets(tmp_path: Path) -> None:
    analysis = transfer().analyze(tmp_path, snapshots={"ss_client.txt": samples(0.0, wrong=True)})
    [finding] = judged(analysis, "TW608")
    assert (finding.severity, finding.side, finding.confidence) == (Severity.WARNING, "client", "certain")
    assert finding.evidence.values["offset_ns"] == 0
    assert finding.evidence.values["uncertainty_ns"] == "none"
    assert finding.evidence.values["samples"] == 48
