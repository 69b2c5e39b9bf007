"""A buffer of the newest packets, bounded in seconds and bytes."""

from __future__ import annotations

from collections import deque

from tcpwin.watch.chunk import Chunk


class Recent:
    """The packets of the last seconds.

    Attributes:
        packets: number received so far.
        kept_packets, kept_bytes: packets and bytes still in the buffer.
    """

    def __init__(self, most_ns: int, most_bytes: int) -> None:
        self.packets = 0
        self.kept_packets = 0
        self.kept_bytes = 0
        self._most_ns = most_ns
        self._most_bytes = most_bytes
        self._chunks: deque[Chunk] = deque()

    def add(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)
        self.packets += chunk.packets
        self.kept_packets += chunk.packets
        self.kept_bytes += len(chunk.records)
        while len(self._chunks) > 1 and (
            self.kept_bytes > self._most_bytes or chunk.last_ns - self._chunks[0].last_ns > self._most_ns
        ):
            oldest = self._chunks.popleft()
            self.kept_packets -= oldest.packets
            self.kept_bytes -= len(oldest.records)

    @property
    def span_ns(self) -> int:
        """Return the time from the first to the last packet in the buffer."""
        return max(self._chunks[-1].last_ns - self._chunks[0].first_ns, 0) if self._chunks else 0

    def capture(self, header: bytes) -> bytes:
        """Return the buffer as a file with this header."""
        return b"".join([header, *(chunk.records for chunk in self._chunks)])
