"""TW209 receive-queue-collapsed: counters that grew enough, too little, and on a host with several connections."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, judged
from stories.window_stories import full, one, rounds, sample, scaled

SS = sample("b", 0.1, "wscale:7,7 rto:240 rtt:40/1 mss:1460 cwnd:10")
HEAD = "t,PruneCalled,TCPRcvCollapsed,TCPRcvQDrop,TCPOFODrop,RcvPruned,OfoPruned\n"


def transfer(size: int = 100_000) -> Story:
    """a sends this much data, and b acknowledges it."""
    story = Story().handshake(options=scaled(7), scaled=(502, 2_000))
    return rounds(story, 1, full(size)).close()


def counters(*rows: tuple[int, ...]) -> str:
    """Counts since boot, a second apart."""
    return HEAD + "".join(f"{1_600_000_000 + number}.0,{','.join(map(str, row))}\n" for number, row in enumerate(rows))


def test_fires_on_five_calls(tmp_path: Path) -> None:
    told = {"ss_b.txt": SS, "nstat_b.csv": counters((7, 100, 0, 0, 0, 0), (10, 600, 0, 0, 0, 0), (12, 900, 0, 0, 0, 0))}
    finding = one(transfer().analyze(tmp_path, snapshots=told), "TW209")
    assert (finding.connection, finding.direction, finding.side) == (0, "a_to_b", "server")
    # The counters are the host's, and likely caused by this connection.
    assert (finding.owner, finding.confidence, finding.cost_ns) == ("server_host", "likely", 0)
    assert finding.evidence.values == {"host": "b", "TcpExtPruneCalled": 5, "TcpExtTCPRcvCollapsed": 800}
    # Half of 6 MiB is window; -2 needs four times as much memory.
    assert finding.remedy.settings == (
        "sysctl -w net.ipv4.tcp_adv_win_scale=-2",
        'sysctl -w net.ipv4.tcp_rmem="4096 131072 12582912"',
    )


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Only four calls.
    told = {"ss_b.txt": SS, "nstat_b.csv": counters((7, 100, 0, 0, 0, 0), (11, 1_099, 0, 0, 0, 0))}
    analysis = transfer().analyze(tmp_path, snapshots=told)
    assert not judged(analysis, "TW209")
    assert judged(analysis, "TW209", {"TW209.prunes": 4})
    assert judged(analysis, "TW209", {"TW209.collapsed": 999})
    # Counts from before the capture.
    told = {"ss_b.txt": SS, "nstat_b.csv": counters((70, 9_000, 0, 0, 0, 0), (70, 9_000, 0, 0, 0, 0))}
    assert not judged(transfer().analyze(tmp_path, snapshots=told), "TW209")


def test_names_the_host_alone_where_no_connection_brought_it_much(tmp_path: Path) -> None:
    told = {"ss_b.txt": SS, "nstat_b.csv": counters((0, 0, 0, 0, 0, 0), (9, 9_000, 0, 0, 0, 0))}
    finding = one(transfer(99_999).analyze(tmp_path, snapshots=told), "TW209")
    assert (finding.connection, finding.direction, finding.side, finding.confidence) == (None, None, None, "certain")


def test_from_6_6_on_another_remedy(tmp_path: Path) -> None:
    told = {
        "ss_b.txt": SS,
        "nstat_b.csv": counters((0, 0, 0, 0, 0, 0), (9, 9_000, 0, 0, 0, 0)),
        "sysctl_b.txt": "net.ipv4.tcp_sack = 1\nkernel.osrelease = 6.6.3\n",
    }
    finding = one(transfer().analyze(tmp_path, snapshots=told), "TW209")
    assert finding.remedy.settings == ()
