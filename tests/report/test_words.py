"""The report's statements on each kind of case (limit, owner, share, numbers), checked against other sources.

Durations and counts are those of capinfos and of the applications and kernels at both ends (see the TOML next to each
capture); sizes follow from the options and window fields of the packets named.
"""

import re
from pathlib import Path

import pytest
from analysis.bundled import READABLE, TRUTHS, WHOLE, analyze, name_of
from cases import all_cases

import tcpwin
from tcpwin.limits import LIMIT_NAMES, Verdict, roles_of
from tcpwin.render import render, render_connection
from tcpwin.units import share_text, time_text

SOUND = "quality  no drops, gaps, duplicates or damage found"


def find(name: str) -> Path:
    return next(path for path in READABLE if path.name == name)


def lines_of(name: str) -> list[str]:
    return render(analyze(find(name))).splitlines()


def the_line(name: str, start: str) -> str:
    [line] = [line for line in lines_of(name) if line.strip().startswith(start)]
    return line.strip()


def verdict_of(name: str) -> Verdict:
    return analyze(find(name)).connections[0].verdict


def paragraph_of(text: str) -> str:
    """Return the summary, above the first connection."""
    return " ".join(text.split("\n\n")[0].split("\n"))


HEADS = ("Cost: ", "Fix: ", "Evidence: ")


def told(name: str) -> tuple[str, str, str]:
    """Return answer, cost with fix, and evidence of the only connection; "" if missing."""
    return told_in(lines_of(name))


def told_in(lines: list[str]) -> tuple[str, str, str]:
    rest = lines[: lines.index("")]
    cost, fix, evidence = (next((line for line in rest if line.startswith(name)), "") for name in HEADS)
    return f"{rest[0]} {cost} {evidence}", f"{cost} {fix}".strip(), evidence


def test_head_of_a_report() -> None:
    name = "slow-reader.pcap.gz"
    lines = lines_of(name)
    assert lines[-4:] == [
        "",
        f"capture  {find(name)} (gzip pcap)",
        "         4,586 packets, 4,586 TCP segments, 1 connection, 30.1 s",
        SOUND,
    ]
    verdict, paragraph = verdict_of(name), paragraph_of("\n".join(lines))
    assert paragraph.startswith("6 MB in 30.1 s. ")
    for words in (verdict.text, time_text(verdict.named_ns), f"Fix: {verdict.fix}"):
        assert words in paragraph
    assert (
        lines[lines.index("") + 1] == "#0  client 10.9.2.2:36984 → server 10.9.1.1:5201   30.1 s, reset by the client"
    )


def test_the_verdict_is_printed_once_above_the_connection() -> None:
    name = "slow-reader.pcap.gz"
    verdict = verdict_of(name)
    answer, cost, evidence = told(name)
    assert f" {verdict.headline}. " in answer
    assert f"({share_text(verdict.share)} of the time, {verdict.confidence})" in answer
    assert verdict.reason in answer
    assert cost == f"Cost: {verdict.cost_text} Fix: {verdict.fix}"
    assert time_text(verdict.named_ns) in verdict.cost_text
    assert verdict.cost_text.endswith(" 2 s instead of 30.1 s")
    frames = ", ".join(map(str, sorted(verdict.frames)))
    shown = f"({verdict.frames_of}; rule {verdict.code} {verdict.rule})"
    assert evidence == f"Evidence: {verdict.reason}; frame.number in {{{frames}}} {shown}"
    assert not any(line.strip().startswith("!") for line in lines_of(name))


def test_zero_window() -> None:
    """The receiver's kernel counted 66 zero windows; 6,000,000 bytes were sent and received.

    The client reads 40,000 bytes every 200 ms.
    """
    name = "slow-reader.pcap.gz"
    verdict = verdict_of(name)
    assert (verdict.limit, verdict.owner, verdict.side) == ("receiver_application", "client_application", "client")
    assert (verdict.confidence, verdict.is_problem) == ("certain", True)
    assert "66 times" in verdict.reason
    assert "6.1 s" in verdict.reason
    direction = analyze(find(name)).connections[0].b_to_a
    assert (direction.zero_window_episode_count, time_text(direction.zero_window_ns)) == (66, "6.1 s")
    for words in (LIMIT_NAMES[verdict.limit], "the client", "receive window"):
        assert words in told(name)[0]
    sent = the_line(name, "server → client")
    assert sent.startswith("server → client  6 MB acknowledged in 27.3 s (")
    assert sent.endswith(", 0 retransmissions")
    # Windows of 0 and of 1340 << 7 (171,520): the last column of the rows.
    assert the_line(name, "window of the client:").startswith("window of the client: 0 B to 172 kB, mean ")


def test_one_zero_window_is_singular() -> None:
    """Frame 13,657 announces zero, frame 13,664 the update, 4.143 s later by tshark's times."""
    name = "zero-window-stall.pcap.gz"
    [episode] = analyze(find(name)).connections[0].b_to_a.zero_window_episodes
    assert 4.135e9 <= episode.duration_ns < 4.145e9
    answer, _, evidence = told(name)
    assert re.search(r"\b4\.14 s at zero window [^+]*\b1 time\b", answer)
    assert "{13657, 13664}" in evidence
    verdict = verdict_of(name)
    assert (verdict.limit, verdict.owner) == ("receiver_application", "client_application")
    assert verdict.lost_ns >= episode.duration_ns


@pytest.mark.parametrize(
    ("name", "ended"),
    [("lost-window-update.pcap.gz", "probe answer"), ("lost-window-update-receiver.pcap.gz", "update")],
)
def test_lost_window_update(name: str, ended: str) -> None:
    """At the sender only a probe's answer shows the open window; the receiver's capture contains the update.

    The server's application slept for 1.7 s; data waited at least that long, and at most until the next probe.
    """
    verdict = verdict_of(name)
    assert (verdict.limit, verdict.owner, verdict.side) == ("receiver_application", "server_application", "server")
    assert 1.7e9 < verdict.lost_ns < 2.2e9
    [episode] = analyze(find(name)).connections[0].a_to_b.zero_window_episodes
    answer, _, evidence = told(name)
    assert re.search(rf"\b{time_text(episode.duration_ns)} at zero window [^+]*\b1 time\b", answer)
    assert f"{{{episode.start_frame}, {episode.end_frame}}}" in evidence
    [row] = [line for line in render_connection(analyze(find(name)).connections[0]).splitlines() if "… " in line]
    assert row.endswith(f"   {ended}, frames {episode.start_frame} to {episode.end_frame}")


def test_scaling_disabled() -> None:
    """Neither SYN carries the option, frame 1 is the client's; the application measured 6.03 Mbit/s."""
    name = "no-window-scaling.pcap.gz"
    verdict = verdict_of(name)
    assert (verdict.limit, verdict.owner, verdict.side) == ("receiver_window", "client_host", "client")
    assert verdict.confidence == "certain"
    assert verdict.share > 0.9
    answer, cost, evidence = told(name)
    assert "65.5 kB" in answer
    assert "window scale option" in answer
    assert "Fix: " in cost
    assert "{1, " in evidence
    assert analyze(find(name)).connections[0].a_to_b.syn_window_scale is None
    assert the_line(name, "window of the client:").endswith("shift 0 (disabled)")
    assert " at 6.03 Mbit/s, " in the_line(name, "server → client")


def test_limited() -> None:
    """8030 << 2 announces at most 32,120 bytes; × 8 / 0.196 s = 1.31 Mbit/s."""
    name = "receive-buffer-64k.pcap.gz"
    verdict = verdict_of(name)
    assert (verdict.limit, verdict.owner, verdict.side) == ("receiver_window", "client_host", "client")
    assert verdict.confidence == "certain"
    direction = analyze(find(name)).connections[0].b_to_a
    assert direction.receive_window_max_bytes == max(
        row["window_raw"] << 2
        for row in analyze(find(name)).segments().rows()
        if row["direction"] == "a" and not row["flags"] & 0x02
    )
    assert direction.receive_window_max_bytes == 8030 << 2
    answer, _, _ = told(name)
    for number in ("32.1 kB", "196 ms", f"{32_120 * 8 / 0.196 / 1e6:.3g} Mbit/s"):
        assert number in answer


def test_near_the_receiver() -> None:
    """The same transfer at both ends: the same limit and owner, but inferred near the receiver."""
    name = "receive-buffer-64k-receiver.pcap.gz"
    near, sender = verdict_of(name), verdict_of("receive-buffer-64k.pcap.gz")
    assert (near.limit, near.owner) == (sender.limit, sender.owner)
    assert (near.confidence, sender.confidence) == ("likely", "certain")
    # 0.42 s of the first flights look like the send buffer's there, because it is not visible that they filled the
    # window.
    assert near.share == pytest.approx(sender.share, abs=0.04)
    assert ", likely)" in told(name)[0]
    assert the_line(name, "in flight:").endswith(", as seen near the receiver: more at the sender")
    assert the_line("receive-buffer-64k.pcap.gz", "in flight:").count("near the receiver") == 0


def test_unknown_scale() -> None:
    """353,312 bytes in flight with a field of 12,893: 12,893 << 4 is 206,288 and too small, << 5 suffices."""
    name = "mid-connection.pcap.gz"
    assert 12_893 << 4 < 353_312 <= 12_893 << 5
    lines = lines_of(name)
    [head] = [line for line in lines if line.startswith("#")]
    assert head.endswith(", open   (client guessed)")
    assert the_line(name, "window of the receiver:") == (
        "window of the receiver: not known in bytes, any shift from 5 to 14 is possible "
        "(frame 3: 353312 bytes in flight, more than a window field of 12893 allows below shift 5)"
    )
    # The capture's quality gives the reason: it has no SYN. Statements based on windows of unknown size are not
    # certain.
    assert "quality  1 connection without its SYN" in lines
    assert verdict_of(name).confidence != "certain"
    assert not verdict_of(name).limit.startswith("receiver_")


def test_nothing_wrong() -> None:
    """The application slept for 5.5 s of 5.6 s before it answered."""
    name = "keep-alive.pcap"
    lines = lines_of(name)
    assert SOUND in lines
    verdict = verdict_of(name)
    assert (verdict.limit, verdict.is_problem, verdict.fix) == ("sender_application", False, None)
    assert not analyze(find(name)).problems
    assert "Nothing to fix in TCP: limited by the server's application" in paragraph_of("\n".join(lines))
    answer, cost, evidence = told(name)
    assert verdict.headline in answer
    assert (cost, evidence) == ("", f"Evidence: {verdict.reason}")
    assert not any("Fix" in line for line in lines)
    assert "    client → server  5 B acknowledged, 1 segment, 0 retransmissions" in lines
    # 65,483 in the SYN/ACK and 64 << 10 = 65,536 after it print alike: no relevant change.
    assert any(
        line.startswith("           window of the server: 65.5 kB throughout, shift 10 (from the SYNs)")
        for line in lines
    )


def test_no_tcp_at_all() -> None:
    lines = lines_of("only-a-header.pcap")
    assert lines[:2] == ["No TCP connection in this capture.", ""]
    assert lines[3] == "         0 packets, 0 TCP segments, 0 connections, 0 s"


def test_sixty_five_connections() -> None:
    lines = lines_of("many-short.pcap.gz")
    assert lines[-2] == "         747 packets, 747 TCP segments, 65 connections, 448 ms"
    table_end = max(number for number, line in enumerate(lines) if "  127.0.0.1:" in line and line[0] != "#")
    assert lines[table_end + 1] == "55 more connections not shown: --limit N shows more, --json all."
    # The first three in full, and all ten in the table.
    assert sum(line.startswith("#") for line in lines) == 3
    assert sum("  127.0.0.1:" in line and not line.startswith("#") for line in lines) == 10
    assert sum("in flight:" in line for line in lines) == 6


def test_quality_is_shown() -> None:
    lines = lines_of("forwarded-any.pcap.zst")
    assert "quality  411 segments captured twice, counted once" in lines
    assert "quality  666 segments larger than the MSS: offload, or an MSS lowered on the path" in lines_of(
        "offload-big-frames.pcap.gz"
    )
    [line] = [line for line in lines_of("cut-block.pcapng") if line.startswith("quality")]
    assert line.startswith("quality  damaged: the file ends inside a pcapng block")
    assert line.endswith("(at byte 596)")


def dead_window_ladder() -> str:
    """b closes its window after one second and never opens it; a probes, b answers with zero, a is silent at the
    end.
    """
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
    verdict = connection.verdict
    assert (verdict.limit, verdict.side, verdict.direction) == ("receiver_application", "server", "a_to_b")
    # Closed by frame 5, from 0.04 s to the end at 3.05 s.
    assert verdict.cost_ns == verdict.lost_ns == 3_010_000_000
    assert verdict.share == pytest.approx(3.01 / 3.05)
    assert (verdict.code, verdict.frames) == ("TW203", (5,))
    assert analysis.problems == [0]
    answer, cost, evidence = told_in(render(analysis).splitlines())
    assert "(99 % of the time, certain)" in answer
    assert "3.01 s at zero window" in answer
    assert cost.startswith("Cost: about 3.01 s: ")
    assert evidence.endswith("{5} (rule TW203 zero-window-dead)")
    # It never opened again, so the row names no last frame.
    assert any(line.endswith("   open, frame 5") for line in render_connection(connection).splitlines())


def costs_ladder(port: int, *, closed_s: float, life_s: float) -> str:
    return f"""
Closed for a while in the middle of a life.
    port a {port}
    0.000000 a > b S  seq 0 win 64240 <mss 1460,ws 7>
    0.010000 b > a SA seq 0 ack 1 win 64240 <mss 1460,ws 7>
    0.020000 a > b A  seq 1 ack 1 win 502
    0.030000 a > b PA seq 1 ack 1 len 1000
    0.040000 b > a A  seq 1 ack 1001 win 0
    0.200000 a > b A  seq 1000 ack 1
    {0.04 + closed_s:.6f} b > a A  seq 1 ack 1001 win 502
    {life_s:.6f} a > b PA seq 1001 ack 1 len 10
    {life_s + 0.01:.6f} b > a A  seq 1 ack 1011 win 502
"""


def test_a_dear_connection_without_a_problem_hides_none_with_one(tmp_path: Path) -> None:
    """One was idle for 1000 s, with a window closed too briefly to matter; the other lost 1 s of 1.2 s."""
    import ladder

    paths = []
    for port, closed_s, life_s in ((40001, 0.19, 1000.0), (40002, 1.0, 1.2)):
        path = tmp_path / f"{port}.pcap"
        ladder.parse(costs_ladder(port, closed_s=closed_s, life_s=life_s), str(port)).write_pcap(path)
        paths.append(path)
    analysis = tcpwin.analyze(paths)
    by_port = {connection.a.port: connection.verdict for connection in analysis}
    assert by_port[40001].cost_ns > 100 * by_port[40002].cost_ns
    assert [connection.a.port for connection in analysis.worst(2)] == [40002, 40001]
    assert [analysis.connections[id].a.port for id in analysis.problems] == [40002]
    paragraph = paragraph_of(render(analysis))
    assert "1 connection with a problem: " in paragraph
    assert time_text(by_port[40002].named_ns) in paragraph
    for limit in (0, 1, 2):
        assert paragraph_of(render(analysis, limit=limit)) == paragraph


@all_cases("path", WHOLE, ids=name_of)
def test_every_connection_can_be_described_in_full(path: Path) -> None:
    for connection in analyze(path).worst(3):
        text = render_connection(connection)
        client, server = roles_of(connection).values()
        assert text.startswith(f"#{connection.id}  {client} {connection.a} → {server} {connection.b}   ")
        assert "None" not in text
        assert "nan" not in text
        episodes = connection.a_to_b.zero_window_episode_count + connection.b_to_a.zero_window_episode_count
        assert ("window closed at" in text) == bool(episodes)


@all_cases("path", READABLE, ids=name_of)
def test_no_report_prints_none(path: Path) -> None:
    text = render(analyze(path), limit=100)
    for word in ("None", "nan", "inf", "unknown at", "no rate"):
        assert not re.search(rf"\b{word}\b", text.replace(str(path), ""))
    assert f"{TRUTHS[path]['packets']:,} packet" in text
    assert all(line == line.rstrip() for line in text.splitlines())
