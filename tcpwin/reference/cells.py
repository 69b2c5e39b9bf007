"""The published matrix beside the lab's: workloads, round trips, settings and kernels, a cell each.

In: the references. Out: Cells. A cell's two runs agree in all of these, and in the rate of their paths; nothing is
paired by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcpwin.reference.model import Reference, Run
from tcpwin.reference.read import references

LAB = "tcpwin's lab"
"""The source that the lab's own references name."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of the matrix.

    Attributes:
        workload, rtt_ns, rate_bps: of the runs, as `Run` names them; `rate_bps` is the path's.
        rmem_max_bytes, adv_win_scale: the receiver's settings.
        is_patched: whether the kernel had the patch against collapsing large receive queues.
        published: None where the article has no such run; `ours` is the lab's.
    """

    workload: str
    rtt_ns: int
    rate_bps: float
    rmem_max_bytes: int
    adv_win_scale: int
    is_patched: bool
    published: Run | None
    ours: Run


def is_ours(reference: Reference) -> bool:
    """Whether a reference holds runs of the lab, not published ones."""
    return reference.source.article == LAB


def matrix() -> Sequence[Cell]:
    """Every run of the lab that repeats a published setting, the longest round trip and the largest buffer first."""
    published = {_place(run): run for each in references().values() if not is_ours(each) for run in each.runs}
    ours = [run for each in references().values() if is_ours(each) for run in each.runs]
    cells = []
    for run in ours:
        place = _place(run)
        if place is not None:
            cells.append(Cell(*place, published=published.get(place), ours=run))
    order = {workload: number for number, workload in enumerate(("oscillating-reader", "iperf3"))}
    return sorted(
        cells,
        key=lambda cell: (
            order.get(cell.workload, len(order)),
            cell.workload,
            -cell.rtt_ns,
            cell.is_patched,
            -cell.rmem_max_bytes,
        ),
    )


def _place(run: Run) -> tuple[str, int, float, int, int, bool] | None:
    if (
        run.rtt_ns is None
        or run.rate_bps is None
        or run.rmem_max_bytes is None
        or run.adv_win_scale is None
        or run.is_patched is None
    ):
        return None
    return run.workload, run.rtt_ns, run.rate_bps, run.rmem_max_bytes, run.adv_win_scale, run.is_patched
