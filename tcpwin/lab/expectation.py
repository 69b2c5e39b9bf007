"""Claims of a scenario about its run: ``receiver.TcpExtPruneCalled == 0``, ``receiver.rate_bps >= 900e6``.

In: a line; a run's truth. Out: whether it holds, with the actual value. A capitalised name is a counter's increase at
that host; any other is a value of the summary in that host's log, or ``most_tcp_memory_pages``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tcpwin.errors import TcpwinError

_CLAIM = re.compile(r"(sender|receiver)\.(\w{1,80}) (==|!=|>=|<=|>|<) ([+-]?[0-9]+(?:\.[0-9]+)?(?:e[0-9]{1,2})?)")
_OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class ClaimError(TcpwinError):
    """An invalid claim."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An end, a name, an operator and a number."""

    end: str
    name: str
    operator: str
    number: float
    text: str

    def found(self, truth: Mapping[str, Any]) -> float | None:
        """Return the claim's actual value, or None if the run has none. A counter that did not change is 0."""
        host = truth["hosts"][self.end]
        if self.name[0].isupper():
            return float(host["counter_increases"].get(self.name, 0))
        value = host.get(self.name, host["log"].get(self.name))
        return None if value is None else float(value)

    def holds(self, truth: Mapping[str, Any]) -> bool:
        """Whether the run met the expectation."""
        value = self.found(truth)
        return value is not None and bool(_OPERATORS[self.operator](value, self.number))


def read_claim(text: str, *, where: str) -> Claim:
    """Parse a claim."""
    found = _CLAIM.fullmatch(text)
    if found is None:
        raise ClaimError(f"{where}: '{text[:80]}' is not a claim such as 'receiver.TcpExtPruneCalled == 0'")
    return Claim(found[1], found[2], found[3], float(found[4]), text)
