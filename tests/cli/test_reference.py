"""`tcpwin reference` as a process."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases import all_cases
from cli.command import CAPTURES, SLOW_READER, refused, tcpwin

from tcpwin.reference import articles, library, references
from tcpwin.units import rate_text, share_text, time_text


def lines_of(*arguments: object) -> list[str]:
    done = tcpwin("reference", *arguments)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def document_of(*arguments: object) -> Any:
    done = tcpwin("reference", "--json", *arguments)
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout, parse_constant=pytest.fail)


def test_the_list() -> None:
    lines = lines_of()
    assert [line.split()[0] for line in lines] == list(references())
    assert lines[-1] == "windows-autotuning            5 runs  Windows: receive window by autotuning level"


def test_one_run() -> None:
    assert lines_of("cloudflare-oscil-300ms/170p2")[5:] == [
        "",
        "170p2",
        "  workload: oscillating-reader, round trip 300 ms, 1 Gbit/s",
        "  kernel: unstated version, with the collapse patch",
        "  memory: tcp_rmem at most 170 MiB, tcp_adv_win_scale +2, 1.33 bytes of memory per byte of data, "
        "window 128 MiB",
        "  setting: net.ipv4.tcp_collapse_max_bytes = 6291456",
        "  throughput: 1–941 / 36–605 / 1–298 Mbit/s",
        "  counters: TcpExtTCPRcvCollapsed 0, TcpExtTCPRcvQDrop 9, TcpExtTCPOFODrop 86",
        "  tcp_try_rmem_schedule: at most 11 µs",
    ]


@all_cases("name", references())
def test_each_reference_says_its_source_and_all_its_runs(name: str) -> None:
    lines = lines_of(name)
    found = references()[name]
    assert lines[0] == f"{name}: {found.title}"
    assert lines[1].startswith(f"source: {found.source.article}")
    assert [line for line in lines if line in {run.name for run in found.runs}] == [run.name for run in found.runs]


def test_ramps_and_histograms_and_distributions() -> None:
    assert lines_of("passt-ramps/5ms")[-3:] == [
        "  ramp:   1 s  40.9 Mbit/s, 22 retransmitted, cwnd 246 kB",
        "          2 s   388 Mbit/s, 34 retransmitted, cwnd 922 kB",
        "          3 s   923 Mbit/s, 0 retransmitted, cwnd 1.16 MB",
    ]
    assert "  tcp_try_rmem_schedule: 0 to 1 ms: 27,093, 32 to 64 ms: 16" in lines_of("cloudflare-default-kernel/170p2")
    assert "  tcp_try_rmem_schedule: below 16 ms: 37,222, 36 to 40 ms: 1, 40 to 44 ms: 8, 44 to 48 ms: 2" in lines_of(
        "cloudflare-default-kernel/137p4"
    )
    assert lines_of("tuning-memory-10000-sockets/tcp-mem-1gb")[-2:] == [
        "  memory: tcp_mem at most 1 GiB, 10,000 sockets",
        "  wmem_queued_bytes: min 4,180, mean 105,137, max 338,736, p25 61,768, p50 95,744, p75 134,256, p85 168,232, "
        "p95 237,832, p99 333,576, sum 1,051,366,496",
    ]
    assert lines_of("ably-idle-restart/production")[-1] == "  latency: min about 90 ms, p95 over 400 ms"


def test_the_articles() -> None:
    lines = lines_of("articles")
    assert [line.split()[0] for line in lines] == [f"articles/{name}" for name in articles()]
    lines = lines_of("articles/windows")
    at = lines.index("  window for 10 Mbit/s over 85 ms")
    assert lines[at + 1 : at + 3] == ["    article: 106,250 bytes", "    tcpwin bdp --rtt 85ms --rate 10mbit"]
    at = lines.index("  least value of the window field, by the article")
    assert lines[at + 2].startswith("    not in tcpwin: The field may be 0")
    [one] = document_of("articles/ably")["articles"]
    assert [each["id"] for each in one["entries"]] == [entry.id for entry in articles()["ably"].entries]
    assert "there are ably, cloudflare" in refused("reference", "articles/cloud", status=2)


def test_the_document() -> None:
    found = document_of()
    assert found["schema"] == "tcpwin/reference/1"
    assert [each["name"] for each in found["references"]] == list(references())
    [one] = document_of("cloudflare-oscil-300ms/146p3")["references"]
    [run] = one["runs"]
    assert run["throughput"] == [
        {"least_bps": 1_000_000, "most_bps": 940_000_000},
        {"least_bps": 2_000_000, "most_bps": 82_000_000},
        {"least_bps": 292_000_000, "most_bps": 395_000_000},
    ]
    assert (run["rmem_max_bytes"], run["kernel"], run["ramp"]) == (146 << 20, None, [])


def test_the_nearest() -> None:
    lines = lines_of("--rtt", "290ms", "--rate", "1gbit", "--workload", "iperf3", "--limit", "1")
    assert lines[:4] == [
        "distance 0.05: cloudflare-iperf3-300ms/512m2",
        "  round trip: 300 ms, yours 290 ms",
        "  rate: 1 Gbit/s, the same",
        "  workload: iperf3, the same",
    ]
    found = document_of("--rmem", "16M", "--rtt", "130ms", "--kernel", "5.15")["nearest"]
    assert (found[0]["reference"], found[0]["name"]) == ("cloudflare-production", "iowa-old")
    assert len(found) == 3
    assert [each["distance"] for each in found] == sorted(each["distance"] for each in found)


SMALL_WINDOW = CAPTURES / "reference" / "bulk-300ms-4m2-stock.zip"
COLLAPSED = CAPTURES / "reference" / "oscil-300ms-170p2-stock.zip"


def likeness(*arguments: object) -> str:
    done = tcpwin("reference", "--like", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_a_capture_beside_the_references() -> None:
    text = likeness(SMALL_WINDOW, "--capture", "sender.pcap.gz", "--rate", "1gbit")
    flat = " ".join(text.split())
    assert "reached 941 Mbit/s in its best second, 602 Mbit/s on average, over 300 ms. " in flat
    assert "Yours reached 20.3 Mbit/s" in flat
    assert " 0.09 round trip: 282 ms, yours 300 ms" in flat, "the parts of the distance"
    assert "4 MiB at -2 gives 1 MiB." in flat
    assert "should reach about 38.8 Mbit/s instead of 20.3 Mbit/s." in flat
    assert '  sysctl -w net.ipv4.tcp_rmem="8192 262144 536870912"' in text.splitlines()
    assert "  - the path carries no more than 1 Gbit/s;" in text.splitlines()


def test_a_bundle_without_packets_is_compared_by_its_sockets() -> None:
    text = likeness(COLLAPSED, "--limit", "1")
    assert "  lab-oscil-300ms/170p2-stock, distance 0.00" in text.splitlines()
    assert "by its sockets" in text.splitlines()[0]


def test_no_similar_reference_is_reported() -> None:
    lines = likeness(SLOW_READER, "--connection", "0").splitlines()
    assert lines[-2].startswith("  No published run is near enough to compare with: no reference has its shape")
    assert not any("nearest" in line for line in lines)


def test_a_comparison_as_json() -> None:
    found = document_of("--like", COLLAPSED)
    assert found["schema"] == "tcpwin/reference/1"
    comparison = found["comparison"]
    assert comparison["nearest"][0]["run"]["name"] == "170p2-stock"
    assert comparison["measured"]["counters"]["TcpExtPruneCalled"] == 24
    assert comparison["why_not"] is None


@all_cases(
    ("arguments", "told"),
    [
        (["cloudflare-osci"], "unknown reference 'cloudflare-osci': did you mean cloudflare-oscil-"),
        (["x"], "unknown reference 'x'; `tcpwin reference` lists them"),
        (["passt-ramps/1ms"], "passt-ramps has no run '1ms'; it has 500us, 5ms"),
        (["passt-ramps", "--rtt", "1ms"], "NAME shows one reference"),
        (["--workload", "x"], "unknown workload 'x': choose one of autotuning-level,"),
        (["--kernel", "new"], "new"),
        (["x", "--like", "y"], "--like takes path, settings and workload from FILE"),
        (["--with", "y"], "go with --like"),
        (["--like", COLLAPSED, "--connection", "0"], "--connection needs packets"),
        (["--rtt", "300"], "is not understood: write it as 300ms"),
    ],
)
def test_what_is_refused(arguments: list[object], told: str) -> None:
    assert told in refused("reference", *arguments, status=2)


def test_the_runs_of_the_library() -> None:
    lines = lines_of("library")
    assert len(lines) == len(library())
    assert lines[0].split()[0] == next(iter(library().values())).full_name
    run = library()["window-200ms-1.5mbps"]
    assert lines_of(run.full_name) == [
        "library/window-200ms-1.5mbps",
        "  path: 200 ms, 10 Mbit/s, queue 250 kB",
        "  buffers: receive 75 kB, send 6.29 MB",
        "  cubic, Linux 6.1.192, 1 run",
        f"  carried: 1 MB in {time_text(run.duration_ns)}, {rate_text(run.goodput_bps)}",
        f"  limited by: receive window ({share_text(run.share)} of the time, certain, cost {time_text(run.cost_ns)})",
        "repeat it: tcpwin lab run library/window-200ms-1.5mbps",
    ]
    [described] = document_of(run.full_name)["library"]
    assert described["goodput_bps"] == run.goodput_bps
    assert len(described["trace"]["acked_bytes"]) == len(run.trace.time_ns)
    assert "did you mean window-200ms-1.5mbps" in refused("reference", "library/window-200ms-1.6mbps", status=2)


def test_a_connection_next_to_the_labs_runs() -> None:
    lines = lines_of("--like", CAPTURES / "lab" / "receive-buffer-64k.pcap.gz")
    assert lines[1].startswith("  This transfer carried 1.26 Mbit/s. In the lab, a run like it carried ")
    heads = next(line for line in lines if "yours" in line)
    assert "as you are" in heads
    assert "one change better" in heads
