"""What the report says of each kind of case: whole lines, whose numbers are checked against other sources.

Durations and counts are those of capinfos and of the applications and kernels at both ends (see the TOML beside each
capture); sizes follow from the options and window fields of the packets named.
"""

import re
from pathlib import Path

import pytest
from analysis.bundled import READABLE, TRUTHS, WHOLE, analyze, name_of

import tcpwin
from tcpwin.report import find_held_back, judge, render, render_connection

NOTHING_WRONG = "No connection was seen to be held back by a receive window."
SOUND = "quality  no drops, gaps, duplicates or damage found"


def find(name: str) -> Path:
    return next(path for path in READABLE if path.name == name)


def lines_of(name: str) -> list[str]:
    return render(analyze(find(name))).splitlines()


def the_line(name: str, start: str) -> str:
    [line] = [line for line in lines_of(name) if line.strip().startswith(start)]
    return line.strip()


def kinds(name: str) -> list[str]:
    return [problem.kind for connection in analyze(find(name)) for problem in judge(connection)]


def test_head_of_a_report() -> None:
    lines = lines_of("slow-reader.pcap.gz")
    assert lines[:9] == [
        f"capture  {find('slow-reader.pcap.gz')} (gzip pcap)",
        "         4,586 packets, 4,586 TCP segments, 1 connection, 30.1 s",
        SOUND,
        "",
        "1 connection carried 6 MB of data in 30.1 s. It was limited by a's receive window: 89% of its time (sure). "
        "That is to be",
        "changed by the application on a.",
        "",
        "Held back by a receive window: 1 of 1 connection.",
        "",
    ]
    assert lines[9] == "#0  10.9.2.2:36984 → 10.9.1.1:5201   30.1 s, reset by a"


def test_zero_window() -> None:
    """The receiver's kernel counted 66 zero windows; 6,000,000 bytes were sent and received."""
    assert kinds("slow-reader.pcap.gz") == ["zero_window"]
    line = the_line("slow-reader.pcap.gz", "!")
    assert "a closed it 66 times for 6.1 s in all" in line
    assert line.endswith(". The application on a reads too slowly")
    sent = the_line("slow-reader.pcap.gz", "b → a")
    assert sent.startswith("b → a  6 MB acknowledged at ")
    assert sent.endswith(", 0 retransmissions")
    # Windows of 0 and of 1340 << 7 (171,520): the last column of the rows.
    assert the_line("slow-reader.pcap.gz", "window of a:").startswith("window of a: 0 B to 172 kB, mean ")


def test_one_zero_window_is_singular() -> None:
    """Frame 13,657 announces zero, frame 13,664 the update, 4.143 s later by tshark's times."""
    [episode] = analyze(find("zero-window-stall.pcap.gz")).connections[0].b_to_a.zero_window_episodes
    assert 4.135e9 <= episode.duration_ns < 4.145e9
    assert "a closed it 1 time for 4.14 s in all, 4.14 s at the longest." in the_line("zero-window-stall.pcap.gz", "!")


def test_lost_window_update() -> None:
    """At the sender only a probe's answer shows the window open; at the receiver the update was seen to leave."""
    assert kinds("lost-window-update.pcap.gz") == ["zero_window"]
    line = the_line("lost-window-update.pcap.gz", "!")
    assert line.endswith(". Only a probe's answer showed it open again: the window update was lost or never sent")
    line = the_line("lost-window-update-receiver.pcap.gz", "!")
    assert line.endswith(". The application on b reads too slowly")


def test_scaling_disabled() -> None:
    """Neither SYN carries the option: 65,535 bytes per 85 ms are 65,535 × 8 / 0.085 = 6.17 Mbit/s."""
    assert kinds("no-window-scaling.pcap.gz") == ["scaling_disabled"]
    line = the_line("no-window-scaling.pcap.gz", "!")
    assert line.startswith("! a's receive window, at most 65.5 kB, held b back for ")
    assert "Over 85 ms it allows 6.17 Mbit/s." in line
    assert line.endswith(". Neither SYN has a window scale option: 65,535 bytes at most")
    assert the_line("no-window-scaling.pcap.gz", "window of a:").endswith("shift 0 (disabled)")


def test_limited() -> None:
    """32,120 bytes are the most that 8030 << 2 announces; × 8 / 0.196 s = 1.31 Mbit/s."""
    name = "receive-buffer-64k.pcap.gz"
    assert kinds(name) == ["limited"]
    direction = analyze(find(name)).connections[0].b_to_a
    assert direction.receive_window_max_bytes == max(
        row["window_raw"] << 2
        for row in analyze(find(name)).segments().rows()
        if row["direction"] == "a" and not row["flags"] & 0x02
    )
    line = the_line(name, "!")
    assert line.startswith("! a's receive window, at most 32.1 kB, held b back for ")
    assert line.endswith("% of its life. Over 196 ms it allows 1.31 Mbit/s")


def test_near_the_receiver() -> None:
    name = "receive-buffer-64k-receiver.pcap.gz"
    assert kinds(name) == ["limited"]
    assert the_line(name, "in flight:").endswith(", as seen near the receiver: more at the sender")
    assert the_line("receive-buffer-64k.pcap.gz", "in flight:").count("near the receiver") == 0


def test_unknown_scale() -> None:
    """353,312 bytes in flight against a field of 12,893: 12,893 << 4 is 206,288 and too little, << 5 is enough."""
    assert 12_893 << 4 < 353_312 <= 12_893 << 5
    lines = lines_of("mid-connection.pcap.gz")
    assert f"{NOTHING_WRONG} The windows of 1 connection below are not known in bytes." in lines
    [head] = [line for line in lines if line.startswith("#")]
    assert head.endswith(", open   (who initiated is guessed)")
    assert the_line("mid-connection.pcap.gz", "window of a:") == (
        "window of a: not known in bytes, shift 5 to 14 (unknown): "
        "frame 3: 353312 bytes in flight against a window field of 12893: shift at least 5"
    )


def test_nothing_wrong() -> None:
    lines = lines_of("keep-alive.pcap")
    assert SOUND in lines
    assert NOTHING_WRONG in lines
    assert "    a → b  5 B acknowledged at 7 bit/s, 0 retransmissions" in lines
    # 65,483 in the SYN/ACK and 64 << 10 = 65,536 after it print alike: no change to speak of.
    assert any(line.startswith("           window of b: 65.5 kB throughout, shift 10 (known)") for line in lines)
    assert not any(line.strip().startswith("!") for line in lines)


def test_no_tcp_at_all() -> None:
    lines = lines_of("only-a-header.pcap")
    assert lines[1] == "         0 packets, 0 TCP segments, 0 connections, 0 s"
    assert lines[-1] == "No TCP connection in this capture."


def test_sixty_five_connections() -> None:
    lines = lines_of("many-short.pcap.gz")
    assert lines[1] == "         747 packets, 747 TCP segments, 65 connections, 448 ms"
    assert lines[-1] == "55 more connections not shown: --limit N shows more, --json all."
    assert sum(line.startswith("#") for line in lines) == 10
    # The first three in full, the others in a line a direction.
    assert sum("in flight:" in line for line in lines) == 6


def test_quality_is_told() -> None:
    lines = lines_of("forwarded-any.pcap.zst")
    assert "quality  411 segments captured twice, counted once" in lines
    assert "quality  666 segments larger than the MSS: captured on a host with offload" in lines_of(
        "offload-big-frames.pcap.gz"
    )
    [line] = [line for line in lines_of("cut-block.pcapng") if line.startswith("quality")]
    assert line.startswith("quality  damaged: the file ends inside a pcapng block")
    assert line.endswith("(at byte 596)")


def dead_window_ladder() -> str:
    """b closes its window one second in and never opens it; a probes, b answers with zero, a is silent at the end."""
    return """
A window that never opens again.
    0.000000 a > b S  seq 0 win 64240 <mss 1460,ws 7>
    0.010000 b > a SA seq 0 ack 1 win 64240 <mss 1460,ws 7>
    0.020000 a > b A  seq 1 ack 1 win 502
    0.030000 a > b PA seq 1 ack 1 len 1000
    0.040000 b > a A  seq 1 ack 1001 win 0
    1.040000 a > b A  seq 1000 ack 1
    1.050000 b > a A  seq 1 ack 1001 win 0
    3.040000 a > b A  seq 1000 ack 1
    3.050000 b > a A  seq 1 ack 1001 win 0
"""


def test_dead_zero_window(tmp_path: Path) -> None:
    import ladder

    path = tmp_path / "dead.pcap"
    ladder.parse(dead_window_ladder(), "dead").write_pcap(path)
    analysis = tcpwin.analyze(path)
    [connection] = analysis
    [problem] = judge(connection)
    assert (problem.kind, problem.sender, problem.receiver) == ("dead_zero_window", "a", "b")
    # Closed from 0.04 s to the end at 3.05 s.
    assert problem.cost_ns == 3_010_000_000
    assert problem.share == pytest.approx(3.01 / 3.05)
    text = render(analysis)
    assert (
        "    ! b's receive window held a back for 99% of its life: b closed it 1 time for 3.01 s in all, "
        "3.01 s at the longest; the last time it never opened again"
    ) in text.splitlines()
    assert "Held back by a receive window: 1 of 1 connection." in text


def costs_ladder(port: int, *, closed_s: float, life_s: float) -> str:
    return f"""
Closed for a while in the middle of a life.
    port a {port}
    0.000000 a > b S  seq 0 win 64240 <mss 1460,ws 7>
    0.010000 b > a SA seq 0 ack 1 win 64240 <mss 1460,ws 7>
    0.020000 a > b A  seq 1 ack 1 win 502
    0.030000 a > b PA seq 1 ack 1 len 1000
    0.040000 b > a A  seq 1 ack 1001 win 0
    0.250000 a > b A  seq 1000 ack 1
    {0.04 + closed_s:.6f} b > a A  seq 1 ack 1001 win 502
    {life_s:.6f} a > b PA seq 1001 ack 1 len 10
"""


def test_a_dear_connection_without_a_problem_hides_none_with_one(tmp_path: Path) -> None:
    """One lost 5 s of 1000 s, too little of its life to matter; the other 1 s of 1.2 s."""
    import ladder

    paths = []
    for port, closed_s, life_s in ((40001, 5.0, 1000.0), (40002, 1.0, 1.2)):
        path = tmp_path / f"{port}.pcap"
        ladder.parse(costs_ladder(port, closed_s=closed_s, life_s=life_s), str(port)).write_pcap(path)
        paths.append(path)
    analysis = tcpwin.analyze(paths)
    assert [connection.a.port for connection in analysis.worst(2)] == [40001, 40002]
    assert [analysis.connections[id].a.port for id in find_held_back(analysis)] == [40002]
    for limit in (0, 1, 2):
        assert "Held back by a receive window: 1 of 2 connections." in render(analysis, limit=limit)


@pytest.mark.parametrize("path", WHOLE, ids=name_of)
def test_every_connection_can_be_told_in_full(path: Path) -> None:
    for connection in analyze(path).worst(3):
        text = render_connection(connection)
        assert text.startswith(f"#{connection.id}  {connection.a} → {connection.b}   ")
        assert "None" not in text
        assert "nan" not in text
        episodes = connection.a_to_b.zero_window_episode_count + connection.b_to_a.zero_window_episode_count
        assert ("window closed at" in text) == bool(episodes)


@pytest.mark.parametrize("path", READABLE, ids=name_of)
def test_no_report_tells_of_a_missing_value(path: Path) -> None:
    text = render(analyze(path), limit=100)
    for word in ("None", "nan", "inf", "unknown at", "no rate"):
        assert not re.search(rf"\b{word}\b", text.replace(str(path), ""))
    assert f"{TRUTHS[path]['packets']:,} packet" in text
    assert all(line == line.rstrip() for line in text.splitlines())
