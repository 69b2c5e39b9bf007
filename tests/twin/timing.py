"""tmp"""
from __future__ import annotations
from dataclasses import dataclass

@dataclass(slots=True)
class Ledger:
    at: tuple | None = None
    least_ns: int | None = None

    def sent(self, end, segment):
        if self.at is None: self.at = (segment.time_ns, end)
    def forget(self): self.at = None
    def acknowledged(self, acked, ack, segment):
        if self.at is None or self.at[1] > ack: return None
        el = segment.time_ns - self.at[0]
        self.at = None
        if el < 0: return None
        self.least_ns = el if self.least_ns is None else min(self.least_ns, el)
        return el
