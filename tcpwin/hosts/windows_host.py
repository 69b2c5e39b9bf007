"""The TCP settings of a Windows host or profile, and the effect of its autotuning level.

In: settings by label. Out: WindowsSample; Autotuning, with the window scale and windows of a level. The figures come
from two articles, named at each; None if neither states them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LARGEST_FIELD = 65_535
"""The largest value of the 16-bit window field (RFC 9293 §3.1)."""

_TECH_JOURNEY = "techjourney.net, TCP Window Scaling Auto Tuning May Slow Down Network Performance in Windows"
_MICROSOFT = "learn.microsoft.com, Performance tuning network adapters, Autotuning levels"
_RFC_7323 = "RFC 7323 §2.3: the field shifted, 65,535 at most"


@dataclass(frozen=True, slots=True)
class WindowsSample:
    """TCP settings of a Windows host, from `netsh interface tcp show global` or one profile of `Get-NetTCPSetting`.

    Attributes:
        time_ns: nanoseconds since the epoch; None if unknown.
        line: number of the first setting's line in its file, from 1.
        autotuning_level: disabled, highlyrestricted, restricted, normal, experimental or any other value, in lower case
            without spaces; None if absent.
        values: every setting by its label, in the language of the host.
        profile: profile of `Get-NetTCPSetting`, such as Internet; None for `netsh`.
    """

    time_ns: int | None
    line: int
    autotuning_level: str | None
    values: Mapping[str, str]
    profile: str | None = None

    @property
    def autotuning(self) -> Autotuning | None:
        """Return the level's effect, or None if unknown."""
        return None if self.autotuning_level is None else autotuning(self.autotuning_level)


@dataclass(frozen=True, slots=True)
class Autotuning:
    """Effect of a receive window autotuning level.

    Attributes:
        level: its name.
        shift: shift in the SYN's window scale option; None if the SYN has no such option.
        window_field: initial value of the window field, before scaling; None if not documented.
        initial_window_bytes: initial window; None if not documented.
        largest_window_bytes: largest window that the field and the shift allow.
        sources: source of each figure, by attribute.
    """

    level: str
    shift: int | None
    window_field: int | None
    initial_window_bytes: int | None
    largest_window_bytes: int
    sources: Mapping[str, str]


def autotuning(level: str) -> Autotuning | None:
    """Return a level's effect by its name in any case, or None if unknown."""
    return _LEVELS.get(normal_level(level))


def normal_level(text: str) -> str:
    """Return a level's name in lower case without spaces and hyphens: ``Highly Restricted`` is highlyrestricted."""
    return "".join(character for character in text.lower() if character.isalnum())


def _level(name: str, shift: int, shift_source: str, window_field: int | None = None) -> Autotuning:
    sources = {"shift": shift_source, "largest_window_bytes": _RFC_7323}
    if window_field is not None:
        sources |= {"window_field": _TECH_JOURNEY, "initial_window_bytes": f"{_TECH_JOURNEY}: the field shifted"}
    initial = None if window_field is None else window_field << shift
    return Autotuning(name, shift, window_field, initial, LARGEST_FIELD << shift, sources)


_LEVELS = {
    "disabled": Autotuning(
        "disabled",
        shift=None,
        window_field=None,
        initial_window_bytes=65_536,
        largest_window_bytes=LARGEST_FIELD,
        sources={
            "shift": f"{_MICROSOFT}: no scale factor available",
            "initial_window_bytes": f"{_TECH_JOURNEY}: locked to 65536; the field can say 65,535 at most",
            "largest_window_bytes": "RFC 9293 §3.1: 16 bits",
        },
    ),
    "highlyrestricted": _level("highlyrestricted", 2, f"{_TECH_JOURNEY}; {_MICROSOFT}", window_field=16_384),
    "restricted": _level("restricted", 4, _MICROSOFT),
    "normal": _level("normal", 8, f"{_TECH_JOURNEY}; {_MICROSOFT}", window_field=256),
    "experimental": _level("experimental", 14, _MICROSOFT),
}
