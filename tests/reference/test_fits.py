"""The lab's runs next to a transfer: chosen by the cause of its limit, and never one that misleads."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcpwin
from tcpwin.limits import LIMIT_NAMES
from tcpwin.reference import Fits, find_fits, library, measure_connection
from tcpwin.reference.fits import AS_YOU_ARE, BEST, NEAR_RTT, ONE_CHANGE, OTHER_KERNEL, USUAL
from tcpwin.reference.measured import Measured

CAPTURES = Path(__file__).parents[2] / "captures"


@cache
def measured(name: str) -> Measured:
    """Return the worst connection of a bundled capture, measured."""
    found = measure_connection(tcpwin.analyze(CAPTURES / name).worst(1)[0])
    assert found is not None
    return found


def fits(name: str) -> Fits:
    return find_fits(measured(name))


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("lab/receive-buffer-64k.pcap.gz", "window"),
        ("lab/receive-buffer-64k-receiver.pcap.gz", "window"),
        ("lab/no-window-scaling.pcap.gz", "window"),
        ("lab/loss-1-percent.pcap.gz", "loss"),
        ("runs/iperf3_300ms_20mbit_512m2/snd.pcap.gz", "full"),
        ("runs/reorder_only_cubic/rcv.pcap.gz", "full"),
        ("lab/slow-reader.pcap.gz", "reader"),
        ("runs/app_limited/snd.pcap.gz", "writer"),
    ],
)
def test_a_bulk_transfer_has_a_run_with_its_limit(name: str, family: str) -> None:
    found = fits(name)
    run = found.run(AS_YOU_ARE)
    assert run is not None, found.why_not
    assert run.family == family
    # Random losses and the buffer that a slow reader fills first make runs differ more.
    rel = 0.5 if family in ("loss", "reader") else 0.25
    assert run.goodput_bps == pytest.approx(measured(name).goodput_bps, rel=rel)
    assert found.why_not is None


def test_a_small_window_lifted_is_as_fast_as_its_cost_says() -> None:
    """64 KB over 196 ms: 3 MB took 19 s, of which the window cost 17.4 s; the rest is slow start."""
    found = fits("lab/receive-buffer-64k.pcap.gz")
    change = found.run(ONE_CHANGE)
    assert change is not None
    assert change.limit == "congestion_control"
    assert change.goodput_bps == pytest.approx(15.3e6, rel=0.25)
    assert found.text is not None
    assert found.text.startswith("This transfer carried 1.26 Mbit/s. In the lab, a run like it carried ")
    assert " and one without its limit 1" in found.text


@pytest.mark.parametrize("name", ["lab/slow-reader.pcap.gz", "bundles/slow-reader.zip"])
def test_nothing_is_promised_where_the_path_is_unknown(name: str) -> None:
    """A reader of 1.76 Mbit/s, seen at the sender: whether the path carries 10 or 1,000 Mbit/s does not show."""
    assert measured(name).path_rate_bps is None
    assert fits(name).run(ONE_CHANGE) is None
    assert find_fits(replace(measured(name), path_rate_bps=95e6)).run(BEST) is not None


def test_a_short_transfer_is_not_promised_a_long_ones_rate() -> None:
    """Of 3 MB over 196 ms, slow start is a large part at any rate above 10 Mbit/s."""
    yours = measured("lab/receive-buffer-64k.pcap.gz")
    for rate_bps in (20e6, 95e6, 950e6):
        found = find_fits(replace(yours, path_rate_bps=rate_bps))
        for role in (ONE_CHANGE, BEST):
            run = found.run(role)
            if run is not None:
                longest = max(yours.volume_bytes * 8 / rate_bps / 0.196, 1) * 3.1
                assert min(run.length_rtts, 25) <= longest or run.family == "start", (rate_bps, role, run.name)


@pytest.mark.parametrize("rate_bps", [20e6, 95e6, 1e9])
def test_no_change_is_better_than_the_best(rate_bps: float) -> None:
    """A slow reader of 6 MB over 40 ms: the transfer is short at these rates."""
    found = find_fits(replace(measured("lab/slow-reader.pcap.gz"), path_rate_bps=rate_bps))
    change, best = found.run(ONE_CHANGE), found.run(BEST)
    assert best is not None or change is not None
    if change is not None:
        assert change.goodput_bps <= rate_bps * 1.5
        assert best is None or change.goodput_bps <= best.goodput_bps


def test_a_path_that_is_full_needs_no_change() -> None:
    found = fits("runs/iperf3_300ms_20mbit_512m2/snd.pcap.gz")
    assert found.run(ONE_CHANGE) is None
    assert {each.role for each in found.found} == {AS_YOU_ARE}


def test_both_ends_find_the_same_run() -> None:
    both = [fits(f"runs/loss1_cubic_sack1/{end}.pcap.gz").run(AS_YOU_ARE) for end in ("snd", "rcv")]
    assert both[0] is both[1]


def test_the_table_has_one_cell_for_each_run() -> None:
    found = fits("lab/receive-buffer-64k.pcap.gz")
    assert found.heads == ("", "yours", *(each.role for each in found.found))
    assert {len(row) for row in found.cells} == {len(found.heads)}
    rows = {name: cells for name, *cells in found.cells}
    assert rows["run"][1:] == [each.run.full_name for each in found.found]
    assert rows["limited by"][0] == "receive window"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rtt_ns": None}, "round trip or the throughput is unknown"),
        ({"volume_bytes": 5000}, "this one carried 5 kB"),
        ({"limit": "capture"}, "limit is unknown"),
        ({"limit": "round_trips"}, "do not include this limit (round trips)"),
        ({"window_mean_bytes": None}, "does not show the mean flight"),
        ({"rtt_ns": 5_000_000_000}, "has no run with this limit (receive window)"),
        ({"goodput_bps": 300_000.0}, "too far apart to compare"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_no_run_is_shown_without_a_reason_to_compare(change: dict[str, object], why: str) -> None:
    found = find_fits(replace(measured("lab/receive-buffer-64k.pcap.gz"), **change))
    assert found.run(AS_YOU_ARE) is None
    assert found.why_not is not None
    assert why in found.why_not


def test_bbr_is_not_compared_with_a_loss_based_sender() -> None:
    found = find_fits(replace(measured("lab/loss-1-percent.pcap.gz"), algorithm="bbr"))
    assert found.run(AS_YOU_ARE) is None


def test_memory_is_shown_on_both_kernels() -> None:
    pair = {
        run.is_patched: run for run in library().values() if run.family == "memory" and run.limit == "receiver_memory"
    }
    run = pair.get(True)
    assert run is not None, "the patched kernel drops what the stock one collapses"
    yours = replace(
        measured("lab/receive-buffer-64k.pcap.gz"),
        limit="receiver_memory",
        workload="oscillating-reader",
        rtt_ns=run.rtt_ns,
        path_rate_bps=run.path_rate_bps * 1448 / 1538,
        goodput_bps=run.goodput_bps,
    )
    found = find_fits(yours)
    assert found.run(AS_YOU_ARE) is run
    other = found.run(OTHER_KERNEL)
    if other is not None:
        assert (other.is_patched, other.rtt_ns, other.path_rate_bps) == (False, run.rtt_ns, run.path_rate_bps)


@given(
    limit=st.sampled_from(sorted(LIMIT_NAMES)),
    rtt_ns=st.integers(1, 10**12),
    goodput_bps=st.floats(1, 1e12),
    path_rate_bps=st.none() | st.floats(1, 1e12),
    window=st.none() | st.floats(1, 1e10),
    loss=st.floats(0, 1),
    volume=st.integers(1, 10**12),
    cost_share=st.floats(0, 1.5),
)
def test_no_run_contradicts_the_verdict(
    limit: str,
    rtt_ns: int,
    goodput_bps: float,
    path_rate_bps: float | None,
    window: float | None,
    loss: float,
    volume: int,
    cost_share: float,
) -> None:
    """Whatever is measured: the run like it has its limit, its round trip and about its rate; a change only gains."""
    duration_ns = max(1, round(volume * 8e9 / goodput_bps))
    yours = Measured(
        "connection 0",
        "b",
        rtt_ns=rtt_ns,
        goodput_bps=goodput_bps,
        path_rate_bps=path_rate_bps,
        window_mean_bytes=window,
        flight_max_bytes=None if window is None else round(window),
        loss_share=loss,
        volume_bytes=volume,
        duration_ns=duration_ns,
        limit=limit,
        is_problem=True,
        cost_ns=round(cost_share * duration_ns),
    )
    found = find_fits(yours)
    assert (found.run(AS_YOU_ARE) is None) is (found.why_not is not None)
    assert len({each.run.name for each in found.found}) == len(found.found)
    for each in found.found:
        assert max(rtt_ns / each.run.rtt_ns, each.run.rtt_ns / rtt_ns) <= NEAR_RTT
    if (run := found.run(AS_YOU_ARE)) is not None:
        assert run.limit == limit
        assert max(goodput_bps / run.goodput_bps, run.goodput_bps / goodput_bps) <= USUAL
    if (run := found.run(ONE_CHANGE)) is not None:
        assert run.limit != limit
        assert run.goodput_bps > goodput_bps
    if (run := found.run(BEST)) is not None:
        assert run.goodput_bps > goodput_bps
