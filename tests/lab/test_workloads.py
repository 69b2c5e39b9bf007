"""Every workload over loopback: two processes, as on two hosts, and both logs compared."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import forked
import pytest

from tcpwin.lab import SettingsError, workloads

pytestmark = pytest.mark.usefixtures("loopback")

TCPWIN = Path(sys.executable).with_name("tcpwin")
TESTED = {
    "bulk",
    "conversation",
    "max-send",
    "messages",
    "oscillating-reader",
    "record-reader",
    "stalled-reader",
    "transfer",
    "transfer-rate",
}
Lines = list[dict[str, Any]]


def over_loopback(name: str, serve: str = "", drive: str = "") -> tuple[Lines, Lines]:
    """Run both ends of a workload and return the lines of their logs."""
    server = forked.start(
        [TCPWIN, "lab", "serve", name, "--port", "0", *serve.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    try:
        listening = re.fullmatch(r"tcpwin: listening on 127\.0\.0\.1, port (\d+)\n", server.stderr.readline())
        reader = forked.run(
            [TCPWIN, "lab", "drive", name, "127.0.0.1", "--port", listening[1], *drive.split()],
            capture_output=True,
            text=True,
            check=False,
        )
        assert reader.returncode == 0, reader.stderr
        said, complaints = server.communicate()
    finally:
        server.kill()
    assert server.returncode == 0, complaints
    return [json.loads(line) for line in said.splitlines()], [json.loads(line) for line in reader.stdout.splitlines()]


def events(lines: Lines, name: str) -> Lines:
    return [line for line in lines if line["event"] == name]


def test_every_workload_is_tested() -> None:
    assert set(workloads()) == TESTED


def test_bulk_by_bytes_arrives_whole() -> None:
    sent, read = over_loopback("bulk", "--bytes 5000000")
    assert sent[-1]["bytes"] == read[-1]["bytes"] == 5_000_000
    assert read[-1]["rate_bps"] == pytest.approx(8e9 * 5_000_000 / read[-1]["elapsed_ns"], rel=1e-6)


def test_bulk_by_time_sends_for_the_given_time() -> None:
    sent, read = over_loopback("bulk", "--seconds 1.2")
    assert sent[-1]["bytes"] == read[-1]["bytes"] > 0
    assert sent[-1]["elapsed_ns"] >= 1_200_000_000
    assert sum(line["bytes"] for line in events(read, "second")) <= read[-1]["bytes"]


def test_the_oscillating_reader_reads_a_twentieth_in_its_slow_seconds() -> None:
    sent, read = over_loopback("oscillating-reader", "", "--fast-s 1 --slow-s 2 --loops 2")
    seconds = events(read, "second")
    assert [line["mode"] for line in seconds] == ["fast", "slow", "slow"] * 2
    first = seconds[0]["bytes"]
    assert [line["bytes"] for line in seconds[1:3]] == [first // 20] * 2
    assert read[-1]["high_water_bytes"] == max(line["bytes"] for line in seconds)
    assert read[-1]["bytes"] == sum(line["bytes"] for line in seconds)
    assert sent[-1]["bytes"] > read[-1]["bytes"]
    gaps = [later["time_ns"] - line["time_ns"] for line, later in pairwise(seconds)]
    assert all(gap >= 990_000_000 for gap in gaps)


def test_the_published_pattern_is_the_default() -> None:
    settings = workloads()["oscillating-reader"].drive_settings()
    assert (settings.fast_s, settings.slow_s, settings.slow_share, settings.loops) == (5, 15, 0.05, 3)


def test_messages_are_timed_one_way_and_both_ways() -> None:
    sent, read = over_loopback("messages", "--count 5 --gap-s 0.2 --heartbeat-s 0.02 --message-bytes 3000")
    assert [line["index"] for line in events(read, "message")] == list(range(5))
    assert read[-1]["messages"] == sent[-1]["messages"] == len(events(sent, "answer")) == 5
    assert read[-1]["heartbeats"] >= 2
    for message, answer in zip(events(read, "message"), events(sent, "answer"), strict=True):
        assert 0 < message["one_way_delay_ns"] <= answer["round_trip_ns"]


def test_messages_keep_their_gaps() -> None:
    sent, _ = over_loopback("messages", "--count 4 --gap-s 0.4 --message-bytes 100")
    first, *_, last = events(sent, "answer")
    # Three gaps are 1.2 s; the first answer may be late on a busy machine.
    assert last["time_ns"] - first["time_ns"] >= 700_000_000


def test_each_size_of_buffer_has_a_transfer() -> None:
    sizes = "--buffer-bytes 16384 --buffer-bytes 0"
    sent, read = over_loopback("transfer-rate", f"{sizes} --seconds 0.2", sizes)
    ours, theirs = events(sent, "transfer"), events(read, "transfer")
    assert [line["buffer_bytes"] for line in ours] == [line["buffer_bytes"] for line in theirs] == [16384, 0]
    assert [line["bytes"] for line in ours] == [line["bytes"] for line in theirs]
    assert ours[0]["granted_bytes"] == theirs[0]["granted_bytes"] == 2 * 16384
    assert {"rate_16384_bps", "rate_0_bps"} <= read[-1].keys()


def test_connections_that_never_read_fill_the_buffers() -> None:
    sent, read = over_loopback("max-send", "--connections 20 --write-s 1 --hold-s 0.1", "--connections 20")
    assert events(sent, "accepted")[0]["connections"] == read[-1]["connections"] == 20
    assert sent[-1]["least_written_bytes"] > 0
    assert sent[-1]["bytes"] == events(sent, "written")[0]["bytes"]


def test_a_stalled_reader_reads_the_rest() -> None:
    sent, read = over_loopback("stalled-reader", "--bytes 60000000", "--read-s 0 --stall-s 0.5 --stalls 2")
    assert [line["event"] for line in read if line["event"] != "second"][:4] == ["stall", "resume"] * 2
    assert read[-1]["stalled_ns"] >= 1_000_000_000
    assert read[-1]["bytes"] == sent[-1]["bytes"] == 60_000_000
    assert sent[-1]["elapsed_ns"] >= 1_000_000_000


def test_a_conversation_takes_its_work_and_its_thinking() -> None:
    """Twelve exchanges of 20 ms work and 10 ms thinking; every fourth answer takes 50 ms more."""
    serve = "--work-s 0.02 --slow-every 4 --slow-s 0.05 --parts 3"
    sent, read = over_loopback("conversation", serve, "--count 12 --think-s 0.01 --answer-bytes 70000 --parts 2")
    assert sent[-1]["answers"] == read[-1]["exchanges"] == 12
    assert read[-1]["bytes"] == 12 * 70_000
    assert sent[-1]["work_ns"] >= (12 * 20 + 3 * 50) * 1_000_000
    assert read[-1]["think_ns"] >= 12 * 10_000_000
    assert read[-1]["completion_ns"] >= sent[-1]["work_ns"] + read[-1]["think_ns"]


def test_requests_under_way_at_once_wait_for_each_other_only_at_the_server() -> None:
    """Thinking and work overlap: one at a time takes 12 times 40 ms, four at once little more than half."""
    _, read = over_loopback("conversation", "--work-s 0.02", "--count 12 --think-s 0.02 --depth 4")
    assert 12 * 20_000_000 <= read[-1]["completion_ns"] < 12 * 40_000_000


def test_whole_records_pass_through_a_buffer_that_holds_them() -> None:
    sent, read = over_loopback("record-reader", "--records 20", "--receive-buffer-bytes 524288 --look-s 0.001")
    assert read[-1]["records"] == sent[-1]["records"] == 20
    assert not read[-1]["stalled"]


def test_a_buffer_locked_below_a_record_stalls_both_for_ever() -> None:
    sent, read = over_loopback("record-reader", "--records 200", "--receive-buffer-bytes 16384 --give-up-s 1")
    assert read[-1]["records"] == 0
    assert read[-1]["stalled"]
    assert 0 < read[-1]["left_bytes"] < 65536
    assert sent[-1]["records"] < 200


@pytest.mark.parametrize(
    ("options", "said"), [("--count 0", "count must be 1 or more"), ("--nothing", "No such option")]
)
def test_a_wrong_setting_is_one_sentence(options: str, said: str) -> None:
    done = forked.run(
        [TCPWIN, "lab", "serve", "messages", *options.split()], capture_output=True, text=True, check=False
    )
    assert done.returncode in (2, 3)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "answers", "status", "said"),
    [
        ("--count 1 --gap-s 0", False, 0, ""),
        ("--count 2 --gap-s 0.1 --log /dev/full", True, 3, "tcpwin: No space left on device\n"),
    ],
)
def test_messages_end_in_words_where_the_reader_leaves_or_the_disk_is_full(
    options: str, answers: bool, status: int, said: str
) -> None:
    """A thread reads the answers: its failures are reported like any other, and a missing answer gives no sample."""
    server = forked.start(
        [TCPWIN, "lab", "serve", "messages", "--port", "0", "--message-bytes", "20", *options.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    try:
        port = int(server.stderr.readline().rsplit(" ", 1)[1])
        with socket.create_connection(("127.0.0.1", port)) as reader:
            header = reader.recv(20, socket.MSG_WAITALL)
            if answers:
                reader.sendall(header)
                reader.recv(1)
        lines, complaints = server.communicate()
    finally:
        server.kill()
    assert (server.returncode, complaints) == (status, said)
    for summary in [json.loads(line) for line in lines.splitlines()]:
        assert not any("round_trip" in name for name in summary)


def test_an_end_that_nobody_serves_is_one_sentence() -> None:
    done = forked.run(
        [TCPWIN, "lab", "drive", "bulk", "127.0.0.1", "--port", "1"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (3, "tcpwin: 127.0.0.1, port 1: Connection refused\n")


def test_a_log_can_be_a_file(tmp_path: Path) -> None:
    _, read = over_loopback("bulk", f"--bytes 1000 --log {tmp_path / 'log.jsonl'}")
    assert json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])["bytes"] == read[-1]["bytes"] == 1000


def test_a_transfer_stalls_after_the_given_bytes() -> None:
    """After 400,000 and 800,000 of a million bytes: two stalls, whatever the path's speed."""
    sent, read = over_loopback("transfer", "--bytes 1000000", "--stall-bytes 400000 --stall-s 0.3")
    assert sent[-1]["bytes"] == read[-1]["bytes"] == 1_000_000
    assert [line["bytes"] for line in events(read, "stall")] == [400_000, 800_000]
    assert read[-1]["stalled_ns"] == 600_000_000
    assert read[-1]["completion_ns"] >= 600_000_000
    assert 0 < read[-1]["connect_ns"] <= read[-1]["first_byte_ns"] <= read[-1]["completion_ns"]


def test_a_transfer_pauses_between_its_parts_only() -> None:
    """Four parts have three pauses."""
    sent, read = over_loopback("transfer", "--bytes 400000 --pause-bytes 100000 --pause-s 0.2")
    assert sent[-1]["paused_ns"] == 600_000_000
    assert read[-1]["completion_ns"] >= 600_000_000


@pytest.mark.parametrize(
    ("serve", "drive"),
    [
        ("--rate-mbps 8", ""),
        ("", "--rate-mbps 8 --chunk-bytes 16384"),
        # Half of the bytes at twice the time each.
        ("", "--rate-mbps 4 --fast-bytes 50000 --slow-bytes 50000 --chunk-bytes 16384"),
    ],
)
def test_a_transfer_is_no_faster_than_its_ends(serve: str, drive: str) -> None:
    """Half a million bytes at 8 Mbit/s take half a second, except for the last write or read of at most 128 KiB."""
    _, read = over_loopback("transfer", f"--bytes 500000 {serve}", drive)
    assert read[-1]["completion_ns"] >= 0.36e9


@pytest.mark.parametrize("paced", ["writer", "reader"])
def test_an_end_keeps_to_its_trace(paced: str) -> None:
    steps = "--trace-us 0 --trace-bytes 100000 --trace-us 400000 --trace-bytes 300000"
    serve, drive = (steps, "") if paced == "writer" else ("", steps)
    sent, read = over_loopback("transfer", f"--bytes 300000 {serve}", drive)
    assert sent[-1]["bytes"] == read[-1]["bytes"] == 300_000
    assert (sent[-1]["elapsed_ns"] if paced == "writer" else read[-1]["completion_ns"]) >= 400_000_000


@pytest.mark.parametrize(
    ("after", "until", "said"),
    [((1, 2), (5,), "trace_us has 2 steps, and trace_bytes 1"), ((2, 1), (5, 6), "never fall")],
)
def test_an_invalid_trace_is_refused(after: tuple[int, ...], until: tuple[int, ...], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        workloads()["transfer"].serve_settings(trace_us=after, trace_bytes=until)
