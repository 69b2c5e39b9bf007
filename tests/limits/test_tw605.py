"""TW605 capture-cut-short: a damaged file, truncated options, and truncated payload, which does not matter."""

from __future__ import annotations

import pytest
from stories.parts import CAPTURES
from stories.story import judged

import tcpwin


def test_fires_on_a_damaged_file() -> None:
    [finding] = judged(tcpwin.analyze(CAPTURES / "broken" / "cut.pcap.gz"), "TW605")
    assert (finding.connection, finding.owner, finding.confidence, finding.cost_ns) == (None, "nobody", "certain", 0)
    assert finding.evidence.frames == (3,)
    assert finding.evidence.values == {"byte_offset": 282, "packets": 3, "damages": 1, "weakens": "TW5"}


def test_fires_on_cut_options() -> None:
    [finding] = judged(tcpwin.analyze(CAPTURES / "broken" / "options-cut-by-snaplen.pcap"), "TW605")
    assert (finding.connection, finding.owner, finding.confidence) == (None, "nobody", "certain")
    assert finding.evidence.values == {"options_cut": 2, "header_cut": 0, "segments": 6, "weakens": "TW1, TW2, TW3"}


@pytest.mark.parametrize("name", ["lab/window-scaling.pcap.gz", "wild/aborted-by-reader.pcapng"])
def test_does_not_fire_on_cut_payload(name: str) -> None:
    analysis = tcpwin.analyze(CAPTURES / name)
    assert analysis.capture.packets_snapped > 0
    assert not judged(analysis, "TW605")


def test_does_not_fire_on_an_odd_option_of_the_file() -> None:
    analysis = tcpwin.analyze(CAPTURES / "broken" / "option-overruns-its-block.pcapng")
    assert [warning.kind for warning in analysis.capture.warnings] == ["option_overrun"]
    assert not judged(analysis, "TW605")


def test_threshold_can_be_set() -> None:
    analysis = tcpwin.analyze(CAPTURES / "broken" / "options-cut-by-snaplen.pcap")
    assert not judged(analysis, "TW605", {"TW605.segments": 3})
