"""TCP settings of Windows: `netsh interface tcp show global`, and the list of PowerShell's `Get-NetTCPSetting`.

In: lines ``label : value``, possibly with trailing remarks and within other text. Out: a WindowsSample per table or
profile. Labels stay in the host's language; the level is recognised in any language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from tcpwin.hosts.format import Format
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.windows_host import WindowsSample, autotuning, normal_level

_ROW = re.compile(r"\s{0,8}(\S.{0,99}?)\s{0,50}: ?(.*)")
_RULE = re.compile(r"-{5,}\s*")
_PROMPT = re.compile(r"(?:PS )?[A-Za-z]:[^>]*>")
_REMARK = re.compile(r"\s>>.*$")
_NOTE = re.compile(r"\*\* |overriding any local/policy")
_KNOWN_TEXT = ("Querying active state...", "TCP Global Parameters", "Ok.")
_MAX_ROWS = 1000
_LEVEL_LABEL = re.compile(r"auto-?\s?tuning level", re.IGNORECASE)
# Each occurs in some version from Vista to 11, and in nothing else likely to be in such a file.
_LABELS = frozenset(
    (
        "receive-side scaling state",
        "chimney offload state",
        "netdma state",
        "direct cache access (dca)",
        "direct cache acess (dca)",
        "receive window auto-tuning level",
        "add-on congestion control provider",
        "ecn capability",
        "rfc 1323 timestamps",
        "initial rto",
        "receive segment coalescing state",
        "non sack rtt resiliency",
        "max syn retransmissions",
        "fast open",
        "fast open fallback",
        "hystart",
        "proportional rate reduction",
        "pacing profile",
    )
)
_PROVIDERS = frozenset(("none", "default", "ctcp", "dctcp", "cubic", "newreno", "bbr2", "ledbat"))
_PROFILE = "SettingName"
_CMDLET_LABELS = frozenset((_PROFILE, "AutoTuningLevelLocal", "CongestionProvider", "InitialCongestionWindow(MSS)"))


def recognise(head: list[str]) -> int:
    """Score these lines as such settings."""
    rows = [match for line in head if (match := _ROW.fullmatch(_bare(line)))]
    known = sum(match[1].lower() in _LABELS for match in rows)
    cmdlet = sum(match[1] in _CMDLET_LABELS for match in rows)
    if known >= 2 or cmdlet >= 2:
        return 95
    values = [match[2].strip().lower() for match in rows]
    switches = sum(value in ("enabled", "disabled") for value in values)
    has_rule = any(_RULE.fullmatch(line) for line in head)
    return 60 if has_rule and switches >= 3 and any(autotuning(value) for value in values) else 0


def read(lines: Lines) -> Iterator[WindowsSample]:
    """Yield samples of the tables in these lines."""
    table = _Table()
    heading = _Heading(lines)
    for text in lines:
        row = _ROW.fullmatch(_bare(text))
        label = row[1] if row else ""
        is_rule = bool(_RULE.fullmatch(text))
        if table.values and (row is None or is_rule or label == _PROFILE or table.block != lines.block):
            yield table.sample()
            table = _Table()
        if row is None and text.strip():
            table.is_open = is_rule
        if is_rule:
            heading.drop()
        elif row and not _PROMPT.match(text) and (table.is_open or _is_known(label)) and len(table.values) < _MAX_ROWS:
            if not table.values:
                table = _Table(is_open=True, line=lines.number, time_ns=lines.time_ns, block=lines.block)
            table.add(label, row[2].strip())
        elif text.strip() and text.strip() not in _KNOWN_TEXT and not _PROMPT.match(text) and not _NOTE.match(text):
            heading.add(text)
    if table.values:
        yield table.sample()
    heading.reject()


class _Heading:
    """Lines that are classified only when a rule follows: a table's title, in any language, and the lines before it."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._kept: list[tuple[int, str]] = []

    def add(self, text: str) -> None:
        self._kept.append((self._lines.number, text))
        if len(self._kept) > 2:
            number, oldest = self._kept.pop(0)
            self._lines.reject(oldest, number=number)

    def drop(self) -> None:
        """Handle a rule: the line above is its title, and netsh's line before that ends in dots."""
        title_number = self._lines.number - 1
        self._kept = [
            (number, text)
            for number, text in self._kept
            if number != title_number and not (number >= title_number - 2 and text.rstrip().endswith("..."))
        ]
        self.reject()

    def reject(self) -> None:
        for number, text in self._kept:
            self._lines.reject(text, number=number)
        self._kept = []


class _Table:
    """Rows of one table."""

    def __init__(
        self, *, is_open: bool = False, line: int = 0, time_ns: int | None = None, block: int | None = None
    ) -> None:
        self.is_open = is_open
        self.line = line
        self.time_ns = time_ns
        self.block = block
        self.values: dict[str, str] = {}

    def add(self, label: str, value: str) -> None:
        self.values[label] = value

    def sample(self) -> WindowsSample:
        level = _find_level(self.values)
        return WindowsSample(self.time_ns, self.line, level, self.values, self.values.get(_PROFILE))


def _bare(line: str) -> str:
    """Return a row without a trailing remark."""
    return _REMARK.sub("", line, count=1) if ">>" in line else line


def _is_known(label: str) -> bool:
    return label.lower() in _LABELS or label in _CMDLET_LABELS


def _find_level(values: dict[str, str]) -> str | None:
    if values.get("AutoTuningLevelEffective") == "GroupPolicy":
        return normal_level(values.get("AutoTuningLevelGroupPolicy", "")) or None
    if "AutoTuningLevelLocal" in values:
        return normal_level(values["AutoTuningLevelLocal"]) or None
    for label, value in values.items():
        if _LEVEL_LABEL.search(label):
            return normal_level(value) or None
    # Values are in English on every host, labels are not. "disabled" is a value of many settings: then it is the row
    # before the provider of congestion control, as in all versions.
    named = [value for value in values.values() if value != "disabled" and autotuning(value)]
    if len(named) == 1:
        return normal_level(named[0])
    rows = list(values.values())
    for before, value in pairwise(rows):
        if value.lower() in _PROVIDERS and autotuning(before):
            return normal_level(before)
    return None


FORMAT = Format("netsh", "TCP settings of Windows: netsh interface tcp show global, Get-NetTCPSetting", recognise, read)
