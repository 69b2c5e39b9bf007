"""ICMP errors about segments, joined to the connections that they quote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNREACHABLE = {
    0: "network unreachable",
    1: "host unreachable",
    2: "protocol unreachable",
    3: "port unreachable",
    4: "fragmentation needed",
    9: "network prohibited",
    10: "host prohibited",
    13: "administratively prohibited",
}
_V6_UNREACHABLE = {0: "no route", 1: "administratively prohibited", 3: "address unreachable", 4: "port unreachable"}
_KINDS = {4: "source quench", 5: "redirect", 11: "time to live exceeded", 12: "parameter problem"}
_V6_KINDS = {2: "packet too big", 3: "hop limit exceeded", 4: "parameter problem"}
_UNREACHABLE_KIND = {4: 3, 6: 1}


@dataclass(frozen=True, slots=True)
class IcmpError:
    """An ICMP or ICMPv6 error that quotes a segment (RFC 792, RFC 4443).

    Attributes:
        version: 4 or 6; `kind` and `code` are the message's type and code.
        mtu: MTU of the next hop, from an error about a packet that was too big; 0 without one.
        reporter: the host or router that sent the error.
        seq, ip_len: sequence number and IP length of the quoted segment.
        connection: the quoted connection's number, or None if the capture lacks it.
        direction: the side that sent the quoted segment, ``a`` or ``b``; None without a connection.
    """

    frame: int
    time_ns: int
    version: int
    kind: int
    code: int
    mtu: int
    reporter: str
    seq: int
    ip_len: int
    connection: int | None
    direction: str | None

    @classmethod
    def from_engine(cls, values: Mapping[str, Any]) -> IcmpError:
        facts = dict(values)
        is_from_initiator = facts.pop("is_from_initiator")
        side = None if is_from_initiator is None else "a" if is_from_initiator else "b"
        return cls(**facts, direction=side)

    @property
    def is_too_big(self) -> bool:
        """Whether a router rejected the segment because it was too large."""
        return (self.version, self.kind, self.code) == (4, 3, 4) or (self.version, self.kind) == (6, 2)

    @property
    def is_unreachable(self) -> bool:
        """Whether the destination is unreachable for packets of any size."""
        return self.kind == _UNREACHABLE_KIND[self.version] and not self.is_too_big

    @property
    def text(self) -> str:
        """The message's name in lower case."""
        if self.kind == _UNREACHABLE_KIND[self.version]:
            return (_UNREACHABLE if self.version == 4 else _V6_UNREACHABLE).get(self.code, "unreachable")
        return (_KINDS if self.version == 4 else _V6_KINDS).get(self.kind, f"ICMP type {self.kind}")
