"""The lab runs over time: the shipped traces equal those of the bundles, and their values are possible."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

import pytest
from cases import all_cases

import tcpwin
from tcpwin.errors import SnapshotError
from tcpwin.reference import Run, compare, read_trace, reference, references, trace, write_traces

CAPTURES = Path(__file__).parents[2] / "captures"
MS, SECOND = 1_000_000, 1_000_000_000
LAB = [(each, run) for each in references() if each.startswith("lab-") for run in references()[each].runs]
TRACED = [run for _, run in LAB if trace(run) is not None]


def name_of(run: Run) -> str:
    return f"{run.reference}/{run.name}"


@pytest.mark.parametrize("kernel", ["stock", "patched"])
def test_the_shipped_trace_is_the_bundles(kernel: str) -> None:
    shipped = trace(reference("lab-oscil-300ms").run(f"170p2-{kernel}"))
    found = read_trace(CAPTURES / "reference" / f"oscil-300ms-170p2-{kernel}.zip")
    assert shipped == found


def test_a_trace_by_hand() -> None:
    """ss_sender.txt, 1767225602.011537408: busy:948ms, minrtt:300, bytes_sent:217200, bytes_acked:101360."""
    found = read_trace(CAPTURES / "reference" / "oscil-300ms-170p2-stock.zip")
    assert found.time_ns[0] == (948 + 300) * MS
    assert (found.window_bytes[0], found.flight_bytes[0], found.acked_bytes[0]) == (229376, 217200 - 101360, 101360)
    # ss omits snd_wnd while the window is closed.
    assert 0 in found.window_bytes


def test_sender_and_packets_agree() -> None:
    """The same transfer by its socket and by its packets: largest flight, window, acknowledged data."""
    path = CAPTURES / "reference" / "bulk-300ms-4m2-stock.zip"
    found = read_trace(path)
    data = tcpwin.analyze(path, capture="sender.pcap.gz").connections[0].b_to_a
    assert max(found.flight_bytes) == pytest.approx(data.flight_max_bytes, rel=0.01)
    assert max(found.window_bytes) == data.receive_window_max_bytes
    # The program closes when everything is in its buffer: from then on the socket is no longer established.
    assert found.acked_bytes[-1] <= data.acked_bytes


@all_cases("run", TRACED, ids=name_of)
def test_every_shipped_trace_is_possible(run: Run) -> None:
    found = trace(run)
    assert run.rate_bps is not None
    assert all(before < after for before, after in pairwise(found.time_ns))
    assert all(before <= after for before, after in pairwise(found.acked_bytes))
    assert run.rtt_ns < found.time_ns[0] < 3 * SECOND
    # The window never exceeds the settings' maximum, and the flight never exceeds the largest window so far.
    assert max(found.window_bytes) <= run.window_bytes * 1.01
    assert max(found.flight_bytes) <= max(found.window_bytes)
    for (begin, mine), (end, theirs) in pairwise(zip(found.time_ns, found.acked_bytes, strict=True)):
        assert (theirs - mine) * 8e9 / (end - begin) <= 1.02 * run.rate_bps


def test_written_traces_are_read_again() -> None:
    run = reference("lab-bulk-300ms").run("512m2-stock")
    found = trace(run)
    assert found is not None
    out = io.StringIO()
    write_traces({"512m2-stock": found}, out)
    shipped = Path(tcpwin.__file__).parent / "reference" / "traces" / "lab-bulk-300ms.csv"
    lines = shipped.read_text(encoding="ascii").splitlines()
    assert out.getvalue().splitlines() == [line for line in lines if line.startswith(("run,", "512m2-stock,"))]


def test_the_run_that_is_drawn_is_the_verdicts() -> None:
    found = compare(
        tcpwin.analyze(CAPTURES / "reference" / "bulk-300ms-4m2-stock.zip", capture="sender.pcap.gz").connections[0]
    )
    assert found.traced is found.best is reference("lab-bulk-300ms").run("512m2-stock")


def test_published_figures_have_no_course() -> None:
    assert trace(reference("cloudflare-oscil-300ms").run("170p2")) is None


def test_a_bundle_without_samples_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError):
        read_trace(tmp_path)
