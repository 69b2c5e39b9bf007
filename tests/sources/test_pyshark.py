"""pyshark's packets give the same results as their file."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyshark
import pytest
from analysis.bundled import CAPTURES, name_of, rows_of
from spread import some_by_day

import tcpwin

PATHS = [CAPTURES / "wild" / "forwarded-any.pcap.zst", CAPTURES / "wild" / "http-download.pcapng"]


@pytest.fixture
def opened(tool: Callable[[str], str]) -> Iterator[Callable[..., Any]]:
    # pyshark takes the thread's event loop, which `asyncio.run` in another test has taken away.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    captures = []

    def open_capture(path: Path, **options: Any) -> Any:
        captures.append(pyshark.FileCapture(str(path), tshark_path=tool("tshark"), **options))
        return captures[-1]

    yield open_capture
    for each in captures:
        each.close()
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.parametrize("path", some_by_day(PATHS, of=2), ids=name_of)
def test_packets_give_what_the_file_gives(path: Path, opened: Callable[..., Any]) -> None:
    capture = opened(path, use_json=True, include_raw=True)
    analysis = tcpwin.analyze(capture)
    assert list(analysis.segments().rows()) == rows_of(path)
    assert analysis.name == "pyshark packets"
    [connection] = tcpwin.analyze([capture[0]])
    assert connection.start_ns == rows_of(path)[0]["time_ns"]


def test_packets_without_bytes(opened: Callable[..., Any]) -> None:
    with pytest.raises(tcpwin.SourceError, match="use_json=True and include_raw=True"):
        tcpwin.analyze(opened(PATHS[1]))
