"""Select captures for a test: `on(...)` checks each lab run at one end or both.

The names are grouped by the runs' properties; test_selection compares them with the runs' counters and scenarios.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from cases import check_all

ENDS = ("snd", "rcv")
LATE = ("mid_connection_noSYN",)
STALL = ("zero_window_stall5s",)
SLOW_READER = ("slow_reader",)
IPERF3 = ("iperf3_300ms_20mbit_512m2",)
# The reader closed while data was unread or still to come.
ABORTED = (
    *IPERF3,
    *SLOW_READER,
    "notsent_lowat_128k_466ms_10mbit",
    "notsent_lowat_off_466ms_10mbit",
    "oscil_10mbit_300ms_170p2_guard",
    "oscil_10mbit_300ms_170p2_vanilla",
    "oscil_10mbit_300ms_512m2_guard_vethtruesize",
)
# netem drops packets on the data's path or varies their delay.
ROUGH = ("loss1_cubic_sack1", "loss1_reno_sack0", "loss1_reorder_cubic_sack1", "reorder_only_cubic")
# A bulk reader takes data as it arrives.
STEADY = (
    "app_limited",
    "cooked_any",
    "no_wscale_85ms",
    "offload_on_bigframes",
    "rmem_1024k_196ms",
    "rmem_64k_196ms",
    "wscale_85ms",
)
SCENARIOS = (*ABORTED, *LATE, *ROUGH, *STALL, *STEADY, "idle_restart_ssai0", "idle_restart_ssai1")
# Reader and sender are not synchronised with five samples a second.
IRREGULAR = (
    *(scenario for scenario in ABORTED if scenario not in SLOW_READER),
    "loss1_cubic_sack1",
    "loss1_reno_sack0",
    "no_wscale_85ms",
    "rmem_64k_196ms",
)
CLOSED = tuple(scenario for scenario in SCENARIOS if scenario not in ABORTED)
# Bundled captures that are copies of a run's. Their truths in tests/lab/truth are the run's files with fewer samples.
COPIES = (
    ("cooked_any", "snd", "cooked-any"),
    ("idle_restart_ssai1", "snd", "idle-restart"),
    ("loss1_cubic_sack1", "snd", "loss-1-percent"),
    ("mid_connection_noSYN", "snd", "mid-connection"),
    ("no_wscale_85ms", "snd", "no-window-scaling"),
    ("offload_on_bigframes", "snd", "offload-big-frames"),
    ("rmem_64k_196ms", "snd", "receive-buffer-64k"),
    ("rmem_64k_196ms", "rcv", "receive-buffer-64k-receiver"),
    ("slow_reader", "snd", "slow-reader"),
    ("slow_reader", "rcv", "slow-reader-receiver"),
    ("wscale_85ms", "snd", "window-scaling"),
    ("zero_window_stall5s", "snd", "zero-window-stall"),
)
# The copy contains only the first packets of the run.
CUT_COPIES = ("mid-connection",)


def on(
    scenarios: Iterable[str] = SCENARIOS,
    *,
    ends: Iterable[str] = ENDS,
    without: Iterable[str] = (),
    copies: bool = True,
    cut: bool = True,
    of: int = 1,
    first: int = 0,
) -> Callable[[Any], Any]:
    """Run a check with `run` on these scenarios at these ends, and on the copies; `cut`: also on truncated ones.

    One test by day checks all of its runs, or one in `of` starting from `first`; another at night checks the rest, and
    the copies with identical packets.
    """
    chosen = [scenario for scenario in scenarios if scenario not in set(without)]
    runs = [(scenario, end, "") for scenario in chosen for end in ends]
    for copy in COPIES if copies else ():
        scenario, end, name = copy
        if scenario in chosen and end in ends and (cut or name not in CUT_COPIES):
            runs.append(copy)
    night = [each for place, each in enumerate(runs) if (each[2] and each[2] not in CUT_COPIES) or place % of != first]
    day = [each for each in runs if each not in night]
    parts = [pytest.param(day, id="day")] if day else []
    parts += [pytest.param(night, id="night", marks=pytest.mark.nightly)] if night else []

    def decorate(check: Callable[..., None]) -> Any:
        @functools.wraps(check)
        def run_all(captures: list[tuple[str, str, str]], **fixtures: Any) -> None:
            from lab.runs import read_run

            named = (("-".join(filter(None, each)), {"run": read_run(*each)}) for each in captures)
            check_all(check, named, fixtures)

        signature = inspect.signature(check)
        captures = inspect.signature(run_all, follow_wrapped=False).parameters["captures"]
        others = [value for name, value in signature.parameters.items() if name != "run"]
        run_all.__signature__ = signature.replace(parameters=[captures, *others])  # type: ignore[attr-defined]
        return pytest.mark.parametrize("captures", parts)(run_all)

    return decorate
