"""Search all captures by host address, port, name, limit or tag, and follow a pair of hosts or a tag over time."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import ColumnElement, and_, func, or_, select

from tcpwin_web.storage import Database
from tcpwin_web.storage.models import Capture, File, HostPair, Tag

MOST_POINTS = 200
"""Maximum number of points in a history: the newest."""
CHANGED_SHARE, CHANGED_RATE = 0.1, 0.1
"""Minimum difference in lost time, or in rate, by which a capture is better or worse than another."""


class AddressError(Exception):
    """The text is neither an address nor the beginning of one."""


@dataclass(frozen=True)
class Question:
    """Conditions of a search; all must hold.

    Attributes:
        address: address of either end; a trailing dot or colon matches every address with this prefix.
        port: the server's port.
        host: part of the name that a bundle or a snapshot gives a host.
    """

    address: str = ""
    port: int | None = None
    host: str = ""
    limited_by: str = ""
    tag: str = ""

    def __bool__(self) -> bool:
        return self != Question()


@dataclass(frozen=True)
class Found:
    """Connections of one capture between two hosts with the same limit."""

    capture: Capture
    pair: HostPair


@dataclass(frozen=True)
class Point:
    """One capture in the history of a pair of hosts, or of all its hosts.

    Attributes:
        limits: limits of its connections, by time lost.
        rate_bps: rate of the connection with the most data.
    """

    capture: Capture
    start_ns: int
    connections: int
    problems: int
    lost_ns: int
    duration_ns: int
    data_bytes: int
    rate_bps: int | None
    rtt_ns: int | None
    limits: Sequence[str]

    @property
    def lost_share(self) -> float:
        """Share of the total time of all connections."""
        return min(self.lost_ns / self.duration_ns, 1.0) if self.duration_ns > 0 else 0.0


class History:
    """Rows of all analysed captures."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def search(self, query: Question, *, offset: int, limit: int) -> tuple[Sequence[Found], int]:
        """Return a page of matches, newest first, and their total number.

        Raises:
            AddressError: the address is invalid.
        """
        conditions = _conditions(query)
        async with self._database.begin() as session:
            total = await session.scalar(select(func.count()).select_from(HostPair).where(*conditions))
            statement = select(HostPair, Capture).join(Capture, Capture.id == HostPair.capture_id).where(*conditions)
            order = (HostPair.start_ns.desc(), HostPair.lost_ns.desc(), HostPair.id)
            rows = await session.execute(statement.order_by(*order).offset(offset).limit(limit))
            return [Found(capture, pair) for pair, capture in rows], total or 0

    async def of_pair(self, one: str, other: str, *, port: int | None = None) -> list[Point]:
        """Return the history of two hosts, whichever was the server; oldest first.

        Raises:
            AddressError: an address is invalid.
        """
        first, second = _whole(one), _whole(other)
        both = or_(
            and_(HostPair.client == first, HostPair.server == second),
            and_(HostPair.client == second, HostPair.server == first),
        )
        return await self._points(both, *([HostPair.port == port] if port is not None else []))

    async def of_tag(self, tag: str) -> list[Point]:
        """Return the history of the captures with a tag, over all their hosts; oldest first."""
        return await self._points(Capture.id.in_(select(Tag.capture_id).where(Tag.tag == tag)))

    async def _points(self, *conditions: ColumnElement[bool]) -> list[Point]:
        async with self._database.begin() as session:
            of_rows = select(HostPair.capture_id).join(Capture, Capture.id == HostPair.capture_id).where(*conditions)
            newest = of_rows.group_by(HostPair.capture_id).order_by(func.min(HostPair.start_ns).desc())
            ids = (await session.scalars(newest.limit(MOST_POINTS))).all()
            statement = select(HostPair, Capture).join(Capture, Capture.id == HostPair.capture_id)
            rows = (
                await session.execute(
                    statement.where(*conditions, HostPair.capture_id.in_(ids)).order_by(HostPair.capture_id)
                )
            ).all()
        points = [
            _point(of_one[0][1], [row[0] for row in of_one])
            for of_one in (list(each) for _, each in groupby(rows, key=lambda row: row[0].capture_id))
        ]
        return sorted(points, key=lambda point: (point.start_ns, point.capture.id))


def judge_change(before: Point, after: Point) -> str:
    """Judge whether it got better or worse: by rate as in comparisons, otherwise by lost time."""
    if before.rate_bps and after.rate_bps:
        rate = after.rate_bps / before.rate_bps - 1
        if abs(rate) >= CHANGED_RATE:
            return "better" if rate > 0 else "worse"
    lost = after.lost_share - before.lost_share
    if abs(lost) >= CHANGED_SHARE:
        return "worse" if lost > 0 else "better"
    return "about the same"


def _point(capture: Capture, pairs: Sequence[HostPair]) -> Point:
    largest = max(pairs, key=lambda pair: pair.data_bytes)
    lost: dict[str, int] = {}
    for pair in pairs:
        lost[pair.limited_by] = lost.get(pair.limited_by, 0) + pair.lost_ns
    trips = [pair.rtt_ns for pair in pairs if pair.rtt_ns is not None]
    return Point(
        capture,
        min(pair.start_ns for pair in pairs),
        sum(pair.connections for pair in pairs),
        sum(pair.problems for pair in pairs),
        sum(pair.lost_ns for pair in pairs),
        sum(pair.duration_ns for pair in pairs),
        sum(pair.data_bytes for pair in pairs),
        largest.rate_bps,
        min(trips) if trips else None,
        sorted(lost, key=lambda name: (-lost[name], name)),
    )


def _conditions(query: Question) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if query.address:
        found.append(_of_either_end(query.address))
    if query.port is not None:
        found.append(HostPair.port == query.port)
    if query.limited_by:
        found.append(HostPair.limited_by == query.limited_by)
    if query.tag:
        found.append(HostPair.capture_id.in_(select(Tag.capture_id).where(Tag.tag == query.tag)))
    if query.host:
        by_file = and_(File.kind == "snapshot", File.name.icontains(query.host, autoescape=True))
        named = or_(File.label.icontains(query.host, autoescape=True), by_file)
        found.append(HostPair.capture_id.in_(select(File.capture_id).where(named)))
    return found


def _of_either_end(text: str) -> ColumnElement[bool]:
    if text.endswith((".", ":")) and not text.endswith("::"):
        if not set(text.lower()) <= set("0123456789abcdef.:"):
            raise AddressError(f"{text!r} is not the beginning of an address")
        begin = text.lower()
        return or_(*(end.startswith(begin, autoescape=True) for end in (HostPair.client, HostPair.server)))
    address = _whole(text)
    return or_(HostPair.client == address, HostPair.server == address)


def _whole(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip().strip("[]")))
    except ValueError:
        raise AddressError(
            f"{text!r} is neither an address such as 10.0.0.1 or 2001:db8::1, nor the beginning of one such as 10.0.0."
        ) from None
