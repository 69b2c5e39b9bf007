"""A capture without payload: its packets' headers in a separate file.

In: a stream of a capture. Out: a pcapng file with the same connections, and facts about the original that the new file
lacks (format, damage, snapshot lengths, drops).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from tcpwin import _engine
from tcpwin.sources.source import PathSource

DIGEST = "sha256"


@dataclass(frozen=True, slots=True)
class Headers:
    """Result of writing headers.

    Attributes:
        packets: packets written, each with its time, wire length and link type.
        packets_cut: packets whose bytes after the headers were omitted.
        sha256: hash of the written file, in hexadecimal.
        facts: the engine's facts about the original capture, for `HeadersSource`.
    """

    packets: int
    packets_cut: int
    sha256: str
    facts: dict[str, Any]


def write_headers(
    file: IO[bytes],
    out: str | os.PathLike[str],
    *,
    name: str = "stream",
    whole: bool = False,
    max_bytes: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Headers:
    """Write each packet of a capture, truncated to the fewest bytes that parse like the whole packet.

    For ordinary segments that is everything up to the end of the TCP header, for other packets less. IP fragments keep
    up to 128 bytes more, because headers may continue in them. Times before 1970 become 1970.

    Args:
        file: read once, from its current position; may be compressed.
        out: a new file.
        name: the capture's name, for its facts.
        whole: keep packets unchanged.
        max_bytes: limit after decompression; more adds a warning ``read_failed`` to the facts.
        progress: called periodically with the bytes read so far; an exception stops the writing.

    Raises:
        CaptureError: nothing can be read.
        FileExistsError: `out` already exists.
        OSError: it cannot be written.
    """
    limit = {} if max_bytes is None else {"max_bytes": max_bytes}
    packets, cut, sha256, facts = _engine.write_headers(
        file, os.fspath(out), name=name, whole=whole, progress=progress, **limit
    )
    return Headers(packets, cut, sha256, facts)


class HeadersSource(PathSource):
    """Header files that represent the captures they were made from; facts may have the digest of such a file."""

    def __init__(
        self, paths: Sequence[str | os.PathLike[str]], facts: Sequence[Mapping[str, Any]], *, name: str
    ) -> None:
        super().__init__(paths)
        self.name = name
        self.facts = tuple({name: fact for name, fact in each.items() if name != DIGEST} for each in facts)
        self._digests = [str(each[DIGEST]) for each in facts if each.get(DIGEST)]

    def digests(self) -> Sequence[str]:
        return self._digests if len(self._digests) == len(self._paths) else ()
