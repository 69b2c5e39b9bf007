"""TW307 loss-limits-rate: the lab's run with 1 % loss, a relay that drops, and similar-looking captures."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import pytest
from reference import LAB_RUNS
from stories.hostsaid import ss
from stories.story import blame, judged

import tcpwin
from tcpwin.limits.rules.loss_limits_rate import mathis_rate_bps

ROOT = Path(__file__).resolve().parents[2]
LOSSY = ROOT / "captures" / "lab" / "loss-1-percent.pcap.gz"


def test_fires_on_one_per_cent_of_loss() -> None:
    [finding] = judged(tcpwin.analyze(LOSSY), "TW307")
    assert blame(finding) == ("b_to_a", None, "network", "certain")
    # The sender's kernel: RetransSegs 59, TCPSackRecovery 48. The lab without the loss: 22.8 s sooner, of which 2.65 s
    # are recovery and the rest the smaller window after it.
    assert finding.items_ns["fast_recovery"] == 2_650_002_000
    assert finding.cost_ns == pytest.approx(22_800_000_000, rel=0.01)
    # Original and retransmission, as in tests/scenarios and `tcpwin packets`.
    assert finding.evidence.frames[:4] == (60, 127, 262, 336)
    values = dict(finding.evidence.values)
    # MSS 1448, smoothed round trip 55.245 ms, 48 recoveries in 5,584 segments.
    assert values.pop("mathis_bps") == round(1448 * 8 / 0.055245 * sqrt(1.5 / (48 / 5584)))
    assert values == {
        "resent_segments": 59,
        "data_segments": 5584,
        "recoveries": 48,
        "recovery_ns": 2_650_002_000,
        "goodput_bps": 2_670_177,
    }


def test_fires_on_a_relay_that_drops() -> None:
    for name, confidence in (("lossy-path.pcapng.gz", "certain"), ("lossy-path-receiver.pcap.gz", "likely")):
        [finding] = judged(tcpwin.analyze(ROOT / "captures" / "wild" / name), "TW307")
        assert (finding.direction, finding.owner, finding.confidence) == ("a_to_b", "network", confidence)
        assert finding.evidence.values["resent_segments"] == 12


def test_thresholds_can_be_set() -> None:
    """Its recovery share is 11.1 %."""
    analysis = tcpwin.analyze(LOSSY)
    assert not judged(analysis, "TW307", {"TW307.share": 0.112})
    assert not judged(analysis, "TW307", {"TW307.recoveries": 49})
    assert not judged(analysis, "TW307", {"TW307.cost_ns": 2.7e9})


def test_does_not_fire_on_apparent_loss() -> None:
    for name in ("wild/iperf3-loopback.pcap.lz4", "wild/lost-window-update.pcap.gz", "lab/slow-reader.pcap.gz"):
        assert not judged(tcpwin.analyze(ROOT / "captures" / name), "TW307")


def test_blames_a_receiver_that_refuses_what_arrives() -> None:
    """Nothing was lost on this path (tc): the receiver's kernel refused segments near the edge of its window."""
    folder = LAB_RUNS / "oscil_10mbit_300ms_170p2_guard"
    [beside_receiver] = judged(tcpwin.analyze(folder / "rcv.pcap.gz"), "TW307")
    assert (beside_receiver.owner, beside_receiver.side, beside_receiver.confidence) == (
        "client_host",
        "client",
        "likely",
    )
    [beside_sender] = judged(tcpwin.analyze(folder / "snd.pcap.gz"), "TW307")
    assert (beside_sender.owner, beside_sender.confidence) == ("client_host", "likely")
    assert "at the client, which ran out of memory" in beside_sender.text


def counted(folder: Path, text: str) -> Path:
    path = folder / "rcv-nstat.txt"
    path.write_text(
        f"### 1795226519.000\n#kernel\nIpInReceives 10 0.0\nTcpExtPAWSEstab 0 0.0\nTcpExtTCPRcvQDrop 0 0.0\n"
        f"### 1795226545.000\n#kernel\nIpInReceives 90 0.0\n{text}\n",
        encoding="ascii",
    )
    return path


@pytest.mark.parametrize(
    ("counters", "owner", "confidence"),
    [
        ("TcpExtPAWSEstab 0 0.0\nTcpExtTCPRcvQDrop 59 0.0", "client_host", "likely"),
        ("TcpExtPAWSEstab 30 0.0\nTcpExtTCPRcvQDrop 0 0.0", "network", "likely"),
        ("TcpExtPAWSEstab 6 0.0\nTcpExtTCPRcvQDrop 0 0.0", "network", "likely"),
        ("TcpExtPAWSEstab 5 0.0\nTcpExtTCPRcvQDrop 0 0.0", "network", "certain"),
    ],
)
def test_the_receivers_counters_decide(tmp_path: Path, counters: str, owner: str, confidence: str) -> None:
    """59 segments were retransmitted; if a tenth were discarded as too old, the path reorders."""
    ss = ROOT / "tests" / "lab" / "truth" / "loss1_cubic_sack1" / "ss_rcv.txt"
    analysis = tcpwin.analyze(LOSSY, snapshots=[("rcv", ss), ("rcv", counted(tmp_path, counters))])
    [finding] = judged(analysis, "TW307")
    assert (finding.owner, finding.confidence) == (owner, confidence)


@pytest.mark.parametrize(("rtt_ns", "loss"), [(0, 0.01), (50_000_000, 0.0)])
def test_no_rate_without_a_round_trip_or_loss(rtt_ns: int, loss: float) -> None:
    assert mathis_rate_bps(1448, rtt_ns, loss) == 0.0


def test_time_that_timers_waited_is_not_counted_again(reference_captures: Path) -> None:
    """The last segment was not acknowledged before the reset: by the budget 1,752 ms are fast recovery alone."""
    [capture] = (reference_captures / "real").rglob("tests__Traces__tcp__forwardacknowledgement__fack018.trace")
    analysis = tcpwin.analyze(capture)
    budget = analysis.connections[0].budget["b_to_a"]
    [finding] = judged(analysis, "TW307")
    assert finding.items_ns["fast_recovery"] == budget.items_ns["fast_recovery"]
    assert finding.items_ns["fast_recovery"] < analysis.connections[0].b_to_a.recovery_ns
    waits = [each.cost_ns for code in ("TW301", "TW302", "TW506") for each in judged(analysis, code)]
    assert len(waits) == 1
    spent_ns = budget.groups_ns["loss"] + budget.groups_ns["silent peer"]
    assert finding.cost_ns + sum(waits) <= spent_ns


def test_recommends_no_algorithm_that_is_in_use(tmp_path: Path) -> None:
    """The lab's sender, with a sample of its socket that names the algorithm."""
    bare = tcpwin.analyze(LOSSY)
    connection = bare.connections[0]
    for algorithm, is_recommended in (("cubic", True), ("bbr", False)):
        time = connection.start_ns / 1e9 + 1
        text = ss(str(connection.b), str(connection.a), times=(time,)).replace("cubic", algorithm)
        (tmp_path / "ss_sender.txt").write_text(text, encoding="utf8")
        [finding] = judged(tcpwin.analyze(LOSSY, snapshots=[tmp_path / "ss_sender.txt"]), "TW307")
        told = " ".join((finding.remedy.text, *finding.remedy.settings)).lower()
        assert ("bbr" in told) is is_recommended
