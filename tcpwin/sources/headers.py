"""A capture without what was said in it: its packets' headers in a file of their own.

In: a stream of a capture. Out: a pcapng file that gives the same connections, and the facts of the capture that it was
made from, which the new file no longer shows (format, damage, snapshot lengths, drops).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from tcpwin import _engine
from tcpwin.sources.source import PathSource


@dataclass(frozen=True, slots=True)
class Headers:
    """What was written.

    Attributes:
        packets: written, each with its time, its length on the wire and its link type.
        packets_cut: those of which bytes behind the headers were left out.
        sha256: of the file that was written, in hexadecimal digits.
        facts: of the capture that was read, as the engine tells them; `HeadersSource` takes them.
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
    """Write each packet of a capture cut to the fewest bytes that parse as all of it does.

    Of ordinary segments that is everything up to the end of the TCP header, of other packets less. Of IP fragments up
    to 128 bytes more are kept: headers may go on in them. Times before 1970 become 1970.

    Args:
        file: read once, from where it stands; compressed or not.
        out: a new file.
        name: of the capture, for its facts.
        whole: keep packets as they are.
        max_bytes: read no more than these after decompression; more are a warning ``read_failed`` in the facts.
        progress: called now and then with the bytes read so far; what it raises ends the writing.

    Raises:
        CaptureError: nothing can be read at all.
        FileExistsError: `out` is there already.
        OSError: it cannot be written.
    """
    limit = {} if max_bytes is None else {"max_bytes": max_bytes}
    packets, cut, sha256, facts = _engine.write_headers(
        file, os.fspath(out), name=name, whole=whole, progress=progress, **limit
    )
    return Headers(packets, cut, sha256, facts)


class HeadersSource(PathSource):
    """Files of headers that stand for the captures that they were made from."""

    def __init__(
        self, paths: Sequence[str | os.PathLike[str]], facts: Sequence[Mapping[str, Any]], *, name: str
    ) -> None:
        super().__init__(paths)
        self.name = name
        self.facts = tuple(facts)
