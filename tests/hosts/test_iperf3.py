"""Text of iperf3: complete samples against its rows. Units: KBytes is 1024 bytes, Kbits 1000 bits (units.c)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hosts.truth_files import ANY_TEXT, read, read_text
from hypothesis import given
from hypothesis import strategies as st
from reference import ABSENT, ROOT

from tcpwin.hosts import SnapshotFile
from tcpwin.hosts.throughput import ThroughputSample

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
SECOND = 1_000_000_000
SEED = ROOT.parent / "shared" / "seeds" / "passt-throughput.txt"


def row(line: int, span: tuple[float, float], transferred_bytes: int, rate_bps: float, **rest: Any) -> ThroughputSample:
    """Return a sample of stream 5 in the first run, without a time unless given."""
    start_ns, end_ns = (round(seconds * SECOND) for seconds in span)
    values = {"time_ns": None, "run": 0, "stream": 5, **rest}
    return ThroughputSample(
        line=line, start_ns=start_ns, end_ns=end_ns, transferred_bytes=transferred_bytes, rate_bps=rate_bps, **values
    )


def test_a_client_with_its_summary() -> None:
    samples, unknown = read("iperf3", "client.txt")
    # 3.40 × 1048576 = 3565158.4.
    assert samples == [
        row(4, (0, 1), 611 * KIB, 5.00e6, retransmissions=0, cwnd_bytes=113 * KIB),
        row(5, (1, 2), 3_565_158, 28.5e6, retransmissions=2, cwnd_bytes=806 * KIB),
        row(6, (2, 2.5), 0, 0.0, retransmissions=0, cwnd_bytes=806 * KIB),
        row(9, (0, 2.5), 4 * MIB, 13.4e6, retransmissions=2, is_summary=True, side="sender"),
        row(10, (0, 2.8), 3_932_160, 11.2e6, is_summary=True, side="receiver"),
    ]
    assert unknown == []


def test_parallel_streams_with_a_stamp_and_an_omitted_second() -> None:
    samples, unknown = read("iperf3", "parallel.txt")
    # 1.10 MB = 1153433.6, 1.25 GB = 1342177280, 1.36 GB = 1460288880.64.
    omitted: dict[str, Any] = {"time_ns": 1795288971_250_000_000, "is_omitted": True}
    # iperf3 counts from 0 again after the omitted second, two seconds after the start.
    counted: dict[str, Any] = {"time_ns": 1795288972_250_000_000}
    summary = {**counted, "stream": None, "is_summary": True}
    assert samples == [
        row(6, (0, 1), 112 * MIB, 940e6, retransmissions=10, cwnd_bytes=1_153_434, **omitted),
        row(7, (0, 1), 1_342_177_280, 10.7e9, stream=7, retransmissions=0, cwnd_bytes=3 * MIB, **omitted),
        row(8, (0, 1), 1_460_288_881, 11.7e9, stream=None, retransmissions=10, **omitted),
        row(10, (0, 1), 100 * MIB, 839e6, retransmissions=1, cwnd_bytes=1_572_864, **counted),
        row(11, (0, 1), 100 * MIB, 839e6, stream=7, retransmissions=0, cwnd_bytes=1_572_864, **counted),
        row(12, (0, 1), 200 * MIB, 1.68e9, stream=None, retransmissions=1, **counted),
        row(15, (0, 1), 200 * MIB, 1.68e9, retransmissions=1, side="sender", **summary),
        row(16, (0, 1), 199 * MIB, 1.67e9, side="receiver", **summary),
    ]
    assert unknown == []


def test_a_server_with_two_clients_and_rates_in_bytes() -> None:
    samples, unknown = read("iperf3", "server-two-clients.txt")
    # -f K: 66.0 KBytes/sec = 66 · 1024 · 8 bit/s = 540672; 66.7: 546406.4; 66.2: 542310.4.
    assert samples == [
        row(7, (0, 1), 66 * KIB, 540_672.0),
        row(8, (1, 1.3), 20 * KIB, 546_406.4),
        row(11, (0, 1.3), 86 * KIB, 542_310.4, is_summary=True, side="receiver"),
        row(18, (0, 1), TIB, 8.8e12, run=1),
    ]
    assert unknown == [(19, "iperf3: error - unable to receive control message: Connection reset by peer")]


def test_both_ways_at_once() -> None:
    samples, unknown = read("iperf3", "bidir.txt")
    sends, receives = {"role": "TX-C"}, {"role": "RX-C", "stream": 7}
    assert samples == [
        row(2, (0, 1), 10 * MIB, 83.9e6, retransmissions=3, cwnd_bytes=200 * KIB, **sends),
        row(3, (0, 1), 20 * MIB, 168e6, **receives),
        row(6, (0, 1), 10 * MIB, 83.9e6, retransmissions=3, is_summary=True, side="sender", **sends),
        row(7, (0, 1), 20 * MIB, 168e6, is_summary=True, side="receiver", **receives),
    ]
    assert unknown == []


def test_a_prefix_is_the_time_of_its_row() -> None:
    """--timestamps prints a row at the end of its interval."""
    samples, unknown = read("iperf3", "timestamps.txt")
    first, second = 1795288971_000_000_000, 1795288972_000_000_000
    assert samples == [
        row(4, (0, 1), 512 * KIB, 4.19e6, retransmissions=4, cwnd_bytes=120 * KIB, time_ns=first),
        row(5, (1, 2), 0, 0.0, retransmissions=0, cwnd_bytes=120 * KIB, time_ns=second),
    ]
    assert unknown == []


def test_rows_that_run_together_in_one_line() -> None:
    samples, unknown = read("iperf3", "flattened.txt")
    # 1.84 MB = 1929379.84, 1.92 MB = 2013265.92, 4.88 MB = 5117050.88, 46.2 MB = 48444211.2.
    assert samples == [
        row(1, (0, 1), 785 * MIB, 6.57e9, retransmissions=13, cwnd_bytes=1_929_380),
        row(1, (1, 2), 790 * MIB, 6.64e9, retransmissions=0, cwnd_bytes=2_013_266),
        row(1, (0, 1), 5_117_051, 40.9e6, run=1, retransmissions=22, cwnd_bytes=240 * KIB),
        row(1, (1, 2), 48_444_211, 388e6, run=1, retransmissions=34, cwnd_bytes=900 * KIB),
    ]
    assert unknown == []


def test_udp_is_passed_over() -> None:
    assert read("iperf3", "udp.txt") == ([], [])


def test_iperf_2_whose_last_row_is_the_summary() -> None:
    samples, unknown = read("iperf3", "iperf2.txt")
    assert samples == [
        row(7, (0, 1), 112 * MIB, 940e6, stream=3),
        row(8, (1, 2), 113 * MIB, 948e6, stream=3),
        row(9, (0, 2), 225 * MIB, 944e6, stream=3, is_summary=True),
    ]
    assert unknown == []


def test_the_round_trip_that_iperf3_darwin_prints() -> None:
    text = (
        "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd          RTT\n"
        "[  5]   0.00-1.00   sec   237 MBytes  1.99 Gbits/sec  183   2.47 MBytes   10ms     \n"
    )
    samples, unknown = read_text("iperf3", text)
    # 2.47 MB = 2589982.72.
    assert samples == [row(2, (0, 1), 237 * MIB, 1.99e9, retransmissions=183, cwnd_bytes=2_589_983, rtt_ns=10_000_000)]
    assert unknown == []


def test_a_number_after_a_row_needs_a_heading_to_count_retransmissions() -> None:
    text = "[ ID] Interval Transfer Bitrate\n[  5] 0.00-1.00 sec 1.00 MBytes 8.39 Mbits/sec 5 ms away\n"
    samples, _ = read_text("iperf3", text)
    assert samples == [row(2, (0, 1), MIB, 8.39e6)]


def test_a_second_test_without_a_timestamp_has_no_time() -> None:
    test = "[  5] 0.00-1.00 sec 1.00 MBytes 8.39 Mbits/sec\n[  5] 1.00-2.00 sec 1.00 MBytes 8.39 Mbits/sec\n"
    samples, _ = read_text("iperf3", f"### 1795288970\n{test}[  5] 0.00-0.50 sec 1.00 MBytes 16.8 Mbits/sec\n")
    assert samples == [
        row(2, (0, 1), MIB, 8.39e6, time_ns=1795288971 * SECOND),
        row(3, (1, 2), MIB, 8.39e6, time_ns=1795288972 * SECOND),
        row(4, (0, 0.5), MIB, 16.8e6, run=1),
    ]


def test_iperf3_says_itself_when_a_test_began() -> None:
    """-V prints the time before it connects."""
    text = "Time: Sat, 21 Nov 2026 19:22:50 GMT\n[  5] 0.00-1.00 sec 1.00 MBytes 8.39 Mbits/sec\n"
    samples, unknown = read_text("iperf3", text)
    assert samples == [row(2, (0, 1), MIB, 8.39e6, time_ns=1795288971 * SECOND)]
    assert unknown == []


def test_every_interval_of_the_mailing_list() -> None:
    """Compared with an independent reading of the text: numbers by position, in order."""
    if not SEED.is_file():
        pytest.skip(ABSENT)
    text = SEED.read_text(encoding="utf8")
    words = [found.split() for found in re.findall(r"\[ 5\] (\d[^\[*]*)", text)]
    units = {"Bytes": 1, "KBytes": KIB, "MBytes": MIB, "bits/sec": 1, "Mbits/sec": 1e6, "Gbits/sec": 1e9}
    expected = [
        (
            *(round(float(seconds) * SECOND) for seconds in span.split("-")),
            round(float(size) * units[size_unit]),
            float(rate) * units[rate_unit],
            int(again),
            round(float(cwnd) * units[cwnd_unit]),
        )
        for span, _, size, size_unit, rate, rate_unit, again, cwnd, cwnd_unit in (each[:9] for each in words)
    ]
    samples = list(SnapshotFile(SEED))
    found = [
        (each.start_ns, each.end_ns, each.transferred_bytes, each.rate_bps, each.retransmissions, each.cwnd_bytes)
        for each in samples
    ]
    assert len(expected) == 73
    assert found == [(*each[:3], pytest.approx(each[3]), *each[4:]) for each in expected]
    # One test per round trip: 0.5, 5, 10, 24, 40, 100, 114, 153, 186, 271, 292 and 327 ms.
    assert max(each.run for each in samples) == 11


@given(st.lists(st.sampled_from(["[ ID]", "[", "  5]", "[SUM]", " 0.00-1.00 ", "sec ", "9" * 30, "1.0 KBytes ", "\n"])))
def test_pieces_in_any_order_never_raise(pieces: list[str]) -> None:
    samples, _ = read_text("iperf3", "x" + "".join(pieces))
    assert all(isinstance(sample, ThroughputSample) for sample in samples)


@given(ANY_TEXT)
def test_any_text_is_used_or_unknown(text: str) -> None:
    samples, unknown = read_text("iperf3", f"x{text}")
    assert len(samples) + len(unknown) >= 1
