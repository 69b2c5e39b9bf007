"""tmp"""
from __future__ import annotations
from dataclasses import dataclass
from twin.sequence import is_earlier

@dataclass(slots=True)
class Recovery:
    gap_ns: int = 0
    gap_tsval: int | None = None

    def note_hole(self, segment) -> None:
        self.gap_ns = segment.time_ns
        self.gap_tsval = segment.tsval

    def judge(self, sent, segment, seq, end, *, is_never_seen, path_ns):
        if end <= sent.flight.una: return {"spurious_retransmission"}
        if is_never_seen:
            late = segment.time_ns - self.gap_ns < (3_000_000 if path_ns is None else path_ns)
            if segment.tsval is not None and self.gap_tsval is not None and segment.tsval != self.gap_tsval:
                late = is_earlier(segment.tsval, self.gap_tsval)
            if late: return {"out_of_order"}
        return {"retransmission"}
