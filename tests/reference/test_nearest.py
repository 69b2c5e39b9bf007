"""The published runs nearest to a transfer, and the reasons."""

from __future__ import annotations

from math import log2

import pytest

from tcpwin.reference import nearest, reference

MS, MIB = 1_000_000, 1 << 20


def names(**wanted: object) -> list[str]:
    """Return the nearest runs."""
    return [f"{near.run.reference}/{near.run.name}" for near in nearest(**wanted)]  # type: ignore[arg-type]


def test_the_same_path_and_workload_come_first() -> None:
    [first, *_] = nearest(
        rtt_ns=20 * MS, rate_bps=1e9, rmem_max_bytes=137 * MIB, workload="oscillating-reader", window_bytes=128 * MIB
    )
    assert (first.run.reference, first.run.name, first.distance) == ("cloudflare-oscil-20ms", "137p4", 0.0)
    assert first.why == (
        "round trip: 20 ms, the same",
        "rate: 1 Gbit/s, the same",
        "receive buffer: 137 MiB, the same",
        "receive window: 128 MiB, the same",
        "workload: oscillating-reader, the same",
    )


def test_a_number_counts_by_its_doublings() -> None:
    [first] = nearest(rtt_ns=240 * MS, rate_bps=5e8, workload="oscillating-reader", limit=1)
    assert first.run.rtt_ns == 300 * MS
    assert first.distance == pytest.approx(log2(300 / 240) + 1)
    assert first.why == (
        "round trip: 300 ms, yours 240 ms",
        "rate: 1 Gbit/s, yours 500 Mbit/s",
        "workload: oscillating-reader, the same",
    )


def test_the_nearest_of_a_long_path_with_a_small_buffer() -> None:
    """Iowa with the old settings: 121 ms, 16 MiB."""
    assert names(rtt_ns=130 * MS, rmem_max_bytes=16 * MIB, limit=1) == ["cloudflare-production/iowa-old"]
    assert names(workload="messages", rtt_ns=180 * MS) == [
        "ably-idle-restart/production",
        "ably-idle-restart/tcpping-on",
        "ably-idle-restart/tcpping-off",
    ]
    assert names(workload="max-send", limit=2) == [
        "tuning-memory-10000-sockets/tcp-mem-1gb",
        "tuning-memory-10000-sockets/tcp-mem-4gb",
    ]


def test_a_kernel_counts_by_its_memory_model() -> None:
    wanted = {"rtt_ns": 300 * MS, "workload": "oscillating-reader", "limit": 1}
    [older] = nearest(kernel="6.1.0-13-amd64", **wanted)  # type: ignore[arg-type]
    # Among equally near runs those of the same version come first.
    assert (older.run.reference, older.distance) == ("lab-oscil-300ms", 0.0)
    assert older.why[-1] == "kernel: 6.1.192, with the same memory model as yours"
    [published] = nearest(kernel="5.15.0-92-generic", **wanted)  # type: ignore[arg-type]
    assert (published.run.reference, published.distance) == ("cloudflare-default-kernel", 0.0)
    [newer] = nearest(kernel="6.6", **wanted)  # type: ignore[arg-type]
    # A run of unknown kernel is nearer than one whose kernel counts memory differently.
    assert (newer.run.reference, newer.distance) == ("cloudflare-oscil-300ms", 1.0)
    assert newer.why[-1] == "kernel: version not stated with the collapse patch, yours 6.6"
    found = nearest(kernel="6.6", limit=1000)
    [default] = [near for near in found if near.run.name == "iowa-new"]
    assert default.distance == 2.0
    assert default.why == ("kernel: 5.15.32 with the collapse patch, yours counts receive memory differently",)


def test_runs_without_measured_figures_are_left_out() -> None:
    found = {(near.run.reference, near.run.name) for near in nearest(rtt_ns=30 * MS, limit=1000)}
    assert ("tuning-buffer-size", "by-buffer-size") not in found
    assert ("tuning-buffer-size", "64k-at-30ms") not in found
    assert ("windows-autotuning", "normal") not in found
    assert ("passt-ramps", "24ms") in found


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({}, "no reference runs to compare with"),
        ({"rtt_ns": 0}, "a round trip of 0 is not above 0"),
        ({"rate_bps": -1.0}, r"a rate of -1\.0 is not above 0"),
        ({"kernel": "new"}, "new"),
    ],
)
def test_what_cannot_be_asked(wanted: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        names(**wanted)


def test_names_that_are_not_there() -> None:
    with pytest.raises(KeyError):
        reference("nothing")
    with pytest.raises(KeyError):
        reference("passt-ramps").run("1ms")
