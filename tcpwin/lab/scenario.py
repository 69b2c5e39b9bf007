"""A scenario: path, hosts, workload and expectations, read from a TOML file.

In: a file, or the name of a bundled scenario. Out: a Scenario, or ScenarioError with the file, the table and the key.
It runs nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpwin.errors import TcpwinError
from tcpwin.lab.expectation import Claim, ClaimError, read_claim
from tcpwin.lab.kernel_build import SERIES
from tcpwin.lab.settings import SettingsError, read_settings, setting
from tcpwin.lab.workload import Workload, workloads
from tcpwin.units import name_text

KERNELS = ("stock", "patched")
SCENARIOS = Path(__file__).with_name("scenarios")
_NAME = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")
_SYSCTL = re.compile(r"net\.[a-z0-9_.]+")
QUEUES = ("droptail", "codel", "fq_codel")
CROSS = ("", "cubic", "reno", "bbr", "dctcp")
_NEWER = SERIES[1:]
_LEAST_MTU_BYTES = 576
_LEAST_SAMPLE_MS = 10
_TABLES = ("path", "host", "workload", "sysctl", "sysctl_sender", "sysctl_receiver", "measure", "expect")
_PLAIN = ("title", "sets", "source", "kernels", "seed")


class ScenarioError(TcpwinError):
    """An unreadable or contradictory scenario."""

    def __str__(self) -> str:
        # It may contain any text of the file, including terminal escape sequences.
        return name_text(super().__str__())


@dataclass(frozen=True, slots=True)
class Route:
    """The path: the sender's card, a router that delays and loses, the receiver."""

    rtt_ms: float = setting(0.0, "Round trip without queues; half of it each way.")
    rate_mbps: float = setting(
        1000.0, "Rate of the sender's card, including Ethernet's 24 bytes per frame.", least=0.001
    )
    loss_percent: float = setting(0.0, "Random loss of data frames.", most=100)
    ack_loss_percent: float = setting(0.0, "Random loss of frames in the return direction.", most=100)
    jitter_ms: float = setting(0.0, "Maximum random change of each data frame's delay, which reorders.")
    reorder_percent: float = setting(0.0, "Share of data frames sent immediately instead of delayed.", most=100)
    bottleneck_mbps: float = setting(0.0, "Rate of a queue in the router; 0 for none.")
    queue_bytes: int = setting(0, "Size of that queue, which drops the excess.")
    queue: str = setting("droptail", "Discipline of that queue.", words=QUEUES, is_always_listed=False)
    ecn: bool = setting(False, "CoDel marks instead of dropping if the hosts use ECN.", is_always_listed=False)
    mark_us: int = setting(0, "Mark each frame that waited longer (DCTCP's step); 0: none.", is_always_listed=False)
    burst_loss_percent: float = setting(0.0, "Share of data frames lost in bursts.", most=25, is_always_listed=False)
    burst_frames: float = setting(
        8.0, "Mean length of such a burst; half of its frames are lost.", least=1, is_always_listed=False
    )
    policer_mbps: float = setting(
        0.0, "A policer's rate: excess traffic is dropped, not queued.", is_always_listed=False
    )
    policer_burst_bytes: int = setting(0, "Its bucket.", is_always_listed=False)
    mtu_bytes: int = setting(
        0, "MTU of the link behind the router; 0: the hosts' 1500.", most=1500, is_always_listed=False
    )
    cross_algorithm: str = setting(
        "", "Algorithm of a second flow that shares the queue.", words=CROSS, is_always_listed=False
    )
    cross_start_s: float = setting(0.0, "Its start, after the first flow.", least=-60, is_always_listed=False)
    cross_s: float = setting(0.0, "Its duration; 0: to the end.", is_always_listed=False)

    @property
    def has_disorder(self) -> bool:
        """Whether frames are delayed individually."""
        return bool(self.jitter_ms or self.reorder_percent)

    @property
    def has_second_router(self) -> bool:
        """Whether the queue needs a separate router, because a device has only one discipline."""
        is_lossy = bool(self.loss_percent or self.burst_loss_percent)
        return bool(self.cross_algorithm or (self.queue_bytes and (is_lossy or self.has_disorder)))


@dataclass(frozen=True, slots=True)
class Hosts:
    """Properties of the hosts."""

    memory_mib: int = setting(1024, "Memory of the machine that the kernel sees.", least=128)
    frame_memory_bytes: int = setting(0, "Minimum receive memory per data frame; 0: veth's, about 1.05 per byte.")
    read_ps_per_byte: int = setting(
        0, "Time cost of a reader's copy; 0: none, because virtual time stops while it runs."
    )
    gro_flush_us: int = setting(0, "The receiver's card merges frames that arrive within this time.")
    offload: bool = setting(False, "Leave segmentation to the cards, so that captures contain large frames.")
    collapse_max_bytes: int = setting(6291456, "`tcp_collapse_max_bytes` of the patched kernel.")
    initial_window_segments: int = setting(
        0, "The sender's first congestion window, by its route; 0: the kernel's.", is_always_listed=False
    )
    quick_ack: bool = setting(
        False, "Neither host delays ACKs, by its route's `quickack` (ip-route(8)).", is_always_listed=False
    )


@dataclass(frozen=True, slots=True)
class Measure:
    """Recording options."""

    capture: bool = setting(True, "Capture headers at both ends.")
    sample_ms: int = setting(200, "Interval between samples of sockets, counters and memory; 0: only counters.")
    quick: bool = setting(False, "Create the network in batches without starting programs: less CPU, same result.")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One experiment.

    Attributes:
        name: file name without extension.
        title, source: what it shows, and where it was published.
        sets: the sets it belongs to.
        kernels: the kernels it runs on, of `stock` and `patched`.
        seed: seed of all random numbers in the kernel.
        sysctl: settings of each host, by ``sender`` and ``receiver``.
        serve, drive: settings of the workload's ends; the sender serves.
        expect: claims by kernel of the first of `SERIES`; claims for other series are by series.
        text: the file's text.
    """

    name: str
    title: str
    source: str
    sets: tuple[str, ...]
    kernels: tuple[str, ...]
    seed: int
    route: Route
    hosts: Hosts
    measure: Measure
    workload: Workload
    serve: Any
    drive: Any
    sysctl: Mapping[str, Mapping[str, str]]
    expect: Mapping[str, tuple[Claim, ...]]
    text: str

    def without_capture(self) -> Scenario:
        """Return the scenario without packet capture; its text differs, so it is a different scenario."""
        if not self.measure.capture:
            return self
        heading = "[measure]\n"
        if heading in self.text:
            text = self.text.replace(heading, f"{heading}capture = false\n")
        else:
            text = f"{self.text}\n{heading}capture = false\n"
        return read_scenario(self.name, text)


def find_scenario(name: str) -> Scenario:
    """Return a scenario by name or file path."""
    path = Path(name) if name.endswith(".toml") else SCENARIOS / f"{name}.toml"
    try:
        text = path.read_text(encoding="utf8")
    except FileNotFoundError:
        import difflib

        near = difflib.get_close_matches(name, scenario_names(), 3)
        hint = f"did you mean {', '.join(near)}" if near else "`tcpwin lab list` lists them"
        raise ScenarioError(f"unknown scenario {name}: {hint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: cannot be read: {error}") from None
    return read_scenario(path.stem, text)


def scenario_names() -> list[str]:
    """Return the names of the bundled scenarios."""
    return sorted(path.stem for path in SCENARIOS.glob("*.toml"))


def scenarios() -> Iterator[Scenario]:
    """Yield the bundled scenarios by name."""
    return (find_scenario(name) for name in scenario_names())


def read_scenario(name: str, text: str) -> Scenario:
    """Parse a scenario; error messages begin with `name`."""
    if not _NAME.fullmatch(name):
        raise ScenarioError(f"{name}: a scenario's name has lower-case letters, digits and hyphens only")
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ScenarioError(f"{name}: {error}") from None
    try:
        return _read(name, table, text)
    except (SettingsError, ClaimError) as error:
        raise ScenarioError(str(error)) from None


def _read(name: str, table: dict[str, Any], text: str) -> Scenario:
    for key, value in table.items():
        if key not in _TABLES + _PLAIN:
            raise ScenarioError(f"{name}: unknown key {key}; available: {', '.join(_PLAIN + _TABLES)}")
        if key in _TABLES and not isinstance(value, dict):
            raise ScenarioError(f"{name}: {key} must be a table, [{key}]")
    title = table.get("title")
    if not isinstance(title, str) or not title:
        raise ScenarioError(f'{name}: it needs a title = "…"')
    seed = table.get("seed", 1)
    if type(seed) is not int or not 1 <= seed < 1 << 63:
        raise ScenarioError(f"{name}: seed must be a whole number from 1")
    kernels = _words(name, table, "kernels", ["stock"])
    if not kernels or set(kernels) - set(KERNELS):
        raise ScenarioError(f"{name}: kernels must be of {', '.join(KERNELS)}")
    workload, ends = _workload(name, table.get("workload", {}))
    hosts = read_settings(Hosts, table.get("host", {}), where=f"{name}: [host]")
    route = read_settings(Route, table.get("path", {}), where=f"{name}: [path]")
    if problem := _contradiction(route, offload=hosts.offload):
        raise ScenarioError(f"{name}: [path]: {problem}")
    both = _sysctl(name, table, "sysctl")
    return Scenario(
        name=name,
        title=title,
        source=str(table.get("source", "")),
        sets=_words(name, table, "sets", []),
        kernels=kernels,
        seed=seed,
        route=route,
        hosts=hosts,
        measure=_measure(name, table.get("measure", {})),
        workload=workload,
        serve=ends["serve"],
        drive=ends["drive"],
        sysctl={end: {**both, **_sysctl(name, table, f"sysctl_{end}")} for end in ("sender", "receiver")},
        expect=_expect(name, table.get("expect", {})),
        text=text,
    )


def _contradiction(route: Route, *, offload: bool) -> str:
    """Return a description of contradictory settings, or an empty string."""
    plain = route.queue == "droptail"
    ecn_of_none = (route.ecn or route.mark_us) and plain
    checks = (
        (bool(route.queue_bytes) != bool(route.bottleneck_mbps), "bottleneck_mbps and queue_bytes go together"),
        (not plain and not route.queue_bytes, "a queue needs bottleneck_mbps and queue_bytes"),
        (ecn_of_none, "ecn and mark_us go with a queue that manages itself (codel, fq_codel)"),
        (route.loss_percent and route.burst_loss_percent, "loss is at random or in bursts, not both"),
        (
            bool(route.policer_mbps) != bool(route.policer_burst_bytes),
            "policer_mbps and policer_burst_bytes go together",
        ),
        (route.policer_mbps and offload, "a policer would drop a frame of 64 KB whole: not with offload"),
        (0 < route.mtu_bytes < _LEAST_MTU_BYTES, f"mtu_bytes must be {_LEAST_MTU_BYTES} or more"),
        (route.cross_algorithm and not route.queue_bytes, "cross traffic shares a queue: it needs queue_bytes"),
        (not route.cross_algorithm and (route.cross_start_s or route.cross_s), "cross traffic needs a cross_algorithm"),
    )
    return next((text for is_wrong, text in checks if is_wrong), "")


def _measure(name: str, table: dict[str, Any]) -> Measure:
    measure = read_settings(Measure, table, where=f"{name}: [measure]")
    if 0 < measure.sample_ms < _LEAST_SAMPLE_MS:
        raise ScenarioError(f"{name}: [measure]: sample_ms must be {_LEAST_SAMPLE_MS} or more, or 0")
    return measure


def _words(name: str, table: dict[str, Any], key: str, default: list[str]) -> tuple[str, ...]:
    found = table.get(key, default)
    if not isinstance(found, list) or any(not isinstance(word, str) for word in found):
        raise ScenarioError(f'{name}: {key} must be a list of words, ["…"]')
    return tuple(found)


def _workload(name: str, table: dict[str, Any]) -> tuple[Workload, dict[str, Any]]:
    wanted = table.get("name")
    workload = workloads().get(wanted) if isinstance(wanted, str) else None
    if workload is None:
        raise ScenarioError(f"{name}: [workload] needs a name of {', '.join(workloads())}")
    for key in table:
        if key not in ("name", "serve", "drive"):
            raise ScenarioError(f"{name}: [workload] has name, serve and drive, no {key}")
        if key != "name" and not isinstance(table[key], dict):
            raise ScenarioError(f"{name}: [workload] {key} must be a table, as {key}.bytes = 1000")
    kinds = {"serve": workload.serve_settings, "drive": workload.drive_settings}
    ends: dict[str, Any] = {
        end: read_settings(kind, table.get(end, {}), where=f"{name}: [workload.{end}]") for end, kind in kinds.items()
    }
    return workload, ends


def _sysctl(name: str, table: dict[str, Any], key: str) -> dict[str, str]:
    found = table.get(key, {})
    for setting_name, value in found.items():
        if not _SYSCTL.fullmatch(setting_name):
            raise ScenarioError(f'{name}: [{key}]: {setting_name} is not the name of a setting, as "net.ipv4.tcp_rmem"')
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise ScenarioError(f"{name}: [{key}]: {setting_name} must be text or a whole number")
    return {setting_name: str(value) for setting_name, value in found.items()}


def _expect(name: str, table: dict[str, Any]) -> dict[str, tuple[Claim, ...]]:
    for key, claims in table.items():
        if key not in ("all", *KERNELS, *_NEWER):
            raise ScenarioError(f"{name}: [expect] has {', '.join(('all', *KERNELS, *_NEWER))}, no {key}")
        if not isinstance(claims, list) or any(not isinstance(claim, str) for claim in claims):
            raise ScenarioError(f"{name}: [expect]: {key} must be a list of claims")
    wanted = {kernel: [*table.get("all", []), *table.get(kernel, [])] for kernel in KERNELS}
    # Claims for older kernels do not apply to newer ones: windows follow another rule since 6.6.
    wanted |= {series: table.get(series, []) for series in _NEWER}
    return {key: tuple(read_claim(text, where=f"{name}: [expect]") for text in texts) for key, texts in wanted.items()}
