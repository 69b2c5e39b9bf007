"""Assignment of hosts' settings to the ends of a connection, with the reason.

In: a connection with its hosts' snapshots. Out: End of the sender and of the receiver. Settings of two hosts are never
merged: snapshots that no address, name or socket assigns to an end are used at neither, with a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tcpwin.analysis import DirectionName
from tcpwin.hosts import Host
from tcpwin.kernel import Kernel, adv_win_scale_of, kernel_of
from tcpwin.limits import Connection, role_of

_WORDS = {
    "client": ("client",),
    "server": ("server",),
    "sender": ("sender", "snd"),
    "receiver": ("receiver", "rcv"),
}


@dataclass(frozen=True, slots=True)
class End:
    """One end of a connection, according to its host's snapshots.

    Attributes:
        role: ``sender`` or ``receiver``; `name` is the verdict's name: client, server, sender or receiver.
        side: ``a`` or ``b``.
        label: the host's label; None without a snapshot of this end.
        how: why the snapshot belongs to this end; empty without one.
        settings: sysctls by dotted name.
        release: kernel release as from ``uname -r``; None if unknown, like `kernel`.
    """

    role: str
    name: str
    side: str
    address: str
    label: str | None = None
    how: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    release: str | None = None
    kernel: Kernel | None = None
    adv_win_scale: int | None = None

    def sizes(self, name: str) -> tuple[int, int, int] | None:
        """Return a setting with three sizes, such as tcp_rmem, or None if unknown."""
        try:
            sizes = tuple(int(part) for part in self.settings[f"net.ipv4.{name}"].split())
        except (KeyError, ValueError):
            return None
        return (sizes[0], sizes[1], sizes[2]) if len(sizes) == 3 and min(sizes) > 0 else None


def ends_of(connection: Connection, direction: DirectionName) -> tuple[End, End, tuple[str, ...]]:
    """Return the sender's end, the receiver's, and notes about snapshots assigned to neither.

    Args:
        direction: direction of the data, ``a_to_b`` or ``b_to_a``.
    """
    found, homeless = _homes(connection, direction)
    notes = []
    if homeless:
        notes.append(
            f"settings of {' and '.join(homeless)} are used at neither end, because their host is unknown; name the "
            "hosts, such as client=FILE server=FILE"
        )
    ends = []
    for role, side in _sides(direction).items():
        hosts = found[side]
        if len(hosts) > 1:
            labels = " and ".join(host.label or "a file without a name" for host, _ in hosts)
            notes.append(f"{labels} both claim to be the {role}: neither's settings are used")
            hosts = []
        ends.append(_end(connection, role, side, *(hosts[0] if hosts else (None, ""))))
    return ends[0], ends[1], tuple(notes)


def host_of(connection: Connection, direction: DirectionName, role: str) -> Host | None:
    """Return the host at an end, ``sender`` or ``receiver`` of a direction; None unless exactly one is known."""
    hosts = _homes(connection, direction)[0][_sides(direction)[role]]
    return hosts[0][0] if len(hosts) == 1 else None


def _sides(direction: DirectionName) -> dict[str, str]:
    return {"sender": direction[0], "receiver": direction[-1]}


def _homes(connection: Connection, direction: DirectionName) -> tuple[dict[str, list[tuple[Host, str]]], list[str]]:
    """Return the hosts at each side with the reason, and the labels of those at neither."""
    sides = _sides(direction)
    found: dict[str, list[tuple[Host, str]]] = {"a": [], "b": []}
    homeless = []
    hosts = connection.analysis.hosts
    for host in hosts:
        at = _sides_of(connection, host, sides)
        if not at and len(hosts) == 1 and not host.sides:
            at = dict.fromkeys("ab", "the only host with snapshots: assumed for both ends")
        for side, how in at.items():
            found[side].append((host, how))
        if not at and (host.settings is not None or host.kernel is not None):
            homeless.append(host.label or "a file without a host's name")
    return found, homeless


def _sides_of(connection: Connection, host: Host, sides: Mapping[str, str]) -> dict[str, str]:
    """Return a host's sides with the reason: its sockets first, then its name."""
    own = {side for side, each in connection.hosts.items() if each is host} | (
        set() if connection.hosts else set(host.sides)
    )
    if own:
        return dict.fromkeys(sorted(own), "its snapshot has the connection's socket")
    at = {
        side: f"named by its address {end.address}"
        for side, end in (("a", connection.a), ("b", connection.b))
        if host.label == end.address
    }
    if at:
        return at
    word = host.label.lower()
    by_role = {role_of(connection, side): side for side in ("a", "b")} | dict(sides)
    for name, words in _WORDS.items():
        if name in by_role and any(word == each or word.startswith((f"{each}-", f"{each}_")) for each in words):
            return {by_role[name]: f"named {host.label}"}
    return {word: f"named {host.label}"} if word in ("a", "b") else {}


def _end(connection: Connection, role: str, side: str, host: Host | None, how: str) -> End:
    address = (connection.a if side == "a" else connection.b).address
    name = role_of(connection, side)
    if host is None:
        return End(role, name, side, address)
    settings = {} if host.settings is None else host.settings.values
    release = settings.get("kernel.osrelease") if host.kernel is None else host.kernel.release
    kernel = (None if host.kernel is None else host.kernel.version) or kernel_of(host.settings)
    return End(
        role,
        name,
        side,
        address,
        label=host.label,
        how=how,
        settings=settings,
        release=release,
        kernel=kernel,
        adv_win_scale=adv_win_scale_of(host.settings),
    )
