"""Run one scenario and pack it, as `tcpwin lab run` does for each.

In: a scenario, a kernel, a folder. Out: the bundle there, and whether the run met the scenario's expectations.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpwin.lab.bundle import read_bundle, write_bundle, write_host_cost
from tcpwin.lab.expectation import Claim
from tcpwin.lab.kernel_build import DEFAULT_SERIES, kernel_path
from tcpwin.lab.network import NetworkError
from tcpwin.lab.runner import run_here, write_truth
from tcpwin.lab.scenario import Scenario
from tcpwin.lab.uml import run_in_uml
from tcpwin.lab.uninterrupted import signals_held

ENGINES = ("uml", "netns")
_HERE = "this host"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished run with its bundle.

    Attributes:
        bundle: the file.
        truth: data from the run's kernel and programs, the bundle's ``meta.json``.
        claims: the scenario's claims, whether they hold, and the actual values.
        elapsed_s: time on this host; None if the bundle already existed.
    """

    bundle: Path
    truth: dict[str, Any]
    claims: tuple[tuple[Claim, bool, float | None], ...]
    elapsed_s: float | None


def run_scenario(
    scenario: Scenario,
    kernel: str,
    folder: Path,
    *,
    series: str = DEFAULT_SERIES,
    engine: str = "uml",
    capture: bool = True,
    again: bool = False,
    tick: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Run a scenario on a kernel, unless its bundle already exists in the folder (`find_outcome`).

    Args:
        kernel: ``stock``, or ``patched``: the same kernel with `tcp_collapse_max_bytes` set.
        series: Linux series of the lab's kernel.
        engine: ``uml``, the lab's own kernel; ``netns``, this host's, as root.
        capture: whether to record packets.
        tick: called with the run's virtual time in nanoseconds.

    Raises:
        UmlError: the lab's kernel is not built, or ended without a result.
        NetworkError: the network cannot be created, or the workload failed.
    """
    if not again and (there := find_outcome(scenario, kernel, folder, series=series, engine=engine, capture=capture)):
        return there
    if not capture:
        scenario = scenario.without_capture()
    bundle = _bundle_path(scenario, kernel, folder, series, engine)
    began = time.monotonic()
    with signals_held() as signals, tempfile.TemporaryDirectory(prefix="tcpwin-lab-") as name:
        out = Path(name) / "results"
        out.mkdir()
        if engine == "uml":
            truth = run_in_uml(scenario, kernel, series, out, tick)
        else:
            check_engine(engine)
            truth = run_here(scenario, kernel, out, tick)
        truth["made_by"] = _made_by(engine, series)
        write_truth(out, truth)
        with signals.may_leave():
            write_bundle(out, scenario.text, bundle)
        write_host_cost(out, bundle.with_suffix(".host.txt"))
    return _outcome(scenario, kernel, bundle, truth, time.monotonic() - began, series)


def check_engine(engine: str) -> None:
    """Check that this user may use this engine.

    Raises:
        NetworkError: network namespaces on this host require root.
    """
    if engine == "netns" and os.geteuid():
        raise NetworkError("--engine netns creates network namespaces on this host, which requires root")


def find_outcome(
    scenario: Scenario,
    kernel: str,
    folder: Path,
    *,
    series: str = DEFAULT_SERIES,
    engine: str = "uml",
    capture: bool = True,
) -> Outcome | None:
    """Return the outcome of a run of the same scenario on the same kernel whose bundle already exists.

    A bundle without its kernel's program counts as made by this one.
    """
    if not capture:
        scenario = scenario.without_capture()
    bundle = _bundle_path(scenario, kernel, folder, series, engine)
    text, truth = read_bundle(bundle) or ("", {})
    made_by = _made_by(engine, series)
    if text != scenario.text or truth.get("made_by", made_by) != made_by:
        return None
    return _outcome(scenario, kernel, bundle, truth, None, series)


def _made_by(engine: str, series: str) -> str:
    """Return an id of the kernel's program, which depends on patch and configuration."""
    return kernel_path(series).name if engine == "uml" else _HERE


def _bundle_path(scenario: Scenario, kernel: str, folder: Path, series: str, engine: str) -> Path:
    which = kernel if series == DEFAULT_SERIES or engine != "uml" else f"{series}-{kernel}"
    return folder / f"{scenario.name}-{which}.zip"


def _outcome(
    scenario: Scenario, kernel: str, bundle: Path, truth: dict[str, Any], elapsed_s: float | None, series: str
) -> Outcome:
    expected = scenario.expect[kernel if series == DEFAULT_SERIES else series]
    claims = tuple((claim, claim.holds(truth), claim.found(truth)) for claim in expected)
    return Outcome(bundle, truth, claims, elapsed_s)
