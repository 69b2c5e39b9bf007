"""One run of a scenario in three namespaces of the current kernel.

In: a scenario, the kernel's name, an empty folder. Out: the folder with captures, samples, logs and truth. It needs
root in that kernel; it runs inside the lab's kernel, and on a host with `--engine netns`.
"""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from tcpwin.lab.batches import batched
from tcpwin.lab.cross import CrossTraffic
from tcpwin.lab.forked import Fork
from tcpwin.lab.measure import Capture, Sampler, first_line
from tcpwin.lab.network import ADDRESSES, SPACES, NetworkError, Step, Undo, ends_of, inside, only_run, plan, remove
from tcpwin.lab.scenario import Scenario
from tcpwin.lab.settings import list_settings
from tcpwin.lab.uninterrupted import Signals, signals_held
from tcpwin.lab.workload import DEFAULT_PORT, Log

SCHEMA = "tcpwin/lab/1"
TRUTH = "meta.json"
COST = Path("/proc/tcp_lab")
_SETTINGS = (
    *("tcp_adv_win_scale", "tcp_collapse_max_bytes", "tcp_congestion_control", "tcp_mem", "tcp_moderate_rcvbuf"),
    *("tcp_notsent_lowat", "tcp_rmem", "tcp_sack", "tcp_slow_start_after_idle", "tcp_timestamps"),
    *("tcp_window_scaling", "tcp_wmem"),
)
_SETTLE_S = 0.3
_QUEUES = (("sender", "s0"), ("router", "r0"), ("router", "r1"), ("far", "q0"), ("far", "q1"))


def run_here(
    scenario: Scenario, kernel: str, out: Path, tick: Callable[[int], None], *, halts: bool = False
) -> dict[str, Any]:
    """Run it, write everything into the folder, undo all changes, and return the truth.

    `halts`: this kernel halts afterwards, so nothing needs undoing.

    Raises:
        NetworkError: another run is active in this kernel, the network cannot be created, or the workload failed.
    """
    with only_run(), signals_held() as signals:
        if not halts:
            return _run_alone(scenario, kernel, out, tick, signals)
        for step in _steps(scenario, kernel):
            step.act()
        return _run(scenario, kernel, out, tick, signals)


def _steps(scenario: Scenario, kernel: str) -> list[Step]:
    steps = plan(scenario, kernel)
    return batched(steps) if scenario.measure.quick else steps


def _run_alone(
    scenario: Scenario, kernel: str, out: Path, tick: Callable[[int], None], signals: Signals
) -> dict[str, Any]:
    undo: list[Undo] = []
    try:
        remove()
        for step in _steps(scenario, kernel):
            # Between steps, never within one: its changes must be known to be undone.
            with signals.may_leave():
                pass
            back = step.act()
            if back is not None:
                undo.append(back)
        return _run(scenario, kernel, out, tick, signals)
    finally:
        remove()
        for back in reversed(undo):
            back()


def _run(scenario: Scenario, kernel: str, out: Path, tick: Callable[[int], None], signals: Signals) -> dict[str, Any]:
    if COST.exists():
        COST.write_text("0")
    for end in ADDRESSES:
        _write_facts(end, out)
    # Fork first: a thread may hold a lock that a fork then waits for.
    forks = _fork_workload(scenario, out) if scenario.measure.quick else {}
    cross = CrossTraffic(scenario.route, out) if scenario.route.cross_algorithm else None
    capture: Capture | None = None
    sampler: Sampler | None = None
    try:
        capture = Capture(out, signals) if scenario.measure.capture else None
        sampler = Sampler(out, scenario.measure.sample_ms, tick)
        with signals.may_leave():
            time.sleep(_SETTLE_S)
            if cross:
                cross.go()
        summaries = _run_forks(forks, out, signals) if forks else _run_workload(scenario, out, signals)
        with signals.may_leave():
            time.sleep(2 * scenario.route.rtt_ms / 1000 + _SETTLE_S)
    finally:
        for fork in forks.values():
            fork.end()
        if cross:
            cross.end()
        increases = {} if sampler is None else sampler.finish()
        captured = capture.finish() if capture else {}
    queues = _write_queues(scenario, out)
    cost = COST.read_text(encoding="ascii") if COST.exists() else ""
    truth = {
        "schema": SCHEMA,
        "scenario": scenario.name,
        "kernel": kernel,
        "release": platform.release(),
        "seed": scenario.seed,
        "path": list_settings(scenario.route),
        "hosts_are": list_settings(scenario.hosts),
        "hosts": {
            end: {
                "address": ADDRESSES[end],
                "log": summaries[end],
                "counter_increases": increases[end],
                "most_tcp_memory_pages": sampler.most_tcp_memory_pages,
                "capture": captured.get(end),
            }
            for end in ADDRESSES
        },
        "dropped_by_queue": queues,
        "try_rmem_schedule": _read_cost(cost, out),
    }
    write_truth(out, truth)
    return truth


def write_truth(out: Path, truth: dict[str, Any]) -> None:
    """Write a run's truth into its folder."""
    (out / TRUTH).write_text(json.dumps(truth, indent=1) + "\n", encoding="utf8")


def _run_workload(scenario: Scenario, out: Path, signals: Signals) -> dict[str, dict[str, Any]]:
    """Run both ends with the commands that a user would type, and return their logs' summaries."""
    name = scenario.workload.name
    serve = _options(scenario.serve)
    drive = _options(scenario.drive)
    started = {"sender": _start("sender", out, "serve", name, "--listen", ADDRESSES["sender"], *serve)}
    try:
        with signals.may_leave():
            # Either it listens or it reports why not. On a busy host this takes a while.
            said = first_line(started["sender"])
            time.sleep(_SETTLE_S)
        started["receiver"] = _start("receiver", out, "drive", name, ADDRESSES["sender"], *drive)
        with signals.may_leave():
            complaints = {"receiver": started["receiver"].communicate()[1]}
            if started["receiver"].returncode:
                started["sender"].kill()
            complaints["sender"] = said + started["sender"].communicate()[1]
    finally:
        for process in started.values():
            if process.poll() is None:
                process.kill()
                process.wait()
    # The sender first: a refused reader is only a consequence.
    for end, process in started.items():
        if process.returncode > 0:
            raise NetworkError(f"the workload {name} failed at the {end}: {complaints[end].strip()[-300:]}")
    return {end: _summary(out / f"log_{end}.jsonl") for end in ADDRESSES}


def _fork_workload(scenario: Scenario, out: Path) -> dict[str, Fork]:
    """Start both ends as forks, with the sender's socket listening."""
    where = (ADDRESSES["sender"], DEFAULT_PORT)
    listener = inside("sender", lambda: socket.create_server(where))

    def serve() -> None:
        with (out / "log_sender.jsonl").open("w", encoding="utf8") as log:
            scenario.workload.serve(listener, scenario.serve, Log(log))

    def drive() -> None:
        with (out / "log_receiver.jsonl").open("w", encoding="utf8") as log:
            scenario.workload.drive(where, scenario.drive, Log(log))

    ends = {"sender": serve, "receiver": drive}
    forks = {end: Fork(end, act, out / f"complaint_{end}.txt") for end, act in ends.items()}
    listener.close()
    return forks


def _run_forks(forks: dict[str, Fork], out: Path, signals: Signals) -> dict[str, dict[str, Any]]:
    for fork in forks.values():
        fork.go()
    with signals.may_leave():
        for fork in reversed(forks.values()):
            fork.wait()
    return {end: _summary(out / f"log_{end}.jsonl") for end in forks}


def _options(settings: Any) -> list[str]:
    options: list[str] = []
    for each in fields(settings):
        value = getattr(settings, each.name)
        for part in value if isinstance(value, tuple) else (value,):
            options += [f"--{each.name.replace('_', '-')}", str(part)]
    return options


def _start(end: str, out: Path, *arguments: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-P", "-c", "from tcpwin.cli import main; main()", "lab", *arguments]
    argv = ["ip", "netns", "exec", SPACES[end], *program, "--log", str(out / f"log_{end}.jsonl")]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ)


def _summary(log: Path) -> dict[str, Any]:
    last: dict[str, Any] = {}
    with log.open(encoding="utf8") as lines:
        for line in lines:
            last = json.loads(line)
    return {name: value for name, value in last.items() if name not in ("time_ns", "event")}


def _write_facts(end: str, out: Path) -> None:
    """Write this host's kernel and relevant settings."""

    def settings() -> str:
        found = [(name, Path("/proc/sys/net/ipv4") / name) for name in _SETTINGS]
        return "".join(f"net.ipv4.{name} = {path.read_text().strip()}\n" for name, path in found if path.exists())

    text = inside(end, settings)
    whole = Path("/proc/sys/net/ipv4/tcp_mem")
    if "net.ipv4.tcp_mem" not in text:
        text += f"net.ipv4.tcp_mem = {whole.read_text().strip()}\n"
    (out / f"sysctl_{end}.txt").write_text(text, encoding="ascii")
    (out / f"uname_{end}.txt").write_text(f"{platform.release()}\n", encoding="ascii")


def _write_queues(scenario: Scenario, out: Path) -> dict[str, int]:
    """Write each queue's statistics, and return its dropped frames."""
    shown: dict[str, tuple[str, ...]] = {f"{end}_{device}": ("qdisc", "show", "dev", device) for end, device in _QUEUES}
    if scenario.route.policer_mbps:
        shown["router_policer"] = ("filter", "show", "dev", "r0", "parent", "ffff:")
    dropped = {}
    with (out / "tc.txt").open("w", encoding="utf8") as file:
        for name, words in shown.items():
            end, what = name.split("_")
            if end not in ends_of(scenario):
                continue
            argv = ["tc", "-n", SPACES[end], "-s", *words]
            text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
            file.write(f"[{end} {what}]\n{text}")
            # A nested queue counts the same drop again.
            counts = [int(count) for count in re.findall(r"dropped (\d+)", text)]
            dropped[name] = max(counts, default=0) if scenario.route.queue != "droptail" else sum(counts)
    return dropped


def _read_cost(text: str, out: Path) -> dict[str, int]:
    """Return the cost of tcp_try_rmem_schedule() counted by the lab's kernel; histograms go into files.

    The histogram of copied bytes belongs to the run; that of CPU time to the host.
    """
    head, *histograms = text.split("@")
    for histogram in histograms:
        name, _, rows = histogram.partition(":\n")
        is_host = name.startswith("host_")
        path = out / f"{'host-' if is_host else ''}hist_receiver.txt"
        path.write_text(f"@try_rmem_schedule_{name}:\n{rows}", encoding="ascii")
    values = dict(line.split() for line in head.splitlines())
    return {name: int(value) for name, value in values.items() if "host" not in name}
