"""Distributions over sockets: nearest rank, one sample per socket, zeros that `ss` omits, listening sockets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import all_cases
from hypothesis import given
from hypothesis import strategies as st

from tcpwin.hosts import Distribution, SnapshotFile, SocketSample, distribution, distributions, last_samples
from tcpwin.hosts.field_distribution import AMOUNTS, FIELDS, LastSamples, number_of

HUGE = 1 << 70
# ceil(p × n ÷ 100) by hand: number 2500 of 10,000 sorted values, and numbers 2, 4, 6, 6, 7, 7 of 7.
TRUTHS: list[tuple[list[float], Distribution]] = [
    (
        list(range(10_000, 0, -1)),
        Distribution(10_000, 1, 10_000, 5000.5, 50_005_000, 2500, 5000, 7500, 8500, 9500, 9900),
    ),
    ([70, 10, 60, 20, 50, 30, 40], Distribution(7, 10, 70, 40.0, 280, 20, 40, 60, 60, 70, 70)),
    # 85 × 20 ÷ 100 is 17 and 95 × 20 ÷ 100 is 19, exactly.
    (list(range(1, 21)), Distribution(20, 1, 20, 10.5, 210, 5, 10, 15, 17, 19, 20)),
    ([4, 1, 3, 2], Distribution(4, 1, 4, 2.5, 10, 1, 2, 3, 4, 4, 4)),
    ([5], Distribution(1, 5, 5, 5.0, 5, 5, 5, 5, 5, 5, 5)),
    ([0.5, 0.25], Distribution(2, 0.25, 0.5, 0.375, 0.75, 0.25, 0.25, 0.5, 0.5, 0.5, 0.5)),
    ([-3, 1], Distribution(2, -3, 1, -1.0, -2, -3, -3, 1, 1, 1, 1)),
    ([1.5, float("nan")], Distribution(1, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5)),
    ([HUGE], Distribution(1, HUGE, HUGE, float(HUGE), HUGE, HUGE, HUGE, HUGE, HUGE, HUGE, HUGE)),
]


@all_cases(("values", "expected"), TRUTHS)
def test_numbers(values: list[float], expected: Distribution) -> None:
    assert distribution(values) == expected


@pytest.mark.parametrize("values", [[], [float("nan")]])
def test_no_value_has_no_distribution(values: list[float]) -> None:
    assert distribution(values) is None


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=300))
def test_percentiles_are_numpys_inverted_distribution(values: list[int]) -> None:
    found = distribution(values)
    assert found is not None
    percents = [25, 50, 75, 85, 95, 99]
    # Exact fractions of n: 0.85 × 20 in floating point may exceed 17.
    expected = [sorted(values)[max(0, (percent * len(values) + 99) // 100 - 1)] for percent in percents]
    assert [getattr(found, f"p{percent}") for percent in percents] == expected
    quartiles = np.percentile(values, [25, 50, 75], method="inverted_cdf").tolist()
    assert [found.p25, found.p50, found.p75] == quartiles
    assert (found.count, found.min, found.max, found.sum) == (len(values), min(values), max(values), sum(values))


def sockets(*more: dict[str, Any]) -> list[SocketSample]:
    return [
        SocketSample(
            **{"state": "ESTAB", "local_address": "10.0.0.1", "local_port": 80, "peer_port": port, "index": 0, **each}
        )
        for port, each in enumerate(more, 1)
    ]


def counts(samples: list[SocketSample], field: str) -> tuple[int, float, float] | None:
    found = distribution(samples, field)
    return None if found is None else (found.count, found.min, found.sum)


def test_sockets_that_do_not_say_a_field_are_left_out() -> None:
    assert counts(sockets({"rtt_ns": 5}, {}, {"rtt_ns": 7}), "rtt_ns") == (2, 5, 12)


def test_an_omitted_counter_is_zero_if_another_socket_has_it() -> None:
    full = {"congestion_control": "cubic"}
    assert counts(sockets({**full, "retrans_total": 4}, full, full), "retrans_total") == (3, 0, 4)
    # A socket without TCP information counts as unknown.
    assert counts(sockets({**full, "retrans_total": 4}, {}), "retrans_total") == (1, 4, 4)
    # If no socket has the field, it may be zero everywhere or unknown to the kernel.
    assert counts(sockets(full, full), "retrans_total") is None
    # This one is never omitted.
    assert counts(sockets({**full, "rtt_ns": 4}, full), "rtt_ns") == (1, 4, 4)


def test_listening_sockets_have_memory_and_an_accept_queue_only() -> None:
    listening = {"state": "LISTEN", "congestion_control": "cubic", "cwnd_segments": 10, "unacked_segments": 3}
    listening |= {"accept_queue": 3, "rcvbuf_bytes": 131_072}
    samples = sockets(listening, {"cwnd_segments": 20, "unacked_segments": 7, "rcvbuf_bytes": 1000})
    assert counts(samples, "cwnd_segments") == (1, 20, 20)
    assert counts(samples, "unacked_segments") == (1, 7, 7)
    assert counts(samples, "snd_wnd_bytes") is None
    assert counts(samples, "rcvbuf_bytes") == (2, 1000, 132_072)
    assert counts(samples, "accept_queue") == (1, 3, 3)
    assert number_of(samples[0], "notsent_bytes", fill_zeros=True) is None
    assert number_of(samples[0], "local_port") == 80


def test_the_congestion_window_in_bytes_is_a_field() -> None:
    assert counts(sockets({"cwnd_segments": 26, "mss_bytes": 1448}, {"cwnd_segments": 3}), "cwnd_bytes") == (
        1,
        37_648,
        37_648,
    )


def test_the_last_sample_of_each_socket_counts() -> None:
    first, again = sockets({"rtt_ns": 5}), sockets({"rtt_ns": 9, "index": 1}, {"rtt_ns": 1, "index": 1})
    assert counts([*first, *again], "rtt_ns") == (2, 1, 10)
    every = distribution([*first, *again], "rtt_ns", last_only=False)
    assert (every.count, every.sum) == (3, 15)
    assert last_samples([*first, *again]) == again


@all_cases(
    ("first", "second", "is_one"),
    [
        ({}, {}, True),
        ({}, {"state": "TIME-WAIT"}, True),
        ({}, {"peer_port": 8}, False),
        ({}, {"netid": "mptcp"}, False),
        ({"local_scope": "eth0"}, {"local_scope": "eth1"}, False),
        ({"cookie": 1}, {"cookie": 2}, False),
        ({"cookie": 1}, {"cookie": 1, "peer_port": 8}, True),
        ({"state": "LISTEN"}, {"state": "LISTEN"}, False),
        ({"state": "LISTEN"}, {"state": "LISTEN", "index": 1}, True),
    ],
)
def test_identity_of_a_socket(first: dict[str, Any], second: dict[str, Any], is_one: bool) -> None:
    base = {"state": "ESTAB", "local_address": "10.0.0.1", "local_port": 80, "peer_port": 9}
    samples = [SocketSample(**{**base, **each}) for each in (first, second)]
    assert last_samples(samples) == (samples[1:] if is_one else samples)


def test_sockets_beyond_the_bound_are_counted() -> None:
    last = LastSamples(most=2)
    for sample in sockets({}, {}, {}, {}):
        last.take(sample)
    [changed] = sockets({"rtt_ns": 5})
    last.take(changed)
    assert [sample.rtt_ns for sample in last] == [5, None]
    assert last.left_out == 2


def test_a_file_may_hold_more_than_sockets() -> None:
    records = [
        '{"type": "start", "schema": "tcpwin/snap/1", "time_ns": 5, "kernel": {"release": "6.1"}}',
        '{"type": "sample", "time_ns": 6, "whole": true, "counters": {"TcpInSegs": 1}, '
        '"sockets": [{"cookie": 1, "state": "ESTAB", "rtt_ns": 5}, {"cookie": 2, "state": "ESTAB", "rtt_ns": 7}]}',
    ]
    file = SnapshotFile("\n".join(records).encode())
    assert file.format == "snap"
    assert {name: each.sum for name, each in distributions(file).items()} == {"rtt_ns": 12}
    assert {name: each.sum for name, each in distributions(file, last_only=False).items()} == {"rtt_ns": 12}
    assert counts(list(file), "rtt_ns") == (2, 5, 12)
    assert [sample.cookie for sample in last_samples(file)] == [1, 2]


def test_all_amounts_present() -> None:
    found = distributions(sockets({"rtt_ns": 5, "uid": 1000, "drops": 0}, {"rtt_ns": 6, "send_bps": 2.5}))
    assert {name: (each.count, each.sum) for name, each in found.items()} == {
        "rtt_ns": (2, 11),
        "drops": (1, 0),
        "send_bps": (1, 2.5),
    }
    assert set(FIELDS) - set(AMOUNTS) == {
        *("time_ns", "line", "index", "local_port", "peer_port", "uid", "inode", "cookie", "fwmark", "tos", "tclass"),
        "class_id",
    }


@pytest.mark.parametrize("field", ["state", "nope", "users", "extra"])
def test_fields_without_numbers(field: str) -> None:
    with pytest.raises(ValueError, match=f"^a socket has no numeric field {field}$"):
        distribution(sockets({}), field)


LINE = (
    "ESTAB 0 0 10.1.{}.{}:443 10.0.0.9:{}\n\t skmem:(r0,rb131072,t0,tb87040,f0,w{},o0,bl0,d0) cubic rto:204 rtt:{}/2 \
mss:1448 cwnd:10 bytes_acked:1000 segs_out:4 segs_in:5 send 2896000bps lastsnd:4 pacing_rate 5792000bps \
delivery_rate 1000000bps busy:40ms rcv_space:14480 rcv_ssthresh:64088 minrtt:3 snd_wnd:65280\n"
)


def test_ten_thousand_sockets() -> None:
    text = "State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n" + "".join(
        LINE.format(n >> 8, n & 255, 1024 + n, n * 7, n % 90 + 1) for n in range(10_000)
    )
    found = distributions(SnapshotFile(text.encode()))
    # w is 7 × n: value number 2500 is 7 × 2499.
    assert found["wmem_queued_bytes"] == Distribution(
        10_000, 0, 69_993, 34_996.5, 349_965_000, 17_493, 34_993, 52_493, 59_493, 66_493, 69_293
    )
