"""A scenario: path, hosts, workload and what is to come out, read from a TOML file.

In: a file, or the name of one of the scenarios that come with tcpwin. Out: a Scenario, or ScenarioError, which names
the file, the table and the key. It runs nothing.
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
from tcpwin.lab.settings import SettingsError, read_settings, setting
from tcpwin.lab.workload import Workload, workloads

KERNELS = ("stock", "patched")
SCENARIOS = Path(__file__).with_name("scenarios")
_NAME = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")
_SYSCTL = re.compile(r"net\.[a-z0-9_.]+")
_TABLES = ("path", "host", "workload", "sysctl", "sysctl_sender", "sysctl_receiver", "measure", "expect")
_PLAIN = ("title", "sets", "source", "kernels", "seed")


class ScenarioError(TcpwinError):
    """A scenario that cannot be read, or that contradicts itself."""


@dataclass(frozen=True, slots=True)
class Route:
    """The path: the sender's card, a router that delays and loses, the receiver."""

    rtt_ms: float = setting(0.0, "Round trip without queues; half of it each way.")
    rate_mbps: float = setting(1000.0, "Of the sender's card; 24 bytes a frame are Ethernet's own.", least=0.001)
    loss_percent: float = setting(0.0, "Of the data's frames, at random.", most=100)
    ack_loss_percent: float = setting(0.0, "Of the frames that answer, at random.", most=100)
    jitter_ms: float = setting(0.0, "Each frame of data is delayed by up to so much more or less, which reorders.")
    reorder_percent: float = setting(0.0, "Of the data's frames, sent at once instead of delayed.", most=100)
    bottleneck_mbps: float = setting(0.0, "Of a queue in the router; 0 for none.")
    queue_bytes: int = setting(0, "Of that queue, which drops what does not fit.")


@dataclass(frozen=True, slots=True)
class Hosts:
    """What the hosts are like."""

    memory_mib: int = setting(1024, "Of the machine that the kernel sees.", least=128)
    frame_memory_bytes: int = setting(
        0, "Receive memory of a frame of data, at least; 0: veth's own, about 1.05 a byte."
    )
    read_ps_per_byte: int = setting(0, "What a reader's copy costs; 0: nothing, as time stands still while it runs.")
    gro_flush_us: int = setting(0, "The receiver's card merges frames that come within so long of each other.")
    offload: bool = setting(False, "Leave segmentation to the cards, so that captures hold big frames.")
    collapse_max_bytes: int = setting(6291456, "`tcp_collapse_max_bytes` of the patched kernel.")


@dataclass(frozen=True, slots=True)
class Measure:
    """What is recorded."""

    capture: bool = setting(True, "Capture headers at both ends.")
    sample_ms: int = setting(200, "From sample to sample of sockets, counters and memory.", least=10)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One experiment.

    Attributes:
        name: of the file, without its ending.
        title, source: what it shows, and where it was published.
        sets: names of the sets it belongs to.
        kernels: which of `stock` and `patched` it runs on.
        seed: of every random number in the kernel.
        sysctl: of each host, by ``sender`` and ``receiver``.
        serve, drive: settings of the workload's ends; the sender serves.
        expect: claims by kernel.
        text: the file, as it was read.
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
        """The same without packets; its text says so, which makes it another scenario."""
        if not self.measure.capture:
            return self
        heading = "[measure]\n"
        if heading in self.text:
            text = self.text.replace(heading, f"{heading}capture = false\n")
        else:
            text = f"{self.text}\n{heading}capture = false\n"
        return read_scenario(self.name, text)


def find_scenario(name: str) -> Scenario:
    """A scenario by its name or by the path of its file."""
    path = Path(name) if name.endswith(".toml") else SCENARIOS / f"{name}.toml"
    try:
        text = path.read_text(encoding="utf8")
    except FileNotFoundError:
        import difflib

        near = difflib.get_close_matches(name, scenario_names(), 3)
        hint = f"did you mean {', '.join(near)}" if near else "`tcpwin lab list` lists them"
        raise ScenarioError(f"there is no scenario {name}: {hint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: cannot be read: {error}") from None
    return read_scenario(path.stem, text)


def scenario_names() -> list[str]:
    """Names of the scenarios that come with tcpwin."""
    return sorted(path.stem for path in SCENARIOS.glob("*.toml"))


def scenarios() -> Iterator[Scenario]:
    """The scenarios that come with tcpwin, by name."""
    return (find_scenario(name) for name in scenario_names())


def read_scenario(name: str, text: str) -> Scenario:
    """A scenario from its text; `name` begins the sentence of an error."""
    if not _NAME.fullmatch(name):
        raise ScenarioError(f"{name}: a scenario's name has lower-case letters, digits and hyphens only")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{name}: {error}") from None
    try:
        return _read(name, table, text)
    except (SettingsError, ClaimError) as error:
        raise ScenarioError(str(error)) from None


def _read(name: str, table: dict[str, Any], text: str) -> Scenario:
    for key, value in table.items():
        if key not in _TABLES + _PLAIN:
            raise ScenarioError(f"{name}: there is no key {key}; there are {', '.join(_PLAIN + _TABLES)}")
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
    route = read_settings(Route, table.get("path", {}), where=f"{name}: [path]")
    if route.queue_bytes and (route.loss_percent or route.jitter_ms or route.reorder_percent):
        raise ScenarioError(
            f"{name}: [path]: a queue loses what does not fit; it goes with no other loss or reordering"
        )
    if bool(route.queue_bytes) != bool(route.bottleneck_mbps):
        raise ScenarioError(f"{name}: [path]: bottleneck_mbps and queue_bytes go together")
    both = _sysctl(name, table, "sysctl")
    return Scenario(
        name=name,
        title=title,
        source=str(table.get("source", "")),
        sets=_words(name, table, "sets", []),
        kernels=kernels,
        seed=seed,
        route=route,
        hosts=read_settings(Hosts, table.get("host", {}), where=f"{name}: [host]"),
        measure=read_settings(Measure, table.get("measure", {}), where=f"{name}: [measure]"),
        workload=workload,
        serve=ends["serve"],
        drive=ends["drive"],
        sysctl={end: {**both, **_sysctl(name, table, f"sysctl_{end}")} for end in ("sender", "receiver")},
        expect=_expect(name, table.get("expect", {})),
        text=text,
    )


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
        if key not in ("all", *KERNELS):
            raise ScenarioError(f"{name}: [expect] has all, {', '.join(KERNELS)}, no {key}")
        if not isinstance(claims, list) or any(not isinstance(claim, str) for claim in claims):
            raise ScenarioError(f"{name}: [expect]: {key} must be a list of claims")
    return {
        kernel: tuple(
            read_claim(text, where=f"{name}: [expect]") for text in [*table.get("all", []), *table.get(kernel, [])]
        )
        for kernel in KERNELS
    }
