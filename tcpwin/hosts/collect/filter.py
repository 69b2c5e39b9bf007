"""Socket filters in a small language, close to that of `ss`.

In: text such as ``dport = :443 and not dst 10.0.0.0/8``. Out: a predicate on the kernel's messages, and a capture
filter for the same sockets' packets. `tcpwin/docs/hosts/snap.md` has the grammar.
"""

from __future__ import annotations

import operator
import re
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import NamedTuple

from tcpwin.errors import ArgumentError
from tcpwin.hosts.collect.message import STATES

MAX_CHARACTERS = 4096
MAX_DEPTH = 50

_TOKEN = re.compile(r"\s*(?:(\(|\)|!=|==|<=|>=|&&|\|\||[=<>!&|])|([^\s()=<>!&|]+))")
_OPERATORS: dict[str, str] = {
    "=": "==",
    "==": "==",
    "eq": "==",
    "!=": "!=",
    "ne": "!=",
    "neq": "!=",
    "<": "<",
    "lt": "<",
    ">": ">",
    "gt": ">",
    "<=": "<=",
    "le": "<=",
    "leq": "<=",
    ">=": ">=",
    "ge": ">=",
    "geq": ">=",
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

_NUMBERS = {name: number for number, name in enumerate(STATES)}
_LIVE = frozenset(range(1, len(STATES)))
_STATES: dict[str, frozenset[int]] = {
    **{name.lower(): frozenset((number,)) for name, number in _NUMBERS.items() if number},
    "established": frozenset((1,)),
    "closed": frozenset((7,)),
    "all": _LIVE,
    "connected": _LIVE - {7, 10},
    "synchronized": _LIVE - {7, 10, 2},
    "bucket": frozenset((3, 6)),
    "big": _LIVE - {3, 6},
}
"""Names that `ss` uses for states and groups of states (man ss, STATE-FILTER)."""


class FilterError(ArgumentError):
    """An invalid filter.

    Attributes:
        position: the offending character, from 1.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"{message}, at character {position}")
        self.position = position


class Key(NamedTuple):
    """The properties of a socket visible to a filter. IPv4-mapped IPv6 addresses appear as IPv4."""

    state: int
    local_port: int
    peer_port: int
    local_address: tuple[int, int]
    peer_address: tuple[int, int]


@dataclass(frozen=True, slots=True)
class StateIs:
    """One of some states."""

    states: frozenset[int]

    def test(self, key: Key) -> bool:
        return key.state in self.states

    def packets(self, *, outgoing: bool, negated: bool) -> str | None:  # noqa: ARG002
        return None


@dataclass(frozen=True, slots=True)
class PortIs:
    """A port compared with a number."""

    is_local: bool
    comparison: str
    port: int

    def test(self, key: Key) -> bool:
        return _COMPARE[self.comparison](key.local_port if self.is_local else key.peer_port, self.port)

    def packets(self, *, outgoing: bool, negated: bool) -> str | None:
        comparison = _OPPOSITE[self.comparison] if negated else self.comparison
        end = "src" if self.is_local == outgoing else "dst"
        if comparison in ("==", "!="):
            return f"{'not ' if comparison == '!=' else ''}{end} port {self.port}"
        first, last = {
            "<": (0, self.port - 1),
            "<=": (0, self.port),
            ">": (self.port + 1, 65535),
            ">=": (self.port, 65535),
        }[comparison]
        return f"{end} portrange {first}-{last}" if first <= last else "less 0"


@dataclass(frozen=True, slots=True)
class AddressIn:
    """An address within a network."""

    is_local: bool
    network: IPv4Network | IPv6Network

    def test(self, key: Key) -> bool:
        version, number = key.local_address if self.is_local else key.peer_address
        network = self.network
        return version == network.version and number & int(network.netmask) == int(network.network_address)

    def packets(self, *, outgoing: bool, negated: bool) -> str | None:
        end = "src" if self.is_local == outgoing else "dst"
        return f"{'not ' if negated else ''}{end} net {self.network}"


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a part."""

    part: Node

    def test(self, key: Key) -> bool:
        return not self.part.test(key)

    def packets(self, *, outgoing: bool, negated: bool) -> str | None:
        return self.part.packets(outgoing=outgoing, negated=not negated)


@dataclass(frozen=True, slots=True)
class Both:
    """The conjunction or disjunction of parts."""

    parts: tuple[Node, ...]
    is_all: bool

    def test(self, key: Key) -> bool:
        return all(part.test(key) for part in self.parts) if self.is_all else any(part.test(key) for part in self.parts)

    def packets(self, *, outgoing: bool, negated: bool) -> str | None:
        texts = [part.packets(outgoing=outgoing, negated=negated) for part in self.parts]
        if self.is_all != negated:
            known = [text for text in texts if text is not None]
            return " and ".join(f"({text})" for text in known) or None
        return None if None in texts else " or ".join(f"({text})" for text in texts)


Node = StateIs | PortIs | AddressIn | Not | Both


class Filter:
    """A filter of sockets.

    Raises:
        FilterError: the text is invalid.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._node = _Parser(text).parse()

    def matches(self, message: bytes) -> bool:
        """Whether the socket of an `inet_diag_msg` is wanted."""
        return self._node.test(_key(message))

    def packets(self) -> str:
        """Return a libpcap filter for both directions' packets; parts it cannot express, such as a state, match all."""
        ways = [self._node.packets(outgoing=outgoing, negated=False) for outgoing in (True, False)]
        return "tcp" if None in ways else f"tcp and (({ways[0]}) or ({ways[1]}))"


_PLACES = struct.Struct("=xB2x2s2s16s16s")
_MAPPED = bytes(10) + b"\xff\xff"


def _key(message: bytes) -> Key:
    state, sport, dport, source, destination = _PLACES.unpack_from(message)
    is_v4 = message[0] == socket.AF_INET
    return Key(
        state,
        int.from_bytes(sport, "big"),
        int.from_bytes(dport, "big"),
        _address(source, is_v4),
        _address(destination, is_v4),
    )


def _address(packed: bytes, is_v4: bool) -> tuple[int, int]:
    if is_v4:
        return 4, int.from_bytes(packed[:4], "big")
    if packed.startswith(_MAPPED):
        return 4, int.from_bytes(packed[12:], "big")
    return 6, int.from_bytes(packed, "big")


class _Parser:
    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARACTERS:
            raise FilterError(f"longer than {MAX_CHARACTERS} characters", MAX_CHARACTERS + 1)
        self._tokens: list[tuple[str, int]] = []
        place = 0
        while match := _TOKEN.match(text, place):
            word = match[1] or match[2]
            self._tokens.append((word, match.end() - len(word) + 1))
            place = match.end()
        self._end = len(text.rstrip()) + 1
        self._next = 0
        self._depth = 0

    def parse(self) -> Node:
        node = self._any()
        if self._peek():
            raise self._expected("and or or")
        return node

    def _peek(self) -> str:
        return self._tokens[self._next][0].lower() if self._next < len(self._tokens) else ""

    def _take(self) -> tuple[str, int]:
        if self._next == len(self._tokens):
            return "", self._end
        self._next += 1
        return self._tokens[self._next - 1]

    def _expected(self, what: str) -> FilterError:
        word, place = self._take()
        return FilterError(f"expected {what}, found {word[:40]!r}" if word else f"expected {what}", place)

    def _any(self) -> Node:
        parts = [self._all()]
        while self._peek() in ("or", "|", "||"):
            self._take()
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Both(tuple(parts), is_all=False)

    def _all(self) -> Node:
        parts = [self._one()]
        while True:
            if self._peek() in ("and", "&", "&&"):
                self._take()
            elif self._peek() not in _BEGINS:
                return parts[0] if len(parts) == 1 else Both(tuple(parts), is_all=True)
            parts.append(self._one())

    def _one(self) -> Node:
        if self._depth == MAX_DEPTH:
            raise FilterError(f"deeper than {MAX_DEPTH} levels", self._take()[1])
        if self._peek() not in _BEGINS:
            raise self._expected("dport, sport, dst, src, state, exclude, not or (")
        word = self._take()[0].lower()
        if word in ("sport", "dport"):
            return self._port(is_local=word == "sport")
        if word in ("src", "dst"):
            return self._host(is_local=word == "src")
        if word in ("state", "exclude"):
            states = self._state()
            return Not(states) if word == "exclude" else states
        self._depth += 1
        node: Node
        if word == "(":
            node = self._any()
            if self._peek() != ")":
                raise self._expected("a )")
            self._take()
        else:
            node = Not(self._one())
        self._depth -= 1
        return node

    def _state(self) -> StateIs:
        if self._peek() not in _STATES:
            raise self._expected(f"a state ({', '.join(sorted(_STATES))})")
        return StateIs(_STATES[self._take()[0].lower()])

    def _port(self, *, is_local: bool) -> PortIs:
        comparison = "=="
        if self._peek() in _OPERATORS:
            comparison = _OPERATORS[self._take()[0].lower()]
        word, place = self._take()
        return PortIs(is_local, comparison, _read_port(word.removeprefix(":"), place))

    def _host(self, *, is_local: bool) -> Node:
        is_not = False
        if self._peek() in _OPERATORS:
            word, place = self._take()
            comparison = _OPERATORS[word.lower()]
            if comparison not in ("==", "!="):
                raise FilterError("an address allows only = and !=", place)
            is_not = comparison == "!="
        word, place = self._take()
        address, port = _split_host(word)
        parts: list[Node] = []
        if address not in ("", "*"):
            parts.append(AddressIn(is_local, _read_network(address, place)))
        if port:
            parts.append(PortIs(is_local, "==", _read_port(port, place + len(word) - len(port))))
        if not parts:
            raise FilterError("expected an address, a network or a :port", place)
        node = parts[0] if len(parts) == 1 else Both(tuple(parts), is_all=True)
        return Not(node) if is_not else node


_BEGINS = frozenset(("dport", "sport", "dst", "src", "state", "exclude", "not", "!", "("))


def _split_host(word: str) -> tuple[str, str]:
    if word.startswith("["):
        inside, _, after = word[1:].partition("]")
        length, _, port = after.partition(":")
        return inside + length, port
    if word.count(":") > 1:
        return word, ""
    address, _, port = word.partition(":")
    return address, port


def _read_port(word: str, place: int) -> int:
    if word.isascii() and word.isdigit() and len(word) <= 5 and int(word) <= 65535:
        return int(word)
    try:
        if not word or word.isdigit():
            raise OSError
        return socket.getservbyname(word, "tcp")
    except (OSError, UnicodeError, ValueError):
        found = f", found {word[:40]!r}" if word else ""
        raise FilterError(f"expected a port, as :443 or :https{found}", place) from None


def _read_network(word: str, place: int) -> IPv4Network | IPv6Network:
    try:
        return ip_network(word, strict=False)
    except ValueError:
        raise FilterError(f"expected an address or a network, found {word[:40]!r}", place) from None
