"""node_exporter: nstat's names, the kernel's memory and release, times by timestamp, line and host clock."""

from __future__ import annotations

from pathlib import Path

from cases import all_cases

from tcpwin.hosts import CounterSample, KernelSample, MemorySample, SnapshotFile

TRUTH = Path(__file__).parent / "truth" / "node_exporter"

# OpenMetrics text: a time in seconds after each value, and an end marker.
OPENMETRICS = """\
# TYPE node_netstat_Tcp_RetransSegs untyped
node_netstat_Tcp_RetransSegs 7 1700000000.25
# TYPE node_sockstat_TCP_mem gauge
node_sockstat_TCP_mem 3.0 1700000000.25
# EOF
node_netstat_Tcp_RetransSegs 9 1700000010.25
# EOF
"""
TRUTHS = {"openmetrics": OPENMETRICS}


def counters(text: str) -> list[CounterSample]:
    return [each for each in SnapshotFile(text.encode()) if isinstance(each, CounterSample)]


def test_output_of_the_program() -> None:
    """From node_exporter 1.5.0 (Debian 12), reduced to the metrics that are read and some others."""
    file = SnapshotFile(TRUTH / "text.txt")
    assert file.format == "node_exporter"
    counted, memory, kernel = file

    assert file.unknown.count == 0
    # node_time_seconds 1.7955628586487603e+09
    assert counted.time_ns == memory.time_ns == kernel.time_ns == 1_795_562_858_648_760_300
    assert isinstance(counted, CounterSample)
    assert counted.is_increment is False
    assert counted.values["TcpExtListenDrops"] == 0
    assert counted.values["TcpExtTCPTimeouts"] == 2
    assert counted.values["TcpInSegs"] == 85142
    assert counted.values["IpExtInOctets"] == 3_907_670_092
    assert counted.values["Icmp6OutMsgs"] == 9
    assert isinstance(memory, MemorySample)
    assert (memory.tcp_inuse, memory.tcp_alloc, memory.tcp_time_wait, memory.tcp_memory_pages) == (7, 7, 2, 0)
    assert memory.values["sockets", "used"] == 49
    assert kernel == KernelSample(kernel.time_ns, kernel.line, "6.18.44-fc-v657", "vm")


def test_the_time_of_lines_and_the_end_of_a_scrape() -> None:
    assert [(each.time_ns, each.values) for each in counters(OPENMETRICS)] == [
        (1_700_000_000_250_000_000, {"TcpRetransSegs": 7}),
        (1_700_000_010_250_000_000, {"TcpRetransSegs": 9}),
    ]


def test_text_says_milliseconds() -> None:
    (sample,) = counters("# HELP node_netstat_Tcp_InSegs x\nnode_netstat_Tcp_InSegs 7 1700000000250\n")
    assert sample.time_ns == 1_700_000_000_250_000_000


def test_a_stamp_before_a_scrape_is_its_time() -> None:
    scrape = "node_netstat_Tcp_InSegs {}\nnode_time_seconds 1.7e+09\n"
    text = "### 1700000100.5\n" + scrape.format(1) + "### 1700000200.5\n" + scrape.format(2)
    assert [(each.time_ns, each.values["TcpInSegs"]) for each in counters(text)] == [
        (1_700_000_100_500_000_000, 1),
        (1_700_000_200_500_000_000, 2),
    ]


def test_a_metric_that_comes_again_begins_a_scrape() -> None:
    text = "node_netstat_Tcp_InSegs 1\nnode_netstat_Tcp_OutSegs 2\nnode_netstat_Tcp_InSegs 3\n"
    assert [each.values for each in counters(text)] == [{"TcpInSegs": 1, "TcpOutSegs": 2}, {"TcpInSegs": 3}]


def test_pages_are_as_large_as_both_numbers_of_memory_say() -> None:
    (memory,) = SnapshotFile(b"node_sockstat_TCP_mem 3\nnode_sockstat_TCP_mem_bytes 196608\n")
    assert (memory.page_size_bytes, memory.tcp_memory_bytes) == (65_536, 196_608)
    assert ("TCP", "mem_bytes") not in memory.values


@all_cases("value", ["NaN", "+Inf", "1.5", "1e40", "--3", "e"])
def test_a_value_that_counts_nothing_is_named(value: str) -> None:
    file = SnapshotFile(f"node_netstat_Tcp_InSegs {value}\nnode_netstat_Tcp_OutSegs 2\n".encode())
    (sample,) = file
    assert sample.values == {"TcpOutSegs": 2}
    assert file.unknown.count == 1


def test_metrics_of_other_programs_are_skipped() -> None:
    text = 'node_netstat_Tcp_InSegs 1\ngo_goroutines 8\nnode_cpu_seconds_total{cpu="0",mode="idle"} 1.5\n'
    file = SnapshotFile(text.encode())
    (sample,) = file
    assert sample.values == {"TcpInSegs": 1}
    assert file.unknown.count == 0
