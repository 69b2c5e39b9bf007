"""Every published figure, copied from the articles in their units."""

from __future__ import annotations

import pytest
from cases import all_cases

from tcpwin.hosts import Distribution
from tcpwin.reference import Bucket, Latency, RateRange, Run, reference, references

MS, US, MIB, GIB = 1_000_000, 1_000, 1 << 20, 1 << 30
MEGABIT = 1_000_000
CLOUDFLARE = "Optimizing TCP for high WAN throughput while preserving low latency"

# tcp_rmem (MiB), tcp_adv_win_scale, TCP window (MiB), ratio of memory to payload.
SETTINGS = {
    "512m2": (512, -2, 128, 4.0),
    "256p1": (256, 1, 128, 2.0),
    "170p2": (170, 2, 128, 1.33),
    "146p3": (146, 3, 128, 1.14),
    "137p4": (137, 4, 128, 1.07),
}

# RcvCollapsed, RcvQDrop, OFODrop; max latency (us); test result (Mbit/s).
PATCHED: dict[str, dict[str, tuple[tuple[int, int, int], int, str]]] = {
    "cloudflare-oscil-300ms": {
        "512m2": ((0, 0, 0), 12, "1-941 941 941"),
        "256p1": ((0, 0, 0), 11, "1-941 941 941"),
        "170p2": ((0, 9, 86), 11, "1-941 36-605 1-298"),
        "146p3": ((0, 7, 1550), 16, "1-940 2-82 292-395"),
        "137p4": ((0, 10, 3020), 9, "1-940 2-13 13-33"),
    },
    "cloudflare-oscil-20ms": {
        "512m2": ((0, 0, 0), 13, "795-941 941 941"),
        "256p1": ((0, 0, 0), 13, "795-941 941 941"),
        "170p2": ((0, 0, 0), 8, "795-941 941 941"),
        "146p3": ((0, 0, 0), 7, "795-941 941 941"),
        "137p4": ((0, 4, 196), 12, "795-941 13-941 941"),
    },
    "cloudflare-oscil-0.3ms": {
        "512m2": ((0, 0, 0), 9, "941 941 941"),
        "256p1": ((0, 0, 0), 22, "941 941 941"),
        "170p2": ((0, 0, 0), 8, "941 941 941"),
        "146p3": ((0, 0, 0), 10, "941 941 941"),
        "137p4": ((0, 0, 0), 10, "941 941 941"),
    },
    "cloudflare-iperf3-300ms": {
        "512m2": ((0, 0, 0), 7, "941"),
        "256p1": ((0, 0, 0), 6, "941"),
        "170p2": ((0, 0, 0), 9, "941"),
        "146p3": ((0, 0, 0), 11, "941"),
        "137p4": ((0, 0, 0), 7, "941"),
    },
    "cloudflare-iperf3-20ms": {
        "512m2": ((0, 0, 0), 7, "941"),
        "256p1": ((0, 0, 0), 15, "941"),
        "170p2": ((0, 0, 0), 7, "941"),
        "146p3": ((0, 0, 0), 7, "941"),
        "137p4": ((0, 0, 0), 6, "941"),
    },
    "cloudflare-iperf3-0.3ms": {
        "512m2": ((0, 0, 0), 6, "941"),
        "256p1": ((0, 0, 0), 14, "941"),
        "170p2": ((0, 0, 0), 6, "941"),
        "146p3": ((0, 0, 0), 7, "941"),
        "137p4": ((0, 0, 0), 6, "941"),
    },
}


def rates(text: str) -> tuple[RateRange, ...]:
    """Return ranges in the tables' notation, in Mbit/s."""
    ends = [[float(end) * MEGABIT for end in word.split("-")] for word in text.split()]
    return tuple(RateRange(each[0], each[-1]) for each in ends)


def check_settings(run: Run) -> None:
    rmem_mib, scale, window_mib, ratio = SETTINGS[run.name]
    assert (run.rmem_max_bytes, run.adv_win_scale) == (rmem_mib * MIB, scale)
    assert (run.window_bytes, run.memory_ratio) == (window_mib * MIB, ratio)


@all_cases("name", PATCHED)
def test_the_tables_of_the_patched_kernel(name: str) -> None:
    found = reference(name)
    assert (found.source.article, found.source.publisher) == (CLOUDFLARE, "Cloudflare")
    assert [run.name for run in found.runs] == list(SETTINGS)
    _, workload, rtt = name.split("-")
    for run in found.runs:
        (collapsed, dropped, out_of_order), latency_us, result = PATCHED[name][run.name]
        check_settings(run)
        assert run.workload == {"oscil": "oscillating-reader", "iperf3": "iperf3"}[workload]
        assert run.rtt_ns == {"300ms": 300 * MS, "20ms": 20 * MS, "0.3ms": 300 * US}[rtt]
        assert (run.rate_bps, run.is_patched, run.kernel) == (1000 * MEGABIT, True, None)
        assert run.settings == {"net.ipv4.tcp_collapse_max_bytes": "6291456"}
        assert run.counters == {
            "TcpExtTCPRcvCollapsed": collapsed,
            "TcpExtTCPRcvQDrop": dropped,
            "TcpExtTCPOFODrop": out_of_order,
        }
        assert (run.max_latency_ns, run.throughput) == (latency_us * US, rates(result))


# PruneCalled, RcvCollapsed, RcvQDrop, OFODrop.
DEFAULT = {
    "512m2": (0, 0, 0, 0),
    "256p1": (0, 0, 0, 0),
    "170p2": (24, 490_000, 0, 0),
    "146p3": (57, 616_000, 0, 0),
    "137p4": (74, 803_000, 0, 0),
}
# From and to in ms, and calls.
HISTOGRAMS: dict[str, list[tuple[int | None, int, int]]] = {
    "512m2": [],
    "256p1": [],
    "170p2": [(0, 1, 27093), (1, 2, 0), (2, 4, 0), (4, 8, 0), (8, 16, 0), (16, 32, 0), (32, 64, 16)],
    "146p3": [
        (None, 16, 25984),
        *((start, start + 4, 0) for start in (16, 20, 24, 28, 32, 36)),
        *((40, 44, 1), (44, 48, 6), (48, 52, 6), (52, 56, 3)),
    ],
    "137p4": [
        (None, 16, 37222),
        *((start, start + 4, 0) for start in (16, 20, 24, 28, 32)),
        *((36, 40, 1), (40, 44, 8), (44, 48, 2)),
    ],
}


def test_the_default_kernel_and_its_latency() -> None:
    found = reference("cloudflare-default-kernel")
    assert [run.name for run in found.runs] == list(SETTINGS)
    for run in found.runs:
        check_settings(run)
        assert (run.rtt_ns, run.rate_bps, run.workload) == (300 * MS, 1000 * MEGABIT, "oscillating-reader")
        assert (run.kernel, run.is_patched, run.verdict, run.throughput) == ("5.15.16", False, "GOOD", ())
        names = ("TcpExtPruneCalled", "TcpExtTCPRcvCollapsed", "TcpExtTCPRcvQDrop", "TcpExtTCPOFODrop")
        assert run.counters == dict(zip(names, DEFAULT[run.name], strict=True))
        assert list(run.latency_histogram) == [
            Bucket(None if start is None else start * MS, end * MS, count) for start, end, count in HISTOGRAMS[run.name]
        ]


def test_production_before_and_after() -> None:
    old = {
        "net.ipv4.tcp_rmem": "8192 2097152 16777216",
        "net.ipv4.tcp_wmem": "4096 16384 33554432",
        "net.ipv4.tcp_adv_win_scale": "-2",
        "net.ipv4.tcp_collapse_max_bytes": "0",
        "net.ipv4.tcp_notsent_lowat": "4294967295",
    }
    new = {
        "net.ipv4.tcp_rmem": "8192 262144 536870912",
        "net.ipv4.tcp_wmem": "4096 16384 536870912",
        "net.ipv4.tcp_adv_win_scale": "-2",
        "net.ipv4.tcp_collapse_max_bytes": "6291456",
        "net.ipv4.tcp_notsent_lowat": "131072",
    }
    found = reference("cloudflare-production")
    runs = {run.name: (run.rtt_ns, run.throughput, run.settings, run.is_patched) for run in found.runs}
    assert runs == {
        "iowa-old": (121 * MS, rates("276"), old, False),
        "iowa-new": (121 * MS, rates("6600"), new, True),
        "melbourne-old": (282 * MS, rates("120"), old, False),
        "melbourne-new": (282 * MS, rates("3800"), new, True),
    }
    for run in found.runs:
        most = int(run.settings["net.ipv4.tcp_rmem"].split()[2])
        assert (run.rmem_max_bytes, run.adv_win_scale, run.kernel, run.rate_bps) == (most, -2, "5.15.32", None)


def test_latencies_with_and_without_idle_restart() -> None:
    found = reference("ably-idle-restart")
    assert {run.name: (dict(run.latencies), run.settings) for run in found.runs} == {
        "production": (
            {"min": Latency(90 * MS, "about"), "p95": Latency(400 * MS, "over")},
            {"net.ipv4.tcp_slow_start_after_idle": "1"},
        ),
        "tcpping-on": ({"p99": Latency(358 * MS)}, {"net.ipv4.tcp_slow_start_after_idle": "1"}),
        "tcpping-off": ({"p99": Latency(200 * MS)}, {"net.ipv4.tcp_slow_start_after_idle": "0"}),
        "heartbeats": ({}, {"net.ipv4.tcp_slow_start_after_idle": "1"}),
        "production-off": ({}, {"net.ipv4.tcp_slow_start_after_idle": "0"}),
    }
    assert {(run.rtt_ns, run.workload) for run in found.runs} == {(180 * MS, "messages")}


def test_memory_of_ten_thousand_sockets() -> None:
    small, large = reference("tuning-memory-10000-sockets").runs
    assert (small.tcp_mem_max_bytes, large.tcp_mem_max_bytes) == (GIB, 4 * GIB)
    assert {run.sockets for run in (small, large)} == {10_000}
    assert {run.distributed for run in (small, large)} == {"wmem_queued_bytes"}
    assert small.distribution == Distribution(
        count=10_000,
        min=4180,
        max=338_736,
        mean=105_136.6496,
        sum=1_051_366_496,
        p25=61_768,
        p50=95_744,
        p75=134_256,
        p85=168_232,
        p95=237_832,
        p99=333_576,
    )
    assert large.distribution == Distribution(
        count=10_000,
        min=215_004,
        max=338_112,
        mean=298_133.2868,
        sum=2_981_332_868,
        p25=236_184,
        p50=321_748,
        p75=333_576,
        p85=335_256,
        p95=335_256,
        p99=338_112,
    )


def test_buffer_sizes_and_calculations() -> None:
    measured, small, gigabit = reference("tuning-buffer-size").runs
    assert (measured.rtt_ns, measured.throughput, measured.has_figures) == (196 * MS, (), False)
    assert (
        measured.settings["net.ipv4.tcp_rmem"] == measured.settings["net.ipv4.tcp_wmem"] == "4096 65535 <BUFFER_SIZE>"
    )
    assert (small.rtt_ns, small.window_bytes, small.throughput) == (30 * MS, 64 << 10, rates("17.48"))
    assert (gigabit.rtt_ns, gigabit.rate_bps, gigabit.window_bytes) == (30 * MS, 10**9, 3_750_000)
    assert {small.workload, gigabit.workload} == {"calculation"}


def test_windows() -> None:
    runs = {
        run.name: (run.window_raw, run.window_shift, run.window_bytes, run.window_max_bytes)
        for run in reference("windows-autotuning").runs
    }
    assert runs == {
        "disabled": (None, None, 65_536, None),
        "highlyrestricted": (16_384, 2, None, None),
        "restricted": (None, None, None, None),
        "normal": (256, 8, None, 16 * MIB),
        "experimental": (None, None, None, None),
    }
    near, far, calculated = reference("windows-64k").runs
    # 48 and 8.5 to 10 megabytes per second.
    assert (near.throughput, far.throughput) == (rates("384"), rates("68-80"))
    assert (near.rate_bps, far.rate_bps, far.rtt_ns) == (None, 600 * MEGABIT, None)
    assert (calculated.window_bytes, calculated.rtt_ns, calculated.rate_bps) == (65_535, 85 * MS, 10 * MEGABIT)
    assert calculated.throughput == rates("6.2")


# Round trip in us, available Mbit/s; each second: Mbit/s, retransmissions, cwnd in KBytes (MBytes × 1024).
RAMPS: dict[str, tuple[int, int, list[tuple[float, int, float]]]] = {
    "500us": (500, 10_000, [(6570, 13, 1.84 * 1024), (6640, 0, 1.92 * 1024)]),
    "5ms": (5_000, 1000, [(40.9, 22, 240), (388, 34, 900), (923, 0, 1.11 * 1024)]),
    "10ms": (10_000, 1000, [(569, 2, 960), (926, 0, 1.05 * 1024), (934, 0, 1.17 * 1024)]),
    "24ms": (
        24_000,
        1000,
        [(20.9, 16, 240), (12.6, 9, 120), (832, 4, 2.4 * 1024), (1030, 1, 3.16 * 1024), (1000, 0, 4.16 * 1024)],
    ),
    "40ms": (40_000, 600, [(17.8, 0, 600), (27.3, 14, 420), (264, 11, 1.29 * 1024), (608, 0, 1.46 * 1024)]),
    "100ms": (
        100_000,
        1000,
        [
            *((40.9, 1, 840), (13.6, 9, 240), (44.0, 5, 780), (81.8, 0, 1.29 * 1024), (132, 0, 1.99 * 1024)),
            *((192, 0, 3.05 * 1024), (1110, 0, 7.62 * 1024)),
        ],
    ),
    "114ms": (
        114_000,
        1000,
        [(13.6, 8, 420), (17.8, 15, 120), (218, 50, 1.82 * 1024), (865, 31, 5.1 * 1024), (930, 0, 5.92 * 1024)],
    ),
    "153ms": (
        153_000,
        1000,
        [
            *((9.43, 2, 180), (17.8, 11, 180), (106, 40, 1.29 * 1024), (373, 22, 2.75 * 1024), (721, 0, 6.68 * 1024)),
            *((1010, 119, 6.97 * 1024), (927, 0, 6.97 * 1024)),
        ],
    ),
    "186ms": (
        186_000,
        1000,
        [
            *((9.43, 3, 180), (4.19, 4, 120), (17.8, 6, 360), (228, 6, 1.11 * 1024), (321, 0, 1.99 * 1024)),
            *((321, 0, 2.46 * 1024), (581, 71, 3.63 * 1024), (919, 0, 5.92 * 1024)),
        ],
    ),
    "271ms": (
        271_000,
        1000,
        [
            *((9.43, 0, 320), (0, 0, 600), (4.19, 7, 420), (7.34, 8, 60), (22.0, 13, 420), (102, 7, 1020)),
            *((167, 0, 1.82 * 1024), (150, 44, 1.76 * 1024), (481, 30, 2.7 * 1024), (738, 0, 6.45 * 1024)),
        ],
    ),
    "292ms": (
        292_000,
        600,
        [
            *((9.43, 0, 450), (0, 3, 180), (5.24, 4, 120), (3.15, 2, 120), (37.7, 1, 660), (109, 3, 960)),
            (541, 0, 2.17 * 1024),
        ],
    ),
    "327ms": (
        327_000,
        1000,
        [
            *((9.43, 0, 600), (0, 4, 240), (6.29, 4, 120), (13.6, 5, 120), (15.7, 0, 480), (148, 14, 1.05 * 1024)),
            *((295, 0, 2.58 * 1024), (380, 0, 4.63 * 1024), (226, 96, 3.93 * 1024), (720, 67, 4.22 * 1024)),
            *((986, 0, 9.67 * 1024), (1040, 0, 15.9 * 1024)),
        ],
    ),
}


def test_ramps_by_round_trip() -> None:
    found = reference("passt-ramps")
    assert [run.name for run in found.runs] == list(RAMPS)
    for run in found.runs:
        rtt_us, available_mbps, seconds = RAMPS[run.name]
        assert (run.rtt_ns, run.rate_bps, run.workload) == (rtt_us * US, available_mbps * MEGABIT, "iperf3")
        assert [(each.rate_bps / MEGABIT, each.retransmissions, each.cwnd_bytes) for each in run.ramp] == [
            (pytest.approx(rate), sent_again, pytest.approx(cwnd * 1024, abs=1)) for rate, sent_again, cwnd in seconds
        ]
        assert [(each.start_ns, each.end_ns) for each in run.ramp] == [
            (second * 10**9, (second + 1) * 10**9) for second in range(len(seconds))
        ]
    transferred = {(run.name, each.end_ns // 10**9): each.transferred_bytes for run in found.runs for each in run.ramp}
    assert transferred["5ms", 1] == round(4.88 * MIB)
    assert (transferred["271ms", 4], transferred["327ms", 12]) == (896 << 10, 124 * MIB)


def test_every_file_is_tested_here() -> None:
    others = {
        *("cloudflare-default-kernel", "cloudflare-production", "ably-idle-restart", "passt-ramps", "windows-64k"),
        *("tuning-memory-10000-sockets", "tuning-buffer-size", "windows-autotuning"),
    }
    # tests/lab compares the project's own lab runs with their page.
    assert {name for name in references() if not name.startswith("lab-")} == {*PATCHED, *others}
    for name, each in references().items():
        assert each.name == name
        assert {run.reference for run in each.runs} == {name}
        assert len({run.name for run in each.runs}) == len(each.runs)
        assert each.source.article
        assert each.source.section
