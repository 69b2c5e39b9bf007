"""The arithmetic of the table, from handwritten runs."""

from pathlib import Path

import pytest
from bench import tools
from bench.captures import MIB, Capture
from bench.measure import Run, RunError, run
from bench.report import render_markdown, render_text
from bench.rows import Row, all_rows

CAPTURES = {
    "A": Capture(Path("A.pcap"), 1_000_000, 200),
    "B": Capture(Path("B.pcap"), 10_000_000, 2_000),
    "small": Capture(Path("small.pcap"), 100, 5),
}


def runs_of(*cpu_s: float, peak_mib: int = 20) -> list[Run]:
    return [Run(seconds, seconds, peak_mib * MIB) for seconds in cpu_s]


def rows_by_name(runs: dict[tuple[str, str], list[Run]]) -> dict[str, Row]:
    return {row.name: row for row in all_rows(runs, CAPTURES)}


def test_a_ratio_is_the_median_of_pairs_of_the_same_round() -> None:
    runs = {(tools.TCPWIN_ONE, "B"): runs_of(1.0, 2.0, 1.0), (tools.TCPTRACE_ALL, "B"): runs_of(4.0, 5.0, 2.0)}
    row = rows_by_name(runs)["B: CPU over `tcptrace -l -r -n`"]
    assert row.values == pytest.approx((0.25, 0.4, 0.5))
    assert row.value == pytest.approx(0.4)
    assert row.holds is False  # more than 0.33


def test_a_slow_peer_pairs_with_the_first_rounds() -> None:
    runs = {(tools.TCPWIN_ONE, "B"): runs_of(1.0, 9.0), (tools.TSHARK, "B"): runs_of(200.0)}
    row = rows_by_name(runs)["B: CPU over `tshark -T fields`"]
    assert row.values == pytest.approx((0.005,))
    assert (row.holds, row.reaches_aim) == (True, True)


def test_cost_per_packet_is_without_start_up() -> None:
    runs = {
        (tools.TCPWIN_ONE, "small"): runs_of(0.1),
        (tools.TCPWIN_ONE, "A"): runs_of(0.15),  # 50 ns per packet
        (tools.TCPWIN_ONE, "B"): runs_of(0.7),  # 60 ns per packet
    }
    row = rows_by_name(runs)["B over A: CPU per packet, less start-up"]
    assert row.values == pytest.approx((1.2,))
    assert row.holds is True


def test_memory_is_judged_by_its_highest_and_by_the_connections() -> None:
    runs = {
        (tools.TCPWIN, "A"): [*runs_of(1, 1, peak_mib=20), *runs_of(1, peak_mib=31)],
        (tools.TCPWIN, "B"): [*runs_of(1, 1, peak_mib=20), *runs_of(1, peak_mib=62)],
    }
    rows = rows_by_name(runs)
    # 60 MiB and 2,000 × (600 + 250) bytes are 61.62 MiB.
    assert rows["B: peak memory"].must == pytest.approx(61.621, abs=0.001)
    assert rows["B: peak memory"].holds is False
    assert rows["A: peak memory"].holds is True
    assert rows["A → B: growth of peak memory"].value == 31
    assert rows["A → B: growth of peak memory"].holds is False


def test_a_row_without_runs_is_left_out_and_one_without_bound_is_not_judged() -> None:
    rows = rows_by_name({(tools.TCPWIN_ONE, "A"): runs_of(0.1), (tools.TSHARK, "A"): runs_of(10.0)})
    assert "B: CPU over `tshark -T fields`" not in rows
    assert rows["A: CPU over `tshark -T fields`"].holds is None


def test_the_tables_show_small_ratios_as_fractions() -> None:
    runs = {(tools.TCPWIN_ONE, "B"): runs_of(1.0), (tools.TCPTRACE_ALL, "B"): runs_of(5.0)}
    text = render_markdown(all_rows(runs, CAPTURES), runs, CAPTURES)
    assert "`tcptrace -l -r -n` | 1/5.0 | 1/5.0 – 1/5.0 | ≤ 1/3.03 | ≤ 1/5 | yes, aim too |" in text
    assert "| B | tcptrace -l -r -n | 1 | 5.000 | 2 | 20 |" in text
    assert "1/5.0" in render_text(all_rows(runs, CAPTURES), runs, CAPTURES)


def test_a_run_counts_the_childs_own_cpu() -> None:
    burn = ["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]
    burnt = run(burn)
    assert burnt.cpu_s > 0.02
    slept = run(["sleep", "0.3"])
    assert slept.wall_s > 0.29
    assert slept.cpu_s < 0.1


def test_a_failed_run_is_not_measured() -> None:
    with pytest.raises(RunError, match="exit 3: no such thing"):
        run(["sh", "-c", "echo no such thing >&2; exit 3"])


def test_threads_are_judged_by_the_time_that_passes() -> None:
    runs = {
        (tools.TCPWIN_ONE, "B"): [Run(2.0, 2.0, 0), Run(2.0, 4.0, 0)],
        (tools.TCPWIN_TWO, "B"): [Run(2.2, 1.2, 0), Run(2.2, 2.0, 0)],
    }
    row = rows_by_name(runs)["B: wall time of two threads over one"]
    assert row.values == pytest.approx((0.6, 0.5))
    assert row.holds is True


def test_what_people_wait_for_and_start_up_are_compared_with_other_commands() -> None:
    runs = {
        (tools.TCPWIN, "B.gz"): [Run(5.0, 3.0, 0)],
        (tools.GZIP, "B.gz"): [Run(5.5, 6.0, 0)],
        (tools.TCPWIN_ONE, "--version"): runs_of(0.03),
        (tools.TCPWIN_ONE, "small"): runs_of(0.06),
        (tools.PYTHON, "small"): runs_of(0.02),
    }
    rows = rows_by_name(runs)
    assert (rows["B.gz: wall time over `gzip -dc`"].value, rows["B.gz: wall time over `gzip -dc`"].holds) == (0.5, True)
    assert rows["100 packets: CPU over `python3 -c pass`"].value == pytest.approx(3)
    assert rows["`--version`: CPU over `python3 -c pass`"].holds is False


def test_a_tables_cost_excludes_the_analysis() -> None:
    runs = {
        (tools.LIBRARY, "D"): [Run(2.0, 2.0, 900 * MIB)],
        (tools.POLARS, "D"): [Run(2.4, 2.4, 1_100 * MIB)],
        (tools.JSON, "D"): [Run(13.0, 13.0, 600 * MIB)],
    }
    rows = rows_by_name(runs)
    assert rows["D: CPU of a polars table of 20 columns"].value == pytest.approx(400)
    assert rows["D: memory of that table"].value == 200
    assert (rows["D: CPU of `--json`"].holds, rows["D: peak memory of `--json`"].holds) == (False, True)
