"""The measured fields of a connection: generated from the engine's tables by `just model`."""

from collections.abc import Mapping
from typing import Any


class ConnectionFields:
    """The measured fields of a connection, each read from the engine when it is first used."""

    _fields: Mapping[str, Any]

    @property
    def ip_version(self) -> int:
        """4 or 6."""
        value: int = self._fields["ip_version"]
        return value

    @property
    def initiator_known(self) -> bool:
        """A SYN or SYN/ACK identifies the initiator; otherwise it is guessed from the ports."""
        value: bool = self._fields["initiator_known"]
        return value

    @property
    def sampled(self) -> bool:
        """Some of its segments were sampled by a flow monitor (sFlow): most others are missing, so no loss or cause is
        certain."""
        value: bool = self._fields["sampled"]
        return value

    @property
    def multipath(self) -> bool:
        """Multipath TCP is in use (RFC 8684): both SYNs carry MP_CAPABLE or MP_JOIN, or a segment carries DSS. The
        connection is one subflow; others may have carried data while it was silent."""
        value: bool = self._fields["multipath"]
        return value

    @property
    def epoch(self) -> int:
        """Number of earlier connections in the capture with the same four-tuple."""
        value: int = self._fields["epoch"]
        return value

    @property
    def first_frame(self) -> int:
        """Frame of the first segment."""
        value: int = self._fields["first_frame"]
        return value

    @property
    def start_ns(self) -> int:
        """Time of the first segment, nanoseconds since the Unix epoch."""
        value: int = self._fields["start_ns"]
        return value

    @property
    def end_ns(self) -> int:
        """Time of the last segment, nanoseconds since the Unix epoch; for a connection that is stalled when the capture
        ends, time of the capture's last packet, at most two minutes later (see stall_at_end)."""
        value: int = self._fields["end_ns"]
        return value

    @property
    def duration_ns(self) -> int:
        """From start_ns to end_ns."""
        value: int = self._fields["duration_ns"]
        return value

    @property
    def syn_ns(self) -> int | None:
        """Time of the last SYN."""
        value: int | None = self._fields["syn_ns"]
        return value

    @property
    def syn_ack_ns(self) -> int | None:
        """Time of the last SYN/ACK."""
        value: int | None = self._fields["syn_ack_ns"]
        return value

    @property
    def established_ns(self) -> int | None:
        """Time of the ACK that completed the handshake."""
        value: int | None = self._fields["established_ns"]
        return value

    @property
    def handshake_rtt_ns(self) -> int | None:
        """From the SYN to the ACK that completed the handshake: the round trip of the whole path; none if a SYN or
        SYN/ACK was retransmitted."""
        value: int | None = self._fields["handshake_rtt_ns"]
        return value

    @property
    def handshake_rtt_a_ns(self) -> int | None:
        """From the SYN/ACK to the ACK that completed the handshake: between the capture point and a; none if either was
        retransmitted."""
        value: int | None = self._fields["handshake_rtt_a_ns"]
        return value

    @property
    def handshake_rtt_b_ns(self) -> int | None:
        """From the SYN to the SYN/ACK: between the capture point and b; none if either was retransmitted."""
        value: int | None = self._fields["handshake_rtt_b_ns"]
        return value

    @property
    def vantage(self) -> str:
        """Capture point: a or b (within a tenth of the path's round trip from that side), between, or unknown."""
        value: str = self._fields["vantage"]
        return value

    @property
    def path_rtt_ns(self) -> int | None:
        """Minimum known round trip of the whole path: the handshake's, or the sum of both sides of the capture point,
        each the minimum time from data to its ACK or from a timestamp to its echo."""
        value: int | None = self._fields["path_rtt_ns"]
        return value

    @property
    def turns_state(self) -> str:
        """Whether the packets show whose turn it was: known, overlapping (several requests under way, whose answers may
        be in another order), interleaved (both sides send whenever they like), scheduled (b sends at even times,
        whenever a sends), or one_sided (no data was answered)."""
        value: str = self._fields["turns_state"]
        return value

    @property
    def exchanges(self) -> int:
        """Requests that b answered once all of the request had arrived, or in turn if several were under way; 0 if the
        turns are unknown."""
        value: int = self._fields["exchanges"]
        return value

    @property
    def requester_turn_ns(self) -> int:
        """Time between an answer or the handshake and a's next request, if it came within 30 s: spent in a's
        application."""
        value: int = self._fields["requester_turn_ns"]
        return value

    @property
    def responder_turn_ns(self) -> int:
        """Time between the arrival of a request at b and the first byte of the answer: spent in b's application."""
        value: int = self._fields["responder_turn_ns"]
        return value

    @property
    def round_trip_turns_ns(self) -> int:
        """Time in which requests and the last bytes of answers were in transit: one round trip per exchange."""
        value: int = self._fields["round_trip_turns_ns"]
        return value

    @property
    def overlapped_turns_ns(self) -> int:
        """With several requests under way, the part of the larger of responder_turn_ns and round_trip_turns_ns in which
        the other passed, too: removing the larger alone would save less by this."""
        value: int = self._fields["overlapped_turns_ns"]
        return value

    @property
    def nothing_asked_ns(self) -> int:
        """Time without a request: before requests that came more than 30 s after the previous answer, and after the
        last answer."""
        value: int = self._fields["nothing_asked_ns"]
        return value

    @property
    def close(self) -> str:
        """closed (FIN both ways), half_closed, reset, reset_after_close, refused (RST answers the SYN), unanswered, or
        open at the end of the capture."""
        value: str = self._fields["close"]
        return value

    @property
    def ecn(self) -> str | None:
        """Explicit congestion notification as negotiated by the SYNs: off (not offered), refused, ecn (RFC 3168) or
        accecn (RFC 9768)."""
        value: str | None = self._fields["ecn"]
        return value

    @property
    def stall_count(self) -> int:
        """Silences longer than 200 ms, two round trips or the timeout in which a side waited for the other, the path or
        a timer."""
        value: int = self._fields["stall_count"]
        return value

    @property
    def stall_ns(self) -> int:
        """Total time of the stalls."""
        value: int = self._fields["stall_ns"]
        return value

    @property
    def stall_longest_ns(self) -> int:
        """Longest stall."""
        value: int = self._fields["stall_longest_ns"]
        return value

    @property
    def pause_count(self) -> int:
        """Silences of the same length in which neither side had anything to send."""
        value: int = self._fields["pause_count"]
        return value

    @property
    def pause_ns(self) -> int:
        """Total time of the pauses."""
        value: int = self._fields["pause_ns"]
        return value

    @property
    def closed_first(self) -> str | None:
        """The side, a or b, whose FIN or RST came first."""
        value: str | None = self._fields["closed_first"]
        return value

    @property
    def reset_by(self) -> str | None:
        """The side, a or b, that sent the first RST."""
        value: str | None = self._fields["reset_by"]
        return value
