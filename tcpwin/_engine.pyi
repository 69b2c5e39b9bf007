"""The native engine. Private: use :mod:`tcpwin`."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Protocol, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from tcpwin.names import DirectionName, SeriesName

ROW_COLUMNS: list[str]
VIEW_COLUMNS: list[str]
FIELD_MARKS: list[tuple[str, str]]
FIELD_MEMBERS: list[tuple[str, str]]
EVENT_NAMES: list[str]
SERIES_NAMES: list[SeriesName]
STALL_CAUSES: list[str]
EVENT_FIELDS: tuple[str, ...]
EVENT_EVIDENCE: list[tuple[str, str, str]]
"""Name, heading and kind (``frame``, ``interval`` or ``duration``) of the evidence for a retransmission's cause."""
EVENT_SCHEMA: str
"""The JSON Schema of an event."""
CAUSES: list[str]
"""Causes of retransmitted and late segments."""
BUDGET_ITEMS: list[str]
OWNERS: list[str]
"""Owners of a limit: who can change it."""
CONFIDENCES: list[str]
"""Confidences, lowest first."""
ENDS: list[str]
"""Roles of the ends a and b."""
PAIR_FATES: list[str]
"""Fates of a packet between two captures, indexed by the code in the packet columns."""
PAIR_CAUSES: list[str]
"""Causes of a retransmission, indexed by the code in the packet columns; a code beyond the list means none."""

class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

class _Writable(Protocol):
    def write(self, data: bytes, /) -> object: ...
    def flush(self) -> object: ...

_Source: TypeAlias = Sequence[str] | _Readable | Selected
_Progress: TypeAlias = Callable[[int], object] | None
_Shifts: TypeAlias = Mapping[int, tuple[tuple[int, bool] | None, tuple[int, bool] | None]]
_Mask: TypeAlias = NDArray[np.bool_] | None
_Condition: TypeAlias = tuple[str, str, float | str | bool | None]
_Pick: TypeAlias = tuple[int, DirectionName | None]

class JsonWriter:
    """Writes connections as JSON objects."""

    def __init__(
        self,
        result: Result,
        fields: Sequence[str] | None,
        is_capture_lossy: bool,
        describe_statement: Callable[..., tuple[str, str]],
        describe_algorithm: Callable[..., str],
    ) -> None: ...
    def write(self, start: int, stop: int, between: str, closely: Mapping[int, tuple[str, str, str]]) -> bytes: ...

class Selected:
    """A source restricted to some of its packets.

    Args:
        compile: returns the filter's program for a link type, as (code, jt, jf, k) per instruction.
        start, end: kind (``at``, ``after`` the first packet, or ``time_of_day`` on its day) and nanoseconds.
    """

    def __init__(
        self,
        source: Sequence[str] | _Readable | Selected,
        *,
        compile: Callable[[int], Sequence[tuple[int, int, int, int]]] | None = None,
        start: tuple[str, int] | None = None,
        end: tuple[str, int] | None = None,
    ) -> None: ...

class _LimitRow(TypedDict):
    name: str
    label: str
    phrase: str
    group: str
    is_mendable: bool
    is_fault: bool
    is_reportable: bool
    held_by: list[str]

class _ItemRow(TypedDict):
    name: str
    label: str
    group: str
    limit: str
    slow_limit: str
    is_window: bool
    is_recovery: bool
    is_silent: bool
    basis: str
    doc: str

class _VerdictField(TypedDict):
    name: str
    kind: str
    is_nullable: bool
    doc: str

def limits() -> list[_LimitRow]:
    """The table of limits, in their order."""

def budget_items() -> list[_ItemRow]:
    """The table of the time budget's items, in their order."""

def budget_groups() -> list[tuple[str, str]]:
    """Names and labels of the items' groups."""

def verdict_fields() -> list[_VerdictField]:
    """The fields of a verdict; its kind says what each holds."""

LIMIT_ORDER: list[str]
"""Tie-break between limits with equal time: the first one is named."""
CHATTY_EXCHANGES: int
MIN_COST_NS: int
MIN_SHARE: float

_Carried: TypeAlias = tuple[int, float, int, int, int, int, int, int, int]

def judge(
    result: Result,
    id: int,
    is_back: bool,
    items_ns: Sequence[int],
    packets_ns: Sequence[int],
    *,
    kernel_ns: tuple[int, int] | None = None,
    findings: Sequence[tuple[str, str | None, str, bool, int, bool, bool, str | None]] = (),
    claims: Sequence[tuple[int, str, str, int]] = (),
    crossing: object | None = None,
    is_capture_lossy: bool = False,
) -> dict[str, Any]:
    """Judge a direction.

    Args:
        items_ns: The corrected budget; `packets_ns`: the budget from the packets alone.
        findings: Owner, side, confidence, whether it is a warning, cost, whether it has a remedy, whether it is an
            error, and the reported fault.
        claims: Index of the finding, item, limit and time.
    """

def verdict_columns(
    result: Result, start: int, stop: int, is_capture_lossy: bool
) -> tuple[dict[str, NDArray[Any]], list[tuple[Any, ...]]]:
    """Judge connections by their packets alone: columns of codes and numbers, and the statements `place` refers to."""

def rank_connections(result: Result, most: int) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int, int]]]:
    """Return the connections that lost the most time, and all with a problem: lost time, payload and number."""

def life(
    result: Result, id: int, is_back: bool, items_ns: Sequence[int], packets_ns: Sequence[int]
) -> tuple[bool, bool, list[int], _Carried]:
    """Return whether the reader is slow and the window growing, each limit's silent time, and what was carried."""

def gain(
    limit: str, times_ns: Sequence[int], silent_ns: Sequence[int], carried: _Carried, is_growing: bool
) -> tuple[int, int, int, float]:
    """Return the gain of lifting a limit alone: likely, minimum, maximum, and the bytes carried in its time."""

def corrected_by_kernel(items_ns: Sequence[int], window_ns: int, buffer_ns: int) -> list[int]: ...
def corrected_by_receiver(items_ns: Sequence[int], shown_ns: Sequence[int]) -> list[int]: ...
def is_worse(own: tuple[int, bool], other: tuple[int, bool], is_other_main: bool) -> bool:
    """Return whether the connection's verdict is about the other direction."""

def only_stop_ns(episodes: int, zero_window_ns: int, window_limited_ns: int) -> int: ...

class Result:
    def __len__(self) -> int: ...
    def facts(self) -> list[dict[str, Any]]: ...
    def counters(self) -> dict[str, Any]: ...
    def connection(self, id: int) -> dict[str, Any]: ...
    def direction(self, id: int, from_initiator: bool) -> dict[str, Any]: ...
    def episodes(self, id: int, from_initiator: bool) -> list[dict[str, Any]]: ...
    def columns(
        self, names: Sequence[tuple[str, str]], start: int = 0, stop: int | None = None
    ) -> list[tuple[NDArray[Any], _Mask | list[str | None]]]:
        """Return values with their mask, or text codes with the list of texts."""

    def json(self, id: int) -> str: ...
    def budgets(self, start: int, stop: int) -> NDArray[np.int64]: ...
    def budget(self, id: int) -> list[list[int]]: ...
    def carried_bytes(self) -> int: ...
    def select(self, questions: Sequence[tuple[bool, Sequence[_Condition]]]) -> list[Sequence[_Pick]]: ...
    def responders(self, of_directions: bool, conditions: Sequence[_Condition]) -> dict[tuple[str, int], int]: ...
    def connection_value(self, id: int, name: str) -> Any: ...
    def direction_value(self, id: int, from_initiator: bool, name: str) -> Any: ...
    def scale_evidence(self, id: int, from_initiator: bool) -> list[str]: ...
    def began_with_initiator(self, id: int) -> bool: ...
    def details(self) -> Details: ...
    def follow(
        self,
        source: _Source,
        ids: set[int],
        *,
        name: str = "stream",
        buckets: int = 1024,
        rows: int = 0,
        start_ns: int = ...,
        end_ns: int = ...,
        shifts: _Shifts | None = None,
        index: str | None = None,
        progress: _Progress = None,
    ) -> Details: ...
    def segments(
        self,
        source: _Source,
        only: int,
        *,
        name: str = "stream",
        shifts: _Shifts | None = None,
        index: str | None = None,
        progress: _Progress = None,
    ) -> tuple[dict[str, Any], bool]: ...
    def exchanges(
        self,
        source: _Source,
        ids: set[int],
        most: int,
        *,
        name: str = "stream",
        shifts: _Shifts | None = None,
        index: str | None = None,
        progress: _Progress = None,
    ) -> tuple[dict[str, Any], int, bool]:
        """Return columns of exchanges, the number beyond `most`, and whether the capture is unchanged."""
    def first_events(
        self, id: int, from_initiator: bool | None, names: Sequence[str], causes: Sequence[str]
    ) -> FirstEvents: ...
    def pauses(self, id: int, from_initiator: bool) -> list[tuple[int, int, int]]:
        """Return the longest pauses of a side with nothing to send: start, end, frame of the segment after it."""
    def idle_frames(self, id: int, from_initiator: bool) -> list[int]:
        """Return the frames of the data that ended a direction's longest idle gaps, at most three."""
    def reset_frame(self, id: int) -> int | None: ...
    def count_first_events(self, id: int, from_initiator: bool, name: str) -> int: ...

class Place:
    """Identifies a direction of a result."""

    result: Result
    id: int
    from_initiator: bool
    def __init__(self, result: Result, id: int, from_initiator: bool) -> None: ...

class FieldAttribute:
    """A descriptor for classes whose instances have a `Place` in ``_place``: a field of that direction.

    Raises:
        KeyError: directions have no such field.
    """

    def __init__(self, name: str) -> None: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any: ...

class FirstEvents:
    """The matching first events of a connection, as recorded by the first pass."""

    def __len__(self) -> int: ...
    def values(self, index: int) -> tuple[Any, ...]:
        """Return the values of one event in the order of `EVENT_FIELDS`."""
    def originals(self) -> int:
        """Count the events that name an original's frame."""
    def pairs(self, count: int) -> list[int]:
        """Return the frames of the first `count` events, each preceded by its original's."""
    def span_ns(self) -> tuple[int, int] | None:
        """Return the times of the first and the last event."""

class Details:
    is_same: bool
    def ids(self) -> list[int]: ...
    def series(self, id: int, from_initiator: bool, name: str) -> tuple[list[NDArray[np.int64]], int]: ...
    def place(self, id: int, from_initiator: bool, seq: int) -> int | None: ...
    def percentiles(
        self, id: int, from_initiator: bool, name: str, shares: Sequence[float]
    ) -> tuple[list[int | None], int]: ...
    def round_trips(self, id: int, from_initiator: bool, shares: Sequence[float]) -> list[int | None]: ...
    def budget(
        self, id: int, from_initiator: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], list[NDArray[np.int64]]]: ...
    def events(self, id: int) -> tuple[list[tuple[Any, ...]], int]: ...
    def event_columns(
        self, id: int
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.bool_],
        NDArray[np.uint32],
        NDArray[np.int8],
        list[str],
    ]:
        """Return time, sequence number, timeout (−1: none), sender, name bits and cause index (−1: none).

        The last item lists the causes that occur, which the cause index refers to.
        """
    def events_at(self, id: int, places: Sequence[int]) -> list[tuple[Any, ...]]: ...
    def stalls(self, id: int) -> list[dict[str, Any]]: ...
    def stall_columns(self, id: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
        """Return start, end, and cause as an index into `STALL_CAUSES`."""
    def stalls_at(self, id: int, places: Sequence[int]) -> list[dict[str, Any]]: ...
    def zero_window_columns(self, id: int, from_initiator: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return start and end."""
    def zero_windows_at(self, id: int, from_initiator: bool, places: Sequence[int]) -> list[dict[str, Any]]: ...
    def rows(self, id: int) -> dict[str, Any] | None: ...

_NamedNumber: TypeAlias = tuple[str, int, int, int, bool, int]
"""Name, offset, size, factor, whether 0 is a valid value, and the maximum valid value."""

class MessageLayout:
    """The layout of binary messages of a fixed length.

    Args:
        steady: ranges; if one of them differs, or a `measured` number (offset, size) is 0, the whole message is needed.
        watched: ranges that count as a change but are not reported.
        flags: name, offset, mask of a byte.
        running: numbers reported with every change, but not changes by themselves.

    Raises:
        ValueError: a part lies outside the message, or the size of a number is not 1, 2, 4 or 8 bytes.
    """

    def __init__(
        self,
        length: int,
        *,
        steady: Sequence[tuple[int, int]],
        measured: Sequence[tuple[int, int]],
        watched: Sequence[tuple[int, int]],
        fields: Sequence[_NamedNumber],
        flags: Sequence[tuple[str, int, int]],
        running: Sequence[_NamedNumber],
    ) -> None: ...
    def changes(self, before: bytes, after: bytes) -> str | None:
        """Return the changed members as JSON text; "" if there are none, None if the whole message is needed."""

def analyze(
    source: _Source,
    *,
    name: str = "stream",
    follow: set[int] | str | None = None,
    buckets: int = 1024,
    rows: int = 0,
    shifts: _Shifts | None = None,
    index: str | PathLike[str] | None = None,
    threads: int = 1,
    progress: _Progress = None,
) -> Result: ...
def cores() -> int: ...
def reopen(
    source: _Source,
    index: str | PathLike[str],
    ids: set[int],
    *,
    facts: list[dict[str, Any]],
    counters: dict[str, Any],
    buckets: int = 1024,
    rows: int = 0,
    shifts: _Shifts | None = None,
) -> Result | None:
    """Analyse some connections of a capture by its index; return None if the index does not fit.

    Args:
        facts, counters: the results of `Result.facts` and `Result.counters` for the complete capture.
    """

def write_rows(
    source: _Source,
    out: _Writable,
    *,
    format: str = "csv",
    name: str = "stream",
    only: int | None = None,
    columns: Sequence[str] | None = None,
    shifts: _Shifts | None = None,
    progress: _Progress = None,
) -> tuple[int, int, list[dict[str, Any]]]: ...
def row_columns(
    source: _Source,
    *,
    name: str = "stream",
    shifts: _Shifts | None = None,
    progress: _Progress = None,
) -> dict[str, Any]: ...
def icmp_errors(result: Result) -> list[dict[str, Any]]:
    """Return the ICMP errors about segments, in order, each with the connection that it quotes."""

def header_columns(
    source: _Source, ids: set[int], most: int, *, name: str = "stream", shifts: _Shifts | None = None
) -> dict[str, Any]:
    """Return header fields of the segments of some connections, in order, as arrays; -1 for absent values."""

def row_chunks(
    source: _Source,
    take: Callable[[dict[str, Any]], object],
    *,
    name: str = "stream",
    only: int | None = None,
    shifts: _Shifts | None = None,
    progress: _Progress = None,
) -> tuple[int, list[dict[str, Any]]]:
    """Call `take` with the columns of each chunk of rows; return the number of connections and the facts."""

def request_targets(
    source: _Source, frames: Sequence[int], *, name: str = "stream", progress: _Progress = None
) -> tuple[NDArray[Any], list[str]]:
    """Return the HTTP targets of frames in ascending order: an index of the words, or one beyond them; the words."""

def ring_records(block: bytes, *, skip_outgoing: bool = False) -> tuple[bytes, int, int, int]:
    """Return pcap records with nanosecond times, their number, and the times of the first and the last."""

def grown_records(
    data: bytes, *, is_big_endian: bool = False, is_nanoseconds: bool = False
) -> tuple[int, int, int, int, bool]:
    """Return the end of the last complete record, their number, first and last time, and whether damage follows."""

def write_headers(
    source: _Readable,
    out: str,
    *,
    name: str = "stream",
    whole: bool = False,
    max_bytes: int = ...,
    progress: _Progress = None,
) -> tuple[int, int, str, dict[str, Any]]: ...
def copy_packets(
    result: Result,
    sources: tuple[_Source, _Source],
    out: _Writable,
    chosen: object,
    comments: object | None,
    *,
    name: str = "stream",
    everything: bool = False,
    about: tuple[str, str] = ("", ""),
    shifts: _Shifts | None = None,
    progress: _Progress = None,
) -> tuple[int, int, int, int, bool]:
    """Write packets to a pcapng file.

    Args:
        sources: the capture twice, for two concurrent readers.
        chosen, comments: objects with the attributes of those in `tcpwin.render.wireshark.slicing`.
        everything: also copy all blocks that contain no packet.
        about: the application, and a comment on the file.

    Returns:
        Packets written, truncated, commented and dropped; and whether the capture is unchanged.
    """

def frames_around(
    result: Result,
    source: _Source,
    wanted: Mapping[int, Sequence[int]],
    around: int,
    *,
    name: str = "stream",
    shifts: _Shifts | None = None,
    index: str | PathLike[str] | None = None,
    progress: _Progress = None,
) -> tuple[list[int], bool]: ...
def frames_of_parts(
    result: Result, source: _Source, ids: set[int], *, name: str = "stream", progress: _Progress = None
) -> list[int]: ...
def fields(group: str) -> list[tuple[str, str, str]]: ...
def field_table(group: str) -> list[tuple[str, str, list[str], list[str], str]]:
    """Return the table of a group's fields: name, kind, marks, choices and documentation."""

def field_groups(group: str) -> list[tuple[str, str, list[str]]]:
    """Return the groups of a connection's or a direction's fields: name, documentation and names of the fields."""

def first_offset(
    source_a: _Source, source_b: _Source, *, names: tuple[str, str], progress: _Progress = None
) -> int | None: ...
def split_points(
    source: _Source,
    reopen: Callable[[], _Source],
    outs: tuple[str, str],
    *,
    name: str,
    progress: _Progress = None,
) -> tuple[int, int, list[dict[str, Any]]] | None: ...
def pair(
    source_a: _Source,
    source_b: _Source,
    *,
    names: tuple[str, str],
    first_offset_ns: int = 0,
    leaves_at_a: Mapping[int, bool] | None = None,
    take: Callable[[dict[str, NDArray[Any]]], object] | None = None,
    progress: _Progress = None,
) -> dict[str, Any]: ...
