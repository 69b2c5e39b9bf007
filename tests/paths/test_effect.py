"""A change between two captures: what was promised, what came of it, and what else may be the cause."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcpwin
from tcpwin.paths import ChangeError, Effect, WhatIfError, judge_change

CAPTURES = Path(__file__).parents[2] / "captures"
SLOW = CAPTURES / "lab" / "no-window-scaling.pcap.gz"
FAST = CAPTURES / "lab" / "window-scaling.pcap.gz"
RESTARTS = [CAPTURES / "reference" / f"idle-restart-{each}-stock.zip" for each in ("on", "off")]
LARGER = {"receiver.tcp_rmem": "6M"}


def effect(old: Path, new: Path, settings: dict[str, str], **options: object) -> Effect:
    return judge_change(tcpwin.analyze(old, **options), tcpwin.analyze(new, **options), settings)


def test_a_buffer_cannot_bring_what_window_scaling_brought() -> None:
    """Without the option in the SYNs the window stays within 65,535 bytes: the second capture has scaling on."""
    found = effect(SLOW, FAST, LARGER)
    assert found.verdict == "more than predicted"
    assert found.doubts[0] == "window scaling was off before and on after"
    assert (found.quantity, found.refused) == ("goodput_bps", None)
    assert (found.old_limit, found.new_limit) == ("receiver_window", "congestion_control")
    assert found.text.startswith("With receiver.tcp_rmem=6M, no change from 6.03 Mbit/s was predicted; ")
    assert found.text.endswith(
        "it carries 84.9 Mbit/s: more than predicted. "
        "Now limited by the server's congestion window (74 % of the time, likely)."
    )
    assert effect(FAST, SLOW, LARGER).doubts[0] == "window scaling was on before and off after"


@pytest.mark.parametrize(
    ("old", "new", "verdict"), [(SLOW, SLOW, "no effect"), (FAST, SLOW, "worse"), (FAST, FAST, "no effect")]
)
def test_a_change_without_a_gain(old: Path, new: Path, verdict: str) -> None:
    found = effect(old, new, LARGER)
    assert found.verdict == verdict
    assert verdict in found.text


def test_a_gain_that_was_promised_and_did_not_come_is_no_effect() -> None:
    narrow = CAPTURES / "runs" / "rmem_64k_196ms" / "snd.pcap.gz"
    found = effect(narrow, narrow, {"receiver.tcp_rmem": "1M"})
    assert found.predicted is not None
    assert found.predicted.likely > 3 * found.old
    assert (found.verdict, found.doubts) == ("no effect", ())
    assert "; it still carries 1.26 Mbit/s: no effect." in found.text


def test_another_setting_that_changed_is_named(tmp_path: Path) -> None:
    sides = []
    for capture, size in ((SLOW, 65536), (FAST, 1048576)):
        file = tmp_path / f"{capture.name}.txt"
        file.write_text(f"net.ipv4.tcp_wmem = 4096 16384 {size}\n")
        sides.append(tcpwin.analyze(capture, snapshots=[("server", str(file))]))
    assert "tcp_wmem of the sender changed, too, from 65.5 kB to 1.05 MB" in judge_change(*sides, LARGER).doubts


def test_paced_messages_are_judged_by_their_delay() -> None:
    """The lab's receiving program measured 271.1 ms with restarts after idle and 92.3 ms without, at the same rate."""
    found = effect(*RESTARTS, {"sender.tcp_slow_start_after_idle": "0"}, capture="sender.pcap.gz")
    assert (found.quantity, found.verdict) == ("message_delay_p95_ns", "as predicted")
    assert found.predicted is not None
    assert found.predicted.likely == pytest.approx(92.3e6, rel=0.02)
    assert found.new == pytest.approx(92.3e6, rel=0.02)


def test_other_causes_are_named() -> None:
    """The second transfer has five times the data, and another round trip."""
    found = effect(
        CAPTURES / "runs" / "rmem_64k_196ms" / "snd.pcap.gz",
        CAPTURES / "runs" / "rmem_1024k_196ms" / "snd.pcap.gz",
        {"receiver.tcp_rmem": "1M"},
    )
    assert found.verdict == "more than predicted"
    assert found.doubts == (
        "it carried 3 MB before and 15 MB after, and slow start is a smaller part of the larger transfer",
    )
    lossy = CAPTURES / "runs" / "loss1_cubic_sack1" / "snd.pcap.gz"
    doubts = effect(SLOW, lossy, LARGER).doubts
    assert "the path's round trip was 85 ms before and 50 ms after" in doubts
    assert "the path lost 0 % of the segments before and 1 % after" in doubts
    assert doubts[-1].startswith("the path carried ")


@pytest.mark.parametrize(
    ("before", "after", "doubt"),
    [
        ("6291456", "6291456", "the client's snapshot before the change already has tcp_rmem at 6.29 MB"),
        ("65536", "65536", "the client's snapshot after the change has tcp_rmem at 65.5 kB, not 6.29 MB"),
        ("65536", "6291456", None),
        (None, "6291456", None),
        ("65536", None, None),
    ],
)
def test_a_change_that_was_not_made_is_found_in_the_snapshots(
    tmp_path: Path, before: str | None, after: str | None, doubt: str | None
) -> None:
    sides = []
    for capture, size in ((SLOW, before), (FAST, after)):
        file = tmp_path / f"{capture.name}.txt"
        file.write_text(f"net.ipv4.tcp_rmem = 4096 65536 {size}\n")
        given = {} if size is None else {"snapshots": [("client", str(file))]}
        sides.append(tcpwin.analyze(capture, **given))
    doubts = judge_change(*sides, LARGER).doubts
    assert [each for each in doubts if "snapshot" in each] == ([] if doubt is None else [doubt])


def test_nothing_is_promised_where_the_capture_shows_too_little() -> None:
    slow_reader = CAPTURES / "lab" / "slow-reader.pcap.gz"
    found = effect(slow_reader, slow_reader, {"sender.tcp_wmem": "4M"})
    assert found.verdict == "no effect"
    short = CAPTURES / "lab" / "zero-window-stall.pcap.gz"
    with pytest.raises(WhatIfError, match=r"no connection of .* is in"):
        effect(CAPTURES / "wild" / "keep-alive.pcap", short, LARGER)


def test_what_was_changed_must_be_said() -> None:
    with pytest.raises(ChangeError, match="name what was changed"):
        effect(SLOW, FAST, {})
    with pytest.raises(ChangeError, match="'tcp_mem' is not modelled"):
        effect(SLOW, FAST, {"receiver.tcp_mem": "1"})
    slow = tcpwin.analyze(SLOW)
    with pytest.raises(ChangeError, match="not one of each"):
        judge_change(slow.connections[0], slow, LARGER)
    fast = tcpwin.analyze(FAST)
    assert judge_change(slow.connections[0], fast.connections[0], LARGER) == judge_change(slow, fast, LARGER)
