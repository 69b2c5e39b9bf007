"""libpcap, which compiles filters; the engine runs them.

libpcap would ask name servers for host names. It therefore compiles without access to sockets, which leaves /etc/hosts.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tcpwin.errors import FilterError, SourceError
from tcpwin.offline import run_offline

_SNAPLEN_BYTES = 262_144
"""A compiled program's return value for a matching packet: tcpdump's default."""
NOT_RESOLVED = "names are not looked up, as that would send them to name servers: use an address"
_WORD = re.compile(r"[\w.:\\-]*[^\W\d_][\w.:\\-]*")
_NUMBER = re.compile(r"0x[0-9a-f]+|[0-9a-f]*:[0-9a-f:.]*|[0-9a-f]{2}(?:-[0-9a-f]{2}){5}", re.ASCII | re.IGNORECASE)
_LANGUAGE = frozenset(
    "and or not host net mask port portrange src dst gateway proto protochain ether ip ip6 arp rarp tcp udp icmp icmp6 "  # noqa: SIM905
    "sctp igmp ah esp vrrp pim vlan mpls pppoed pppoes geneve less greater len broadcast multicast inbound outbound "
    "link wlan tr fddi atalk aarp decnet iso stp ipx netbeui lat moprc mopdl ra ta addr1 addr2 addr3 addr4 type "
    "subtype tcpflags tcp-fin tcp-syn tcp-rst tcp-push tcp-ack tcp-urg tcp-ece tcp-cwr icmptype icmpcode icmp6type "
    "icmp6code icmp-echo icmp-echoreply icmp-unreach".split()
)
"""Words of pcap-filter(7)."""
_ENDS = {"addr": "", "host": "", "src": "src ", "src_host": "src ", "dst": "dst ", "dst_host": "dst "}
_PORTS = {"port": "", "srcport": "src ", "dstport": "dst "}
_JUMP, _BACK = 0x05, 1 << 31


def compile_filter(expression: str, link_type: int) -> Sequence[tuple[int, int, int, int]]:
    """Compile an expression for a link type: (code, jt, jf, k) of each instruction.

    Raises:
        FilterError: libpcap rejects it, or has no terminating program for this link type.
        SourceError: libpcap is missing.
    """
    cypcap = _libpcap()

    def compile() -> list[tuple[int, int, int, int]]:
        with _empty_capture(link_type) as path, cypcap.open_offline(path) as capture:
            return list(capture.compile(expression))

    try:
        program = run_offline(compile, instead=lambda: _refuse_names(expression))
    except cypcap.Error as error:
        reason = str(error.args[-1]).removeprefix("can't parse filter expression: ")
        reason += f"; {NOT_RESOLVED}" if reason.startswith("unknown host") else ""
        reason = _display_filter_hint(expression) or reason
        raise FilterError(f"filter {expression!r}: {reason} (for packets of link type {link_type})") from None
    if any(code == _JUMP and skip >= _BACK for code, _, _, skip in program):
        raise FilterError(f"filter {expression!r}: its program loops, as protochain's does, and is not run")
    return program


def _refuse_names(expression: str) -> None:
    """Refuse words that libpcap might look up."""
    for word in _WORD.findall(expression):
        if word.lower() not in _LANGUAGE and not _NUMBER.fullmatch(word):
            reason = _display_filter_hint(expression) or f"unknown word {word!r}; {NOT_RESOLVED}"
            raise FilterError(f"filter {expression!r}: {reason}")


_DISPLAY_FIELD = re.compile(r"\b(?:ip|ipv6|tcp|frame|eth|http|tls|udp|dns|_ws)\.[a-z]")
_DISPLAY = {
    **{f"{ip}.{field}": f"{words}host " for ip in ("ip", "ipv6") for field, words in _ENDS.items()},
    **{f"tcp.{field}": f"tcp {words}port " for field, words in _PORTS.items()},
}
"""Fields of Wireshark's display filters, and how libpcap's language begins to say the same."""
_DISPLAY_TERM = re.compile(
    r"\s*(?:(\(|\)|&&|\|\||!(?!=)|and\b|or\b|not\b|tcp\b(?!\.))|([\w.]+)\s*(==|eq\b)\s*([\w.:/]+))\s*"
)
_OPERATORS = {"&&": "and", "||": "or", "!": "not"}


def _display_filter_hint(expression: str) -> str | None:
    """Explain that this is a display filter of Wireshark, and say it in libpcap's language if that can be done."""
    if not _DISPLAY_FIELD.search(expression):
        return None
    said = "this is a display filter of Wireshark; filters are in tcpdump's language (pcap-filter(7))"
    terms, place = [], 0
    while place < len(expression):
        term = _DISPLAY_TERM.match(expression, place)
        if term is None:
            return said
        operator, field, value = term[1], term[2], term[4]
        if operator is None and field not in _DISPLAY:
            return said
        terms.append(f"{_DISPLAY[field]}{value}" if operator is None else _OPERATORS.get(operator, operator))
        place = term.end()
    # In tcpdump's language both have the same precedence; in Wireshark's, `and` binds tighter.
    if {"and", "or"} <= set(terms):
        return said
    return f"{said}: '{' '.join(terms)}'"


def _libpcap() -> Any:
    try:
        import cypcap
    except ImportError:
        raise SourceError("filters are compiled by libpcap: pip install 'tcpwin[filter]'") from None
    return cypcap


@contextmanager
def _empty_capture(link_type: int) -> Iterator[str]:
    """Yield the path of an empty capture, from which libpcap derives the compiler's link type."""
    import tempfile

    descriptor, path = tempfile.mkstemp(prefix="tcpwin-", suffix=".pcap")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, _SNAPLEN_BYTES, link_type))
        yield path
    finally:
        Path(path).unlink()
