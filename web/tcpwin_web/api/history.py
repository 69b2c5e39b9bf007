"""Searches over all captures, and the history of a pair of hosts or of a tag."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query
from pydantic import BaseModel, Field

from tcpwin.model import LimitName
from tcpwin_web.api.parts import Offset, ServiceOf, Words
from tcpwin_web.history import Found, Point, Question, judge_change

router = APIRouter(tags=["history"])

MOST_FOUND = 1000
Address = Annotated[
    Words,
    Query(max_length=64, description="address of either end; a trailing . or : matches a prefix", examples=["10.0.0."]),
]
Port = Annotated[int | None, Query(ge=0, le=65535, description="the server's")]


def question(
    address: Address = "",
    port: Port = None,
    host: Annotated[Words, Query(max_length=255, description="a part of a host's name in bundles and snapshots")] = "",
    limited_by: Annotated[LimitName | None, Query()] = None,
    tag: Annotated[Words, Query(max_length=64)] = "",
) -> Question:
    """Conditions of a search."""
    return Question(address.strip(), port, host.strip(), limited_by or "", tag.strip().lower())


class HostPairEntry(BaseModel):
    """Connections of one capture between two hosts with the same limit."""

    capture_id: str
    capture: Annotated[str, Field(description="its name")]
    client: str
    server: str
    port: int
    limited_by: LimitName
    connections: int
    problems: int
    lost_ns: int
    duration_ns: int
    data_bytes: int
    rate_bps: Annotated[int | None, Field(description="rate of the connection with the most data")]
    rtt_ns: int | None
    start_ns: int
    worst: Annotated[int, Field(description="number of the connection that lost most time")]

    @classmethod
    def of(cls, found: Found) -> "HostPairEntry":
        """Describe a row."""
        names = set(cls.model_fields) - {"capture"}
        return cls(capture=found.capture.name, **{name: getattr(found.pair, name) for name in names})


class SearchResult(BaseModel):
    """Rows found, newest first."""

    total: int
    found: list[HostPairEntry]


class HistoryPoint(BaseModel):
    """One capture in a history."""

    capture_id: str
    capture: str
    start_ns: int
    connections: int
    problems: int
    lost_ns: int
    duration_ns: int
    lost_share: Annotated[float, Field(description="time lost, as a share of the total time of all connections")]
    data_bytes: int
    rate_bps: int | None
    rtt_ns: int | None
    limits: list[LimitName]
    change: Annotated[
        str | None, Field(description="compared with the capture before: better, worse or about the same")
    ]

    @classmethod
    def of(cls, point: Point, before: Point | None) -> "HistoryPoint":
        """Describe a point."""
        own: dict[str, Any] = {
            name: getattr(point, name) for name in set(cls.model_fields) - {"capture_id", "capture", "change"}
        }
        change = None if before is None else judge_change(before, point)
        return cls(capture_id=point.capture.id, capture=point.capture.name, change=change, **own)


class HistoryList(BaseModel):
    """One point per capture, oldest first; at most the newest 200."""

    points: list[HistoryPoint]


@router.get("/search")
async def search(
    service: ServiceOf,
    conditions: Annotated[Question, Depends(question)],
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_FOUND)] = 100,
) -> SearchResult:
    """Search all captures for pairs of hosts; all conditions must hold."""
    found, total = await service.history.search(conditions, offset=offset, limit=limit)
    return SearchResult(total=total, found=[HostPairEntry.of(each) for each in found])


@router.get("/history")
async def show_history(
    service: ServiceOf,
    a: Annotated[Words, Query(max_length=64, description="address of one host")] = "",
    b: Annotated[Words, Query(max_length=64, description="address of the other host")] = "",
    port: Port = None,
    tag: Annotated[Words, Query(max_length=64, description="instead of a pair: all captures with this tag")] = "",
) -> HistoryList:
    """Return the history of a pair of hosts, or of the captures with a tag: did it get better?"""
    if bool(a and b) == bool(tag) or (bool(a) != bool(b)):
        raise HTTPException(422, "Name two hosts (a and b), or a tag.")
    points = await (service.history.of_tag(tag.strip().lower()) if tag else service.history.of_pair(a, b, port=port))
    return HistoryList(
        points=[HistoryPoint.of(each, before) for before, each in zip([None, *points], points, strict=False)]
    )
