"""TW212 receive-memory-overhead: memory per byte of payload above and below the scale's assumption."""

from __future__ import annotations

from pathlib import Path

import pytest
from reference import LAB_RUNS
from stories.story import Story, blame, judged
from stories.window_stories import full, one, rounds, sample, scaled

import tcpwin

SETTINGS = (
    "net.ipv4.tcp_adv_win_scale = 2\nnet.ipv4.tcp_rmem = 4096 131072 6291456\nkernel.osrelease = {}\n"
    "net.ipv4.tcp_sack = 1\n"
)


def transfer() -> Story:
    """a sends 100,000 bytes, and b acknowledges them."""
    story = Story().handshake(options=scaled(7), scaled=(502, 2_000))
    return rounds(story, 1, full(100_000)).close()


def told(overheads: list[float], *, release: str = "6.1.0", unread: int = 100_000) -> dict[str, str]:
    """Samples of b's socket with these overheads and a buffer of 200,000 bytes, and its settings."""
    ss = "".join(
        sample(
            "b",
            0.01 * (number + 1),
            "wscale:7,7 rto:240 rtt:40/1 mss:1460 cwnd:10",
            recv_q=unread,
            skmem=f"r{round(unread * overhead)},rb200000,t0,tb87040,f0,w0,o0,bl0,d0",
        )
        for number, overhead in enumerate(overheads)
    )
    return {"ss_b.txt": ss, "sysctl_b.txt": SETTINGS.format(release)}


def test_fires_on_1_47_where_1_33_are_reckoned_with(tmp_path: Path) -> None:
    finding = one(transfer().analyze(tmp_path, snapshots=told([1.2, 1.47, 1.6])), "TW212")
    assert blame(finding) == ("a_to_b", "server", "server_host", "certain")
    assert finding.cost_ns == 0
    # A scale of 2: the window is three quarters of the buffer.
    assert finding.evidence.values == {
        "measured_overhead": 1.47,
        "assumed_overhead": 1.33,
        "samples": 3,
        "rcvbuf_bytes": 200_000,
    }
    # Three quarters of 6 MiB are window; with 2 bytes per byte it needs 9 MiB.
    assert finding.remedy.settings == (
        "sysctl -w net.ipv4.tcp_adv_win_scale=1",
        'sysctl -w net.ipv4.tcp_rmem="4096 131072 9437184"',
    )


def test_above_2_bytes_the_scale_of_cloudflare(tmp_path: Path) -> None:
    finding = one(transfer().analyze(tmp_path, snapshots=told([2.1, 2.1, 2.1], unread=90_000)), "TW212")
    assert finding.remedy.settings[0] == "sysctl -w net.ipv4.tcp_adv_win_scale=-2"


@pytest.mark.parametrize(
    ("overheads", "release", "unread"),
    [
        # 1.05 x 1.333 are 1.4.
        ([1.39, 1.39, 1.39], "6.1.0", 100_000),
        # A hole for a moment.
        ([1.2, 1.2, 3.0], "6.1.0", 100_000),
        # The kernel measures the overhead.
        ([1.47, 1.47, 1.47], "6.6.0", 100_000),
        # Too few samples, each with too little data.
        ([1.47, 1.47], "6.1.0", 100_000),
        ([1.8, 1.8, 1.8], "6.1.0", 65_000),
    ],
)
def test_does_not_fire(tmp_path: Path, overheads: list[float], release: str, unread: int) -> None:
    snapshots = told(overheads, release=release, unread=unread)
    assert not judged(transfer().analyze(tmp_path, snapshots=snapshots), "TW212")


def test_does_not_fire_where_the_kernel_is_not_known(tmp_path: Path) -> None:
    snapshots = told([1.47, 1.47, 1.47])
    del snapshots["sysctl_b.txt"]
    assert not judged(transfer().analyze(tmp_path, snapshots=snapshots), "TW212")


@pytest.mark.parametrize(("scenario", "measured"), [("oscil_10mbit_300ms_170p2_guard", 1.49), ("slow_reader", None)])
def test_the_labs_runs(tmp_path: Path, scenario: str, measured: float | None) -> None:
    # The first run charges 3,328 bytes per frame; plain veth takes 1.07 per byte of payload.
    folder = LAB_RUNS / scenario
    settings = tmp_path / "sysctl_rcv.txt"
    settings.write_text(SETTINGS.format("6.1.192"), encoding="ascii")
    analysis = tcpwin.analyze(folder / "rcv.pcap.gz", snapshots=[folder / "ss_rcv.txt", settings])
    found = judged(analysis, "TW212")
    assert [each.evidence.values["measured_overhead"] for each in found] == ([] if measured is None else [measured])
