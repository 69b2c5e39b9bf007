"""The report's statements on loss, order, round trips and pauses, compared with fields, packets and the lab.

The lab's kernel counted 59 retransmissions in loss-1-percent (RetransSegs), the relay of lossy-path dropped 12; the
application of idle-restart wrote 20 messages, 19 of them after a pause, over 180 ms.
"""

import re
from pathlib import Path

import pytest
from analysis.bundled import READABLE, WHOLE, analyze, name_of
from cases import all_cases

import tcpwin
from tcpwin.limits import advice_label
from tcpwin.render import render, render_connection
from tcpwin.units import rest_text, share_text, time_text

CAUSE_FIELDS = (
    "fast_retransmissions",
    "recovery_retransmissions",
    "rto_retransmissions",
    "go_back_n_retransmissions",
    "tail_loss_probes",
    "spurious_retransmissions",
    "syn_retransmissions",
    "fin_retransmissions",
    "fast_open_retransmissions",
    "zero_window_retransmissions",
    "unknown_retransmissions",
)


def find(name: str) -> Path:
    return next(path for path in READABLE if path.name == name)


def lines_of(name: str) -> list[str]:
    return [line.strip() for line in render(analyze(find(name))).splitlines()]


def the_line(name: str, start: str) -> str:
    [line] = [line for line in lines_of(name) if line.startswith(start)]
    return line


def detail_of(name: str) -> list[str]:
    return [line.strip() for line in render_connection(analyze(find(name)).connections[0]).splitlines()]


def told(text: str, tmp_path: Path) -> tuple[tcpwin.Connection, list[str], list[str]]:
    """Return the only connection of a ladder, its report and its details."""
    import ladder

    path = tmp_path / "told.pcap"
    ladder.parse(text, "told").write_pcap(path)
    analysis = tcpwin.analyze(path)
    [connection] = analysis
    report, detail = render(analysis), render_connection(connection)
    return connection, [line.strip() for line in report.splitlines()], [line.strip() for line in detail.splitlines()]


def scenario(name: str) -> str:
    return (Path(__file__).parents[1] / "scenarios" / f"{name}.ladder").read_text(encoding="utf8")


def test_causes_of_the_labs_loss() -> None:
    direction = analyze(find("loss-1-percent.pcap.gz")).connections[0].b_to_a
    fast, recovery = direction.fast_retransmissions, direction.recovery_retransmissions
    assert fast + recovery == 59
    assert the_line("loss-1-percent.pcap.gz", "retransmissions:") == (
        f"retransmissions: {fast} fast, {recovery} in recovery"
    )
    assert not any(line.startswith(("spurious:", "order:")) for line in lines_of("loss-1-percent.pcap.gz"))


def verdict_lines(lines: list[str], label: str = "Cost") -> tuple[str, str]:
    """Return the limit of the only connection, and the line labelled `label`, or ""."""
    return lines[0], next((line for line in lines[1:] if re.match(rf"{label}(?: \(.*?\))?: ", line)), "")


def test_costly_loss_is_the_paths_and_none_of_the_window() -> None:
    """The lab's path loses one segment in a hundred; its kernel retransmitted 59."""
    name = "loss-1-percent.pcap.gz"
    connection = analyze(find(name)).connections[0]
    direction, verdict = connection.b_to_a, connection.verdict
    assert (verdict.limit, verdict.owner, verdict.direction) == ("path_loss", "network", "b_to_a")
    assert verdict.is_problem
    assert direction.recovery_share is not None
    # Recovery, and the growth after it.
    assert verdict.lost_ns > direction.recovery_ns
    answer, cost = verdict_lines(lines_of(name))
    assert f" {verdict.headline}." in answer
    left, whole = rest_text(connection.duration_ns, verdict.cost_ns), time_text(connection.duration_ns)
    assert cost.startswith(f"Cost: about {time_text(verdict.cost_ns)} ")
    assert cost.endswith(f" {left} instead of {whole}")
    _, evidence = verdict_lines(lines_of(name), "Evidence")
    assert re.search(rf"\b59 of {direction.data_segments:,} segments\b", evidence)
    assert not any("receive window" in line for line in lines_of(name))
    recovery = the_line(name, "loss recovery:")
    assert recovery.startswith(f"loss recovery: {direction.recoveries} times, {direction.recovery_ns / 1e9:.3g} s ")
    assert recovery.endswith(f" {share_text(direction.recovery_share)} of the connection")
    assert any(line.startswith(f"loss recovery: {direction.recoveries} times, ") for line in detail_of(name))


def test_loss_at_both_ends() -> None:
    """The relay dropped 12. Near the receiver recovery and causes are inferred; the limit is the same at both ends."""
    sender, receiver = "lossy-path.pcapng.gz", "lossy-path-receiver.pcap.gz"
    for name, confidence in ((sender, "likely"), (receiver, "likely")):
        assert the_line(name, "client → server").endswith(", 12 retransmissions")
        verdict = analyze(find(name)).connections[0].verdict
        assert (verdict.limit, verdict.owner, verdict.confidence) == ("path_loss", "network", confidence)
        answer, evidence = verdict_lines(lines_of(name), "Evidence")
        assert f", {confidence})" in answer
        assert re.search(r"\b12 of [\d,]+ segments\b", evidence)
    causes = the_line(receiver, "retransmissions:")
    assert causes.endswith(", judged near the receiver")
    assert sum(int(count) for count in re.findall(r"\d+", causes)) == 12
    assert "judged" not in the_line(sender, "retransmissions:")
    assert re.search(r" in all, \d+ % of the connection$", the_line(sender, "loss recovery:"))
    assert re.search(r" in all, about \d+ % of the connection$", the_line(receiver, "loss recovery:"))


def test_round_trip_says_where_it_was_measured() -> None:
    """196 ms between both ends, all of them between the receiver's capture and the sender."""
    assert the_line("receive-buffer-64k.pcap.gz", "round trip:") == (
        "round trip: least 196 ms, smoothed 196 ms, RTO 396 ms; captured at the sender"
    )
    assert the_line("receive-buffer-64k-receiver.pcap.gz", "round trip:") == (
        "round trip: least 196 ms, smoothed 196 ms, RTO 396 ms; captured near the receiver"
    )
    assert the_line("aborted-by-reader.pcapng", "round trip:").endswith("; captured on the host of both ends")


def test_flight_as_the_sender_saw_it() -> None:
    name = "receive-buffer-64k-receiver.pcap.gz"
    at_sender = analyze(find("receive-buffer-64k.pcap.gz")).connections[0].b_to_a
    line = the_line(name, "in flight as the sender saw it:")
    assert at_sender.flight_max_bytes is not None
    assert line.endswith(f", at most {at_sender.flight_max_bytes / 1e3:.3g} kB")
    for other in ("receive-buffer-64k.pcap.gz", "slow-reader.pcap.gz"):
        assert not any(line.startswith("in flight as the sender") for line in lines_of(other))


def test_idle_restart() -> None:
    """19 of 20 messages follow a pause: 19 restarts, each a round trip of 180 ms, are 3.42 s."""
    name = "idle-restart.pcap.gz"
    connection = analyze(find(name)).connections[0]
    verdict = connection.verdict
    assert (verdict.limit, verdict.owner) == ("sender_application", "server_application")
    assert (verdict.also, verdict.is_problem) == ("idle_restart", True)
    assert verdict.also_ns == verdict.lost_ns == 19 * 180_000_000
    assert verdict.fix is not None
    assert "server" in verdict.fix
    _, cost = verdict_lines(lines_of(name))
    # The cost is printed once, above fix and evidence.
    assert (cost, "\n".join(lines_of(name)).count("cost 3.42 s")) == ("", 1)
    place = next(place for place, line in enumerate(lines_of(name)) if line.startswith("What can be fixed: "))
    also, fix, when, evidence = lines_of(name)[place : place + 4]
    assert re.search(r" 3\.42 s \(8 % of the connection\)\.$", also)
    # From frame 59 to the first data of the last message, 805.
    assert when == "When (idle restart): from 2.36 s to 38.4 s of the connection"
    assert fix == f"Fix (idle restart): {verdict.fix}"
    assert re.match(r"Evidence .* \(data that waited for an ACK after the first 6 of 19 pauses; ", evidence)
    assert the_line(name, "pauses:").startswith("pauses: 19 longer than the RTO with nothing in flight, 31")
    assert (
        the_line(name, "messages:")
        == "messages: 20, first byte sent to last byte arrived: median 271 ms, p95 271 ms, p99 271 ms"
    )
    restarts = "idle restarts: the congestion window was cut after 19 pauses: 19 round trips lost, 3.42 s"
    assert the_line(name, "idle restarts:") == restarts
    assert restarts in detail_of(name)
    [frames] = [line for line in detail_of(name) if line.startswith("idle restarts: bursts resume at frame ")]
    found = [event.frame for event in connection.events if "idle_restart" in event.names]
    assert frames.endswith(f" {', '.join(map(str, found[:10]))} and 9 more")


def test_idle_restarts_of_little_cost_are_not_a_problem(tmp_path: Path) -> None:
    connection, lines, _ = told(scenario("idle-restart"), tmp_path)
    direction = connection.a_to_b
    assert direction.idle_restarts == 1
    assert direction.idle_restart_cost_ns < 200_000_000
    assert not connection.verdict.is_problem
    assert connection.verdict.also is None
    assert verdict_lines(lines)[1] == ""
    cost_ms = direction.idle_restart_cost_ns / 1e6
    assert f"idle restarts: the congestion window was cut after 1 pause: 1 round trip lost, {cost_ms:.3g} ms" in lines


def test_an_idle_restart_after_a_closed_window() -> None:
    """During the reader's stall all data drained: `ss` has a window of 624 segments before and 40 soon after."""
    assert any(
        line.startswith("pauses: 2 longer") and line.endswith(", including time at zero window")
        for line in lines_of("zero-window-stall.pcap.gz")
    )
    assert any(line.startswith("idle restarts: ") for line in lines_of("zero-window-stall.pcap.gz"))
    assert not any("idle restart" in line for line in lines_of("window-scaling.pcap.gz"))


def test_proofs_that_a_retransmission_was_needless() -> None:
    """The receiver answers each probe with a DSACK; tshark shows SACK edges below the ACK."""
    for name in ("zero-window-loopback.pcap", "aborted-by-reader.pcapng", "lost-window-update.pcap.gz"):
        assert the_line(name, "retransmissions:") == "retransmissions: 1 tail loss probe"
        assert the_line(name, "spurious:") == "spurious: 1 that the receiver reported as duplicates"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("go-back-n-after-the-timeout", "retransmissions: 1 fast, 1 by timeout, 4 after a timeout"),
        ("recovery-lost-retransmission-by-sack", " in recovery (1 of them not for the first time)"),
        ("spurious-by-timestamps", "spurious: 1 by the timestamps echoed"),
        ("spurious-by-frto", "spurious: 1 timeout by the ACK after it (F-RTO)"),
        ("order-by-the-captures-clock", "capture order: 1 segment recorded late"),
        ("fin-alone-again", "1 of the FIN"),
    ],
)
def test_words_of_a_scenario(name: str, words: str, tmp_path: Path) -> None:
    _, lines, _ = told(scenario(name), tmp_path)
    assert any(words in line for line in lines), lines


def test_order(tmp_path: Path) -> None:
    connection, lines, _ = told(scenario("order-extent-and-time"), tmp_path)
    direction = connection.a_to_b
    assert direction.out_of_order
    [line] = [line for line in lines if line.startswith("order: ")]
    assert line.startswith(f"order: {direction.out_of_order} segment")
    assert f"by up to {direction.reordering_max_bytes / 1e3:.3g} kB and " in line


def test_a_syn_that_nobody_answered(tmp_path: Path) -> None:
    """There is no data, but the retransmission must not be hidden by the empty direction."""
    unanswered = """
Nobody answers.
    0.0000 a > b S seq 0 win 64240 <mss 1460>
    1.0100 a > b S seq 0 win 64240 <mss 1460>
    3.0300 a > b S seq 0 win 64240 <mss 1460>
"""
    connection, lines, detail = told(unanswered, tmp_path)
    assert connection.close == "unanswered"
    assert "client → server  no data, 2 retransmissions" in lines
    for text in (lines, detail):
        assert any(line.startswith("retransmissions: 2 of the SYN") for line in text)
    rows = [line.split() for line in detail if re.match(r"\d+ .* syn ", line)]
    assert [row[:4] for row in rows] == [["2", "1.01", "s", "syn"], ["3", "3.03", "s", "syn"]]


def nagle_ladder(writes: int) -> str:
    steps = ["Small writes, each of which waits for the ACK of the one before."]
    steps += [
        "    0.0000 a > b S   seq 0             win 64240 <mss 1460>",
        "    0.0400 b > a SA  seq 0 ack 1       win 65160 <mss 1460>",
        "    0.0400 a > b A   seq 1 ack 1       win 64240",
    ]
    at = 0.1
    for position in range(writes):
        steps.append(f"    {at:.4f} a > b PA  seq {1 + 50 * position} ack 1 len 50")
        at += 0.0810
        steps.append(f"    {at:.4f} b > a A   seq 1 ack {51 + 50 * position} win 65160")
        at += 0.0001
    return "\n".join(steps)


def test_nagle_and_delayed_acks(tmp_path: Path) -> None:
    connection, lines, detail = told(nagle_ladder(12), tmp_path)
    direction = connection.a_to_b
    assert direction.nagle_delays
    assert direction.nagle_delay_ns >= 200_000_000
    seconds = f"{direction.nagle_delay_ns / 1e6:.3g} ms"
    segments = f"{direction.nagle_delays} small segments"
    verdict = connection.verdict
    # The writer of small pieces can change it, not the host that delays its ACKs.
    assert "delayed_ack" in (verdict.limit, verdict.also)
    assert verdict.is_problem
    assert verdict.lost_ns == direction.nagle_delay_ns
    assert verdict.fix is not None
    assert "TCP_NODELAY" in verdict.fix
    answer, cost = verdict_lines(lines)
    assert "the server's delayed ACKs" in answer
    assert seconds in (cost or answer)
    assert f"{advice_label('Fix', verdict)}: {verdict.fix}" in lines
    for text in (lines, detail):
        assert f"Nagle: {segments} waited {seconds} in all for delayed ACKs" in text
    assert any(line.startswith(f"ACKs of the server: {direction.delayed_acks} delayed") for line in detail)


def test_answers_and_messages(tmp_path: Path) -> None:
    """One answer has a time, two to four also the longest, more have percentiles."""
    assert the_line("http-download.pcapng", "answers:") == "answers: 1, after 8.1 ms of work; round trip 10 µs"
    line = next(line for line in lines_of("iperf3-loopback.pcap.lz4") if line.startswith("answers: 4, "))
    assert line == "answers: 4, after 60.1 µs of work (median), longest 83.7 µs; round trip 14 µs each"
    _, lines, _ = told(turns_ladder(6), tmp_path)
    # 10 ms at b, captured at b's end, where the path's 40 ms do not delay b's answer.
    assert "answers: 6, after 10 ms of work (median), longest 10 ms; round trip 40 ms each" in lines


def turns_ladder(turns: int) -> str:
    steps = ["Requests and answers."]
    steps += [
        "    0.0000 a > b S   seq 0             win 64240 <mss 1460>",
        "    0.0000 b > a SA  seq 0 ack 1       win 65160 <mss 1460>",
        "    0.0400 a > b A   seq 1 ack 1       win 64240",
    ]
    for turn in range(turns):
        at = 0.1 + turn * 0.1
        steps += [
            f"    {at:.4f} a > b PA  seq {1 + 100 * turn} ack {1 + 1000 * turn} len 100",
            f"    {at + 0.01:.4f} b > a PA  seq {1 + 1000 * turn} ack {101 + 100 * turn} len 1000 win 65160",
        ]
    return "\n".join(steps)


def test_table_of_what_was_sent_again() -> None:
    name = "loss-1-percent.pcap.gz"
    connection = analyze(find(name)).connections[0]
    events = [event for event in connection.events if event.cause]
    assert len(events) == 59
    lines = detail_of(name)
    start = lines.index("retransmitted or late:")
    rows = [line.split() for line in lines[start + 2 : start + 22]]
    for row, event in zip(rows, events[:20], strict=True):
        # Frame, time and unit, cause, original, trigger.
        assert row[0] == str(event.frame)
        assert row[3:6] == [event.cause, str(event.original_frame), str(event.trigger_frame)]
    assert lines[start + 22] == "39 more: --json lists them all"
    text = " ".join(lines[start + 23 :])
    rules = {(event.reason, event.confidence) for event in events}
    assert len(rules) > 1
    for reason, confidence in rules:
        count = sum((event.reason, event.confidence) == (reason, confidence) for event in events)
        assert f"{reason}: {count}, {confidence}" in text
    numbers = {(event.reason, event.confidence): row[-1] for row, event in zip(rows, events[:20], strict=True)}
    assert len(set(numbers.values())) == len(numbers)


def test_round_trips_in_the_detail() -> None:
    name = "receive-buffer-64k.pcap.gz"
    connection = analyze(find(name)).connections[0]
    shares = connection.round_trips(direction="b_to_a")
    lines = detail_of(name)
    at = lines.index(f"from the capture point to the client and back, {connection.b_to_a.rtt_samples:,} ACKs:")
    values = re.findall(r"[\d.]+ [mµ]?s", lines[at + 2])
    assert values[0] == values[1] == "196 ms"
    assert shares.p99_ns is not None
    assert values[-1] == f"{shares.p99_ns / 1e6:.3g} ms"
    assert len(values) == 7


def test_no_percentile_is_below_the_minimum() -> None:
    """Percentiles of many round trips are rounded down by less than a part in 128: 180 ms become 179 ms."""
    name = "idle-restart.pcap.gz"
    connection = analyze(find(name)).connections[0]
    rounded_ns = connection.round_trips(direction="b_to_a").p5_ns
    assert rounded_ns is not None
    assert connection.b_to_a.rtt_min_ns is not None
    assert rounded_ns < connection.b_to_a.rtt_min_ns
    [line] = [line for line in detail_of(name) if line.startswith("round trip  ")]
    assert set(re.findall(r"[\d.]+ ms", line)) == {"180 ms"}


def test_start_and_congestion_window_in_the_detail() -> None:
    """Ten segments of 1448 bytes: Linux's initial window. The report shows both only in the details."""
    assert any(line.startswith("start: 14.5 kB before the first ACK") for line in detail_of("loss-1-percent.pcap.gz"))
    lossy, lossless = detail_of("loss-1-percent.pcap.gz"), detail_of("window-scaling.pcap.gz")
    assert any(line.startswith("congestion window: 116 kB outstanding at most, SACKed bytes") for line in lossy)
    assert any(line.startswith("congestion window: at least ") for line in lossless)
    assert not any(line.startswith(("start:", "congestion window:")) for line in lines_of("loss-1-percent.pcap.gz"))


@all_cases("path", WHOLE, ids=name_of)
def test_every_retransmission_has_a_cause_in_words(path: Path) -> None:
    from tcpwin.render.view.loss import causes_of

    for connection in analyze(path).worst(5):
        for direction in (connection.a_to_b, connection.b_to_a):
            assert sum(getattr(direction, field) for field in CAUSE_FIELDS) == direction.retransmissions
            counts = [int(text.split()[0].replace(",", "")) for text in causes_of(direction)]
            assert sum(counts) == direction.retransmissions
            assert bool(counts) == bool(direction.retransmissions)


@all_cases("path", WHOLE, ids=name_of)
def test_table_of_what_was_sent_again_fits_a_terminal(path: Path) -> None:
    for connection in analyze(path).worst(3):
        lines = [*render_connection(connection).splitlines(), ""]
        for start in [at for at, line in enumerate(lines) if line.strip() == "retransmitted or late:"]:
            assert max(map(len, lines[start : lines.index("", start)])) <= 80
