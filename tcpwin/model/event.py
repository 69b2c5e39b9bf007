"""The events of one segment: generated from the engine's tables by `just model`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """The events of one segment.

    Attributes:
        frame: Frame number of the segment.
        time_ns: Time in nanoseconds since the Unix epoch.
        direction: Sender of the segment: a is the initiator.
        names: The events, in the order of the per-segment table.
        seq: The segment's, as on the wire.
        ack: The segment's, as on the wire.
        length: Bytes of payload.
        window_raw: The segment's, as on the wire.
        cause: Cause of the retransmission or of the late arrival.
        reason: The rule that decided, in words.
        confidence: Confidence in the cause.
        original_frame: Newest earlier frame with the first byte of the segment, from which age_ns is counted; none if
            unknown, as for acknowledged data. For a late segment: frame of the segment that overtook it.
        trigger_frame: Frame of the ACK that triggered the retransmission.
        age_ns: Time since the bytes were last sent, as far as the capture shows.
        rto_ns: The sender's retransmission timeout, including back-off.
    """

    frame: int
    time_ns: int
    direction: str
    names: tuple[str, ...]
    seq: int
    ack: int
    length: int
    window_raw: int
    cause: str | None = None
    reason: str | None = None
    confidence: str | None = None
    original_frame: int | None = None
    trigger_frame: int | None = None
    age_ns: int | None = None
    rto_ns: int | None = None
