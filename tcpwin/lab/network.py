"""Three network namespaces: sender, router, receiver; also a second router and sender if the path needs them.

In: a scenario. Out: the steps that create its network, each with the line shown to the user; and its removal. Addresses
and MAC addresses are fixed and preset, so that captures begin with the connection.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tcpwin.errors import TcpwinError
from tcpwin.lab.scenario import Route, Scenario

T = TypeVar("T")
SPACES = {end: f"tcpwin-{end}" for end in ("sender", "router", "receiver", "far", "cross")}
"""`far` is a second router behind the queue, `cross` the sender of cross traffic, which `far` reads."""
FAR_ADDRESS, CROSS_ADDRESS = "10.9.3.2", "10.9.4.1"
ADDRESSES = {"sender": "10.9.1.1", "receiver": "10.9.2.2"}
WHOLE_KERNEL = "this whole kernel"
DEVICES = {"sender": "s0", "receiver": "c0"}
_MACS = {
    "s0": "02:00:00:09:01:01",
    "r0": "02:00:00:09:01:fe",
    "r1": "02:00:00:09:02:fe",
    "c0": "02:00:00:09:02:02",
    "q0": "02:00:00:09:03:02",
    "q1": "02:00:00:09:03:fe",
    "x0": "02:00:00:09:04:01",
    "r2": "02:00:00:09:04:fe",
}
_LARGE_QUEUE = 2_000_000
_CARD_QUEUE_BYTES = 16 << 20
_FRAME_BYTES = 1514
_LOST_IN_A_BURST = 0.5
"""netem's bursts are measured in frames, not time: if all were lost, single frames sent by timeouts would be too."""
_ETHERNET_BYTES = 24
"""Preamble, checksum and interframe gap: 1 Gbit/s then carries 941 Mbit/s of payload."""
_SIOCETHTOOL = 0x8946
_ETHTOOL_STSO, _ETHTOOL_SGSO, _ETHTOOL_SGRO = 0x1F, 0x24, 0x2C
_CLONE_NEWNET = 0x4000_0000
_ALGORITHM = "net.ipv4.tcp_congestion_control"
_CROSS_BUFFERS = (("cross", "net.ipv4.tcp_wmem"), ("far", "net.ipv4.tcp_rmem"))
"""Large enough that buffers do not limit the second flow."""
_FRAME_MEMORY = Path("/sys/module/veth/parameters/rx_truesize")


class NetworkError(TcpwinError):
    """The network cannot be created here."""


_KERNEL_WIDE = (
    *("net.core.", "net.ipv4.lab_", "net.ipv4.tcp_mem", "net.ipv4.tcp_max_orphans", "net.ipv4.tcp_low_latency"),
    "net.ipv4.tcp_allowed_congestion_control",
    *("net.ipv4.udp_mem", "net.ipv4.inet_peer_", "net.ipv4.icmp_msgs_", "net.ipv4.fib_sync_mem"),
)
"""Settings that are global to a kernel; a kernel that has them per namespace is detected."""

Undo = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Step:
    """One change: the line that describes it, and a function that makes it and returns its undo.

    Changes that disappear with their namespace need no undo.
    """

    text: str
    act: Callable[[], Undo | None]
    argv: tuple[str, ...] = ()
    """The command, if the step is a single one."""


def plan(scenario: Scenario, kernel: str) -> list[Step]:
    """Return the steps that create a scenario's network, in order."""
    steps = [_command("ip", "netns", "add", SPACES[end]) for end in ends_of(scenario)]
    steps += _links(scenario)
    steps.append(_setting("router", "net.ipv4.ip_forward", "1"))
    if scenario.route.has_second_router:
        steps.append(_setting("far", "net.ipv4.ip_forward", "1"))
    steps += _shape(scenario)
    steps += _restricted(scenario)
    for end in ADDRESSES:
        steps += [_setting(end, name, value) for name, value in scenario.sysctl[end].items()]
    if kernel == "patched":
        limit = str(scenario.hosts.collapse_max_bytes)
        steps += [_setting(end, "net.ipv4.tcp_collapse_max_bytes", limit) for end in ADDRESSES]
    if scenario.hosts.read_ps_per_byte:
        steps.append(_setting("receiver", "net.ipv4.lab_read_ps_per_byte", str(scenario.hosts.read_ps_per_byte)))
    if scenario.hosts.frame_memory_bytes:
        steps.append(_write(_FRAME_MEMORY, str(scenario.hosts.frame_memory_bytes)))
    if scenario.hosts.gro_flush_us:
        steps += _merge_frames(scenario.hosts.gro_flush_us)
    return steps


def ends_of(scenario: Scenario) -> list[str]:
    """Return the namespaces that a scenario needs."""
    route = scenario.route
    ends = ["sender", "router", "receiver"]
    return ends + ["far"] * route.has_second_router + ["cross"] * bool(route.cross_algorithm)


@contextmanager
def only_run() -> Iterator[None]:
    """Refuse a concurrent run: all use the same namespace names, and each would remove the other's.

    The lock is an abstract socket name (unix(7)), which disappears with the process and leaves no file.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
        try:
            lock.bind("\0tcpwin-lab")
        except OSError:
            raise NetworkError("another run with --engine netns is under way on this host: wait for it") from None
        yield


def remove() -> None:
    """Remove the three namespaces, and with them their devices, queues and settings.

    Processes still running in one of them, as after a killed run, are ended because they would keep it alive.
    """
    for space in SPACES.values():
        if not _place(space).exists():
            continue
        # In a separate session, which the terminal's Ctrl-C does not reach.
        found = subprocess.run(
            ["ip", "netns", "pids", space], capture_output=True, text=True, check=False, start_new_session=True
        )
        for number in found.stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGKILL)
        subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False, start_new_session=True)


def inside(end: str, act: Callable[[], T]) -> T:
    """Call a function in a namespace, in a new thread because namespaces belong to threads."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            enter(end)
            outcome.append(act())
        except BaseException as error:  # noqa: BLE001 - it is raised again where it can be seen
            failure.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def enter(end: str) -> None:
    """Move this thread into a namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with _place(SPACES[end]).open("rb") as space:
        if libc.setns(space.fileno(), _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), space.name)


def _place(space: str) -> Path:
    """Return the path of a namespace's name, as used by ip-netns(8)."""
    return Path("/run/netns") / space


def _links(scenario: Scenario) -> list[Step]:
    """Return the links from the sender to the receiver, and of the second sender."""
    route, offload = scenario.route, scenario.hosts.offload
    first = scenario.hosts.initial_window_segments
    quick = ("quickack", "1") if scenario.hosts.quick_ack else ()
    window = (*quick, "initcwnd", str(first)) if first else quick
    last_router = ("far", "q1") if route.has_second_router else ("router", "r1")
    steps = _link("sender", "s0", "10.9.1.1", ("router", "r0"), "10.9.1.254", offload=offload, how=window)
    steps += _link("receiver", "c0", "10.9.2.2", last_router, "10.9.2.254", offload=offload, how=quick)
    if route.has_second_router:
        steps += _link("router", "r1", "10.9.3.1", ("far", "q0"), FAR_ADDRESS, offload=offload)
        steps.append(_command("ip", "-n", SPACES["far"], "route", "add", "default", "via", "10.9.3.1"))
    if route.cross_algorithm:
        steps += _link("cross", "x0", CROSS_ADDRESS, ("router", "r2"), "10.9.4.254", offload=offload)
    if route.mtu_bytes:
        steps.append(_command("ip", "-n", SPACES["router"], "link", "set", "dev", "r1", "mtu", str(route.mtu_bytes)))
    return steps


def _link(
    end: str,
    device: str,
    address: str,
    router: tuple[str, str],
    gateway: str,
    *,
    offload: bool,
    how: tuple[str, ...] = (),
) -> list[Step]:
    """Return a pair of devices, with addresses and the end's default route via `gateway`, with the options `how`."""
    host, (via, peer) = SPACES[end], router
    ends = ((end, device, address, gateway, peer), (via, peer, gateway, address, device))
    pair = ("type", "veth", "peer", "name", peer, "address", _MACS[peer], "netns", SPACES[via])
    steps = [_command("ip", "link", "add", device, "address", _MACS[device], "netns", host, *pair)]
    for whose, mine, my_address, other_address, other in ends:
        space = SPACES[whose]
        steps.append(_command("ip", "-n", space, "addr", "add", f"{my_address}/24", "dev", mine))
        if not offload:
            steps.append(_offload_off(whose, mine))
        steps.append(_command("ip", "-n", space, "link", "set", mine, "up"))
        neighbour = ("neigh", "add", other_address, "lladdr", _MACS[other], "dev", mine, "nud", "permanent")
        steps.append(_command("ip", "-n", space, *neighbour))
    steps.append(_command("ip", "-n", host, "route", "add", "default", "via", gateway, *how))
    return steps


def _restricted(scenario: Scenario) -> list[Step]:
    """Allow namespaces to use restricted features, and set the second sender's algorithm."""
    cross = scenario.route.cross_algorithm
    wanted = {each.get(_ALGORITHM, "") for each in scenario.sysctl.values()} | {cross}
    steps = []
    if "dctcp" in wanted:
        steps.append(_setting("sender", "net.ipv4.tcp_allowed_congestion_control", "reno cubic bbr dctcp"))
    if cross:
        steps.append(_setting("cross", _ALGORITHM, cross))
        steps += [_setting(end, name, "4096 1048576 33554432") for end, name in _CROSS_BUFFERS]
    return steps


def _shape(scenario: Scenario) -> list[Step]:
    """Return the card's rate at the sender, and policer, queue, delay, loss and reordering in the routers."""
    route = scenario.route
    rate_bps = round(route.rate_mbps * 1e6)
    # A bucket of 50 µs at that rate, but at least two frames.
    burst = max(3200, round(rate_bps / 8 * 50e-6))
    half_us = round(route.rtt_ms * 500)
    steps = [_tbf("sender", "s0", rate_bps, burst, _CARD_QUEUE_BYTES)]
    if route.policer_mbps:
        steps += _policer(route)
    if route.queue_bytes:
        # The whole delay is on the return path, so that the queue is in the router.
        steps += _queue(route)
        forward_us = half_us if route.has_disorder else 0
    else:
        forward_us = half_us
    forward = _delay(forward_us)
    if route.jitter_ms:
        forward.append(f"{round(route.jitter_ms * 1000)}us")
    if route.reorder_percent:
        forward += ["reorder", f"{route.reorder_percent}%"]
    forward += _loss(route)
    back = _delay(2 * half_us - forward_us)
    if route.ack_loss_percent:
        back += ["loss", f"{route.ack_loss_percent}%"]
    limit = ("limit", str(_LARGE_QUEUE))
    # Behind the queue and, on the return path, before it: cross traffic then has the same round trip.
    ways = (("far", "q1"), ("far", "q0")) if route.has_second_router else (("router", "r1"), ("router", "r0"))
    for (end, device), settings in zip(ways, (forward, back), strict=True):
        if settings:
            steps.append(
                _command("tc", "-n", SPACES[end], "qdisc", "add", "dev", device, "root", "netem", *settings, *limit)
            )
    return steps


def _loss(route: Route) -> list[str]:
    """Return random loss, or loss in bursts (Gilbert's model with Elliott's second chance)."""
    if route.burst_loss_percent:
        share = route.burst_loss_percent / 100 / _LOST_IN_A_BURST
        end = 1 / route.burst_frames
        begin = end * share / (1 - share)
        return ["loss", "gemodel", f"{100 * begin:.6f}%", f"{100 * end:.6f}%", f"{100 * _LOST_IN_A_BURST:g}%", "0%"]
    return ["loss", f"{route.loss_percent}%"] if route.loss_percent else []


def _queue(route: Route) -> list[Step]:
    """Return the bottleneck's rate and its queue: tail drop by bytes, or active queue management."""
    where = ("tc", "-n", SPACES["router"], "qdisc", "add", "dev", "r1")
    rate_bps = round(route.bottleneck_mbps * 1e6)
    if route.queue == "droptail":
        return [_tbf("router", "r1", rate_bps, 3200, route.queue_bytes)]
    bucket = _tbf("router", "r1", rate_bps, 3200, route.queue_bytes, "handle", "1:")
    limit = max(2, -(-route.queue_bytes // _FRAME_BYTES))
    # A target below the time of a frame would drop on an empty queue (RFC 8289, section 4.4).
    target_us = max(5000, round(1.5 * 8 * _FRAME_BYTES / route.bottleneck_mbps))
    words = ["limit", str(limit), "target", f"{target_us}us", "interval", "100ms", "ecn" if route.ecn else "noecn"]
    if route.mark_us:
        words += ["ce_threshold", f"{route.mark_us}us"]
    if route.queue == "fq_codel":
        words += ["memory_limit", "268435456"]
    return [bucket, _command(*where, "parent", "1:1", "handle", "10:", route.queue, *words)]


def _policer(route: Route) -> list[Step]:
    """Drop traffic into the router above a rate, with a token bucket and no queue."""
    router = ("tc", "-n", SPACES["router"])
    rate = ("rate", f"{round(route.policer_mbps * 1e6)}bit", "burst", str(route.policer_burst_bytes))
    action = ("action", "police", *rate, "conform-exceed", "drop")
    return [
        _command(*router, "qdisc", "add", "dev", "r0", "handle", "ffff:", "ingress"),
        _command(*router, "filter", "add", "dev", "r0", "parent", "ffff:", "protocol", "ip", "matchall", *action),
    ]


def _delay(delay_us: int) -> list[str]:
    return ["delay", f"{delay_us}us"] if delay_us else []


def _tbf(end: str, device: str, rate_bps: int, burst: int, limit: int, *handle: str) -> Step:
    sizes = ("burst", str(burst), "limit", str(limit), "overhead", str(_ETHERNET_BYTES))
    where = ("-n", SPACES[end], "qdisc", "add", "dev", device, "root")
    return _command("tc", *where, *handle, "tbf", "rate", f"{rate_bps}bit", *sizes)


def _merge_frames(flush_us: int) -> list[Step]:
    """Make the receiver's card merge frames (GRO) until a pause, like a card with interrupt coalescing."""

    def act() -> None:
        inside("receiver", lambda: _ethtool("c0", _ETHTOOL_SGRO, 1))
        run("ip", "netns", "exec", SPACES["receiver"], "sh", "-c", f"echo {1000 * flush_us} > {attribute}")

    attribute = "/sys/class/net/c0/gro_flush_timeout"
    return [Step(f"receiver: merge frames on c0 that come within {flush_us} us ({attribute})", act)]


def _offload_off(end: str, device: str) -> Step:
    def act() -> None:
        for command in (_ETHTOOL_STSO, _ETHTOOL_SGSO, _ETHTOOL_SGRO):
            inside(end, lambda command=command: _ethtool(device, command, 0))  # type: ignore[misc]

    return Step(f"{end}: {device} without segmentation and receive offload", act)


def _ethtool(device: str, command: int, value: int) -> None:
    """Set one feature by the ioctl that `ethtool -K` uses (linux/ethtool.h, struct ethtool_value)."""
    request = array.array("B", struct.pack("@II", command, value))
    address, _ = request.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, _SIOCETHTOOL, struct.pack("@16sP16x", device.encode(), address))


def _setting(end: str, name: str, value: str) -> Step:
    """Set a sysctl for one host, or for the whole kernel if it is global."""
    path = Path("/proc/sys") / name.replace(".", "/")

    is_wide = name.startswith(_KERNEL_WIDE)

    def act() -> Undo | None:
        try:
            inside(end, lambda: path.write_text(value))
        except (FileNotFoundError, PermissionError) as error:
            # A namespace lacks global settings or, on newer kernels, shows them read-only.
            if not path.exists():
                needs = "it takes the lab's own kernel (--engine uml)"
                raise NetworkError(f"this kernel has no setting {name}: {needs}") from None
            if not is_wide:
                why = "this kernel has it for all namespaces at once" if isinstance(error, FileNotFoundError) else ""
                raise NetworkError(f"{name} = {value}: {why or error.strerror}") from None
        except OSError as error:
            raise NetworkError(f"{name} = {value}: {error.strerror}") from None
        else:
            return None
        try:
            return _replace(path, value)
        except OSError as error:
            raise NetworkError(f"{name} = {value}: {error.strerror}") from None

    whose = f"{WHOLE_KERNEL}, set back at the end" if is_wide else end
    return Step(f"{whose}: {name} = {value}", act)


def _write(path: Path, value: str) -> Step:
    def act() -> Undo:
        if not path.exists():
            raise NetworkError(f"this kernel has no {path}: memory per frame takes the lab's own kernel (--engine uml)")
        return _replace(path, value)

    return Step(f"{WHOLE_KERNEL}, set back at the end: {path} = {value}", act)


def _replace(path: Path, value: str) -> Undo:
    before = path.read_text()
    path.write_text(value)

    def undo() -> None:
        path.write_text(before)

    return undo


def _command(*argv: str) -> Step:
    return Step(" ".join(argv), lambda: run(*argv), argv)


def run(*argv: str, stdin: str | None = None) -> None:
    """Run a command that must succeed, with `stdin` as its standard input."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, input=stdin)
    except FileNotFoundError:
        raise NetworkError(f"the program {argv[0]} is missing: install iproute2") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        hint = ": this kernel lacks sch_netem or sch_tbf (modprobe)" if "qdisc kind is unknown" in said else ""
        raise NetworkError(f"{' '.join(argv)}: {said.splitlines()[-1] if said else done.returncode}{hint}")
