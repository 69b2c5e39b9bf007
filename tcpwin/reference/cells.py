"""The published matrix and the lab's: one cell per workload, round trip, settings and kernel.

In: the references. Out: Cells. A cell's two runs agree in all of these and in their paths' rate; nothing is matched by
name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcpwin.reference.model import Reference, Run
from tcpwin.reference.read import references

LAB = "tcpwin's lab"
"""Source name of the lab's references."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the matrix.

    Attributes:
        workload, rtt_ns, rate_bps: see `Run`; `rate_bps` is the path's.
        rmem_max_bytes, adv_win_scale: the receiver's settings.
        is_patched: whether the kernel had the patch against collapsing large receive queues.
        published: None if the article has no such run; `ours` is the lab's.
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
    """Whether a reference contains the lab's runs, not published ones."""
    return reference.source.article == LAB


def matrix() -> Sequence[Cell]:
    """Return every lab run that repeats a published setting, longest round trip and largest buffer first."""
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
