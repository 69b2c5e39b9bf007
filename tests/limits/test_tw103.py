"""TW103 window-scale-ignored: flights that end at the raw field's value, and data beyond every window."""

from __future__ import annotations

from pathlib import Path

from stories.conversation import Conversation, Exchange
from stories.story import Story, blame, judged
from stories.window_stories import NO_SCALE, full, one, rounds, scaled


def stops_after(size: int, *, count: int = 11) -> Story:
    """b offers 502 << 7 bytes; a sends this much per round trip."""
    story = Story().handshake(options=scaled(7), scaled=(502, 502))
    return rounds(story, count, [size]).close()


def overruns(count: int, window: int = 509) -> Story:
    """b offers an unscaled window; a sends three segments per round trip, two of which end beyond it."""
    story = Story(window={"a": 64_240, "b": window}).handshake(options=NO_SCALE, scaled=(64_240, window))
    return rounds(story, count, [400, 1460, 1460]).close()


def test_fires_on_a_sender_that_reads_502_as_502_bytes(tmp_path: Path) -> None:
    finding = one(stops_after(502).analyze(tmp_path), "TW103")
    assert (finding.connection, finding.direction, finding.side) == (0, "a_to_b", "client")
    assert (finding.owner, finding.confidence, finding.cost_ns) == ("client_host", "likely", 400_000_000)
    # The first flight had the SYN/ACK's window of 65,160. Segments and ACKs alternate: frames 6, 8, ... 24; six of ten
    # are listed.
    assert finding.evidence.frames == (6, 8, 12, 16, 20, 24)
    assert finding.evidence.values == {
        "stops_at_raw_window": 10,
        "stops": 11,
        "shift": 7,
        "flight_max_bytes": 502,
        "window_max_bytes": 65_160,
    }


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Flights that end at other values.
    assert not judged(stops_after(501).analyze(tmp_path), "TW103")
    # Only nine flights.
    story = stops_after(502, count=10)
    assert not judged(story.analyze(tmp_path), "TW103")
    assert judged(story.analyze(tmp_path), "TW103", {"TW103.times": 9})
    # Messages of exactly that size, each of them answered.
    story = Conversation([Exchange(request_bytes=509)] * 30).story()
    assert not judged(story.analyze(tmp_path), "TW103")
    # Data within the window.
    assert not judged(overruns(5, window=3_320).analyze(tmp_path), "TW103")
    assert not judged(overruns(4).analyze(tmp_path), "TW103")
    # A full window: 502 raw, and all of 502 << 7 in flight, as expected.
    story = Story().handshake(options=scaled(7), scaled=(502, 502))
    assert not judged(rounds(story, 10, full(502 << 7)).close().analyze(tmp_path), "TW103")


def test_fires_on_a_sender_that_scales_an_unscaled_window(tmp_path: Path) -> None:
    finding = one(overruns(5).analyze(tmp_path), "TW103")
    assert blame(finding) == ("a_to_b", "client", "client_host", "possible")
    assert finding.evidence.values == {
        "window_overrun": 10,
        "shift": 0,
        "flight_max_bytes": 3_320,
        "window_max_bytes": 509,
    }
    # After the handshake, three segments and an ACK each time; the second and third segment end beyond 509 bytes.
    assert finding.evidence.frames == (5, 6, 10, 14, 18, 22)
