"""The tree of errors.

TcpwinError
├── CaptureError    a file that cannot be read as a capture
├── SnapshotError   a file of host snapshots that cannot be read
├── FilterError     a filter that libpcap rejects
├── SourceError     an object that is not a source of packets, or cannot be read again
├── OutputError     a result that cannot be written
└── ArgumentError   an invalid argument, such as a reversed span or an unknown figure

A bad packet is data: it is counted and shown, never raised.
"""

from __future__ import annotations


class TcpwinError(Exception):
    """Base of all errors that tcpwin raises deliberately."""


class CaptureError(TcpwinError):
    """A capture that cannot be read at all: not a capture, empty, or unreadable.

    A capture damaged further on is not an error: everything before the damage is read, and a warning is added.
    """

    def __init__(self, message: str, file: str, byte_offset: int) -> None:
        super().__init__(message, file, byte_offset)
        self.message = message
        self.file = file
        self.byte_offset = byte_offset

    def __str__(self) -> str:
        where = f" (at byte {self.byte_offset})" if self.byte_offset else ""
        return f"{self.file}: {self.message}{where}"


class SnapshotError(TcpwinError):
    """A file of host snapshots that cannot be read at all: empty, binary, or of an unknown format.

    A line that cannot be parsed is not an error: it is counted and kept.
    """

    def __init__(self, message: str, file: str) -> None:
        super().__init__(message, file)
        self.message = message
        self.file = file

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


class SourceError(TcpwinError):
    """An object that cannot be read as packets, or that changed since it was read."""


class FilterError(TcpwinError):
    """A filter that libpcap rejects, or cannot compile for a capture's link type."""


class OutputError(TcpwinError):
    """A result that cannot be written."""


class ArgumentError(TcpwinError, ValueError):
    """An invalid argument, such as a reversed span or an unknown figure."""


def need(what: str, *packages: str, extra: str) -> None:
    """Check that the packages of an extra are installed.

    Args:
        what: what needs them, as the subject of a sentence: ``an Arrow table``.

    Raises:
        OutputError: one is missing; the message includes the command that installs it.
    """
    from importlib.util import find_spec

    for package in packages:
        if find_spec(package) is None:
            raise OutputError(f"{what} needs {package}: pip install 'tcpwin[{extra}]'")
