"""Changes to predict: a lifted limit, a setting of one end, a different loss, round trip or rate of the path.

In: words such as ``receiver.tcp_rmem=32M``. Out: Changes. It parses words and predicts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tcpwin.errors import ArgumentError
from tcpwin.kernel import SCALING_RATIO_SINCE
from tcpwin.limits import LIMITS
from tcpwin.paths.path import Path

LIFTABLE = tuple(limit for limit in LIMITS if limit not in ("capture", "none", "peer_silent"))
"""Limits that may be lifted individually, excluding unknown ones and those without an owner."""
_SIZE = re.compile(r"(\d{1,13})([kKmMgG]?)(?:i?B)?")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
SETTINGS = {
    "tcp_rmem": "receiver",
    "tcp_adv_win_scale": "receiver",
    "tcp_wmem": "sender",
    "tcp_congestion_control": "sender",
    "tcp_slow_start_after_idle": "sender",
}
"""The settings that are modelled, each with the end whose value counts."""
_ALGORITHMS = ("cubic", "reno", "bbr")


class ChangeError(ArgumentError):
    """An invalid change, or one without effect on the given direction."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes; None for unchanged properties.

    Attributes:
        lifted: lifted limits.
        rmem_max_bytes, adv_win_scale: the receiver's; the first is the third value of tcp_rmem.
        wmem_max_bytes: the sender's, likewise.
        algorithm: the sender's congestion control.
        is_idle_restart_off: the sender's tcp_slow_start_after_idle is 0.
        loss_share, round_trip_ns, rate_bps: the path's; the rate is the link rate, including headers.
        words: all changes as given.
    """

    lifted: tuple[str, ...] = ()
    rmem_max_bytes: int | None = None
    adv_win_scale: int | None = None
    wmem_max_bytes: int | None = None
    algorithm: str | None = None
    is_idle_restart_off: bool = False
    loss_share: float | None = None
    round_trip_ns: float | None = None
    rate_bps: float | None = None
    words: tuple[str, ...] = field(default=())

    @property
    def is_empty(self) -> bool:
        """Whether there is no change."""
        return self == Changes(words=self.words)

    @property
    def only_lift(self) -> str | None:
        """Return the lifted limit if it is the only change; a loss of 0 lifts loss."""
        if self.loss_share == 0 and self == Changes(loss_share=self.loss_share, words=self.words):
            return "path_loss"
        is_alone = len(self.lifted) == 1 and self == Changes(lifted=self.lifted, words=self.words)
        return self.lifted[0] if is_alone else None


def read_changes(
    path: Path,
    settings: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    *,
    lift: Iterable[str] = (),
    loss_share: float | None = None,
    round_trip_ns: float | None = None,
    rate_bps: float | None = None,
) -> Changes:
    """Read changes of a path.

    Args:
        settings: new values such as those of ``receiver.tcp_rmem``; the end is sender, receiver, client or server.

    Raises:
        ChangeError: a setting is unknown, has an invalid value, or does not affect this direction.
    """
    if isinstance(settings, str):
        raise ChangeError(
            f"settings are a mapping such as {{'receiver.tcp_rmem': '32M'}}, not the text {settings[:80]!r}"
        )
    found: dict[str, int | str | bool] = {}
    words = []
    ends = {"sender": "sender", "receiver": "receiver", path.sender.name: "sender", path.receiver.name: "receiver"}
    for name, value in settings.items() if isinstance(settings, Mapping) else settings:
        end, _, rest = name.partition(".")
        setting = rest.removeprefix("net.ipv4.")
        if end not in ends or not setting:
            raise ChangeError(
                f"{name[:80]!r} names no end: write {' or '.join(sorted(ends))}, such as receiver.tcp_rmem=32M"
            )
        if setting not in SETTINGS:
            raise ChangeError(f"{setting[:80]!r} is not modelled; these are: {', '.join(SETTINGS)}")
        if SETTINGS[setting] != ends[end]:
            other = path.sender if ends[end] == "sender" else path.receiver
            raise ChangeError(
                f"{setting} of the {other.name} bounds nothing here: the {other.name} is the {ends[end]}, and the "
                f"{SETTINGS[setting]}'s counts"
            )
        kernel = path.receiver.kernel
        if setting == "tcp_adv_win_scale" and kernel is not None and kernel >= SCALING_RATIO_SINCE:
            raise ChangeError(
                f"tcp_adv_win_scale has no effect from Linux 6.6 on, and the {path.receiver.name} has "
                f"{path.receiver.release}: the kernel measures the window's share of each connection's buffer"
            )
        read = _read(setting, value)
        if read.keys() & found.keys():
            raise ChangeError(f"{setting} of the {ends[end]} is given twice")
        found |= read
        words.append(f"{ends[end]}.{setting}={value}")
    lifts = tuple(dict.fromkeys(lift))
    for limit in lifts:
        if limit not in LIFTABLE:
            raise ChangeError(f"{limit[:80]!r} is not a limit that can be lifted; these are: {', '.join(LIFTABLE)}")
        words.append(f"lift {limit}")
    if loss_share is not None and not 0 <= loss_share < 1:
        raise ChangeError("loss is from 0 to below 100 %")
    for name, number, most, bounds in (
        ("round trip", round_trip_ns, 3600e9, "1 ns to 1 hour"),
        ("rate", rate_bps, 1e15, "1 bit/s to 1 Pbit/s"),
    ):
        if number is not None and not 1 <= number <= most:
            raise ChangeError(f"a {name} is {bounds}")
    words += [f"loss {100 * loss_share:g} %"] if loss_share is not None else []
    words += [f"round trip {round_trip_ns / 1e6:g} ms"] if round_trip_ns is not None else []
    words += [f"rate {rate_bps / 1e6:g} Mbit/s"] if rate_bps is not None else []
    return Changes(
        lifted=lifts,
        loss_share=loss_share,
        round_trip_ns=round_trip_ns,
        rate_bps=rate_bps,
        words=tuple(words),
        **found,  # type: ignore[arg-type]
    )


def size_of(setting: str, value: str | None) -> int | str | None:
    """Return a setting's value in a form to compare: the largest of its sizes in bytes, else its text."""
    if value is None or setting not in ("tcp_rmem", "tcp_wmem"):
        return None if value is None else " ".join(value.split()).removeprefix("+")
    size = _SIZE.fullmatch(value.split()[-1])
    return value if size is None else int(size[1]) * _UNITS[size[2].lower()]


def _read(setting: str, value: str) -> dict[str, int | str | bool]:
    value = " ".join(value.split())
    if setting in ("tcp_rmem", "tcp_wmem"):
        sizes = [_SIZE.fullmatch(part) for part in value.split(" ")]
        if len(sizes) not in (1, 3) or not all(sizes) or sizes[-1] is None:
            raise ChangeError(f"{setting} is its largest size, or three sizes as sysctl has them, not {value[:80]!r}")
        size = int(sizes[-1][1]) * _UNITS[sizes[-1][2].lower()]
        if not 0 < size < 1 << 31:
            raise ChangeError(f"{setting} is from 1 byte to {(1 << 31) - 1:,}")
        return {f"{setting.removeprefix('tcp_')}_max_bytes": size}
    if setting == "tcp_congestion_control":
        if value not in _ALGORITHMS:
            raise ChangeError(f"{value[:40]!r} is not modelled; these are: {', '.join(_ALGORITHMS)}")
        return {"algorithm": value}
    if setting == "tcp_slow_start_after_idle":
        if value != "0":
            raise ChangeError("tcp_slow_start_after_idle can only be set to 0")
        return {"is_idle_restart_off": True}
    if not re.fullmatch(r"[+-]?\d{1,2}", value) or abs(int(value)) > 31:
        raise ChangeError(f"tcp_adv_win_scale is -31 to 31, not {value[:40]!r}")
    return {"adv_win_scale": int(value)}
