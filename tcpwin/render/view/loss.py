"""Retransmissions and their causes, and reordering: lines of a direction."""

from __future__ import annotations

from tcpwin.analysis import Direction
from tcpwin.limits import Connection
from tcpwin.units import bytes_text, count_text, share_text, time_text

JUDGED = {"receiver": ", judged near the receiver", "unknown": ", capture point unknown"}
"""Capture points that can only infer the sender's reasons, because they see its ACKs before it does, or may."""

LEAST_SHARE = 0.005
"""Minimum share that is not printed as 0 %."""


def render_loss(connection: Connection, direction: Direction) -> list[str]:
    """Render causes of retransmissions, needless ones, time in recovery, and reordering. Omits anything absent."""
    lines = []
    causes = causes_of(direction)
    if causes:
        lines.append(f"retransmissions: {', '.join(causes)}{JUDGED.get(direction.view, '')}")
    proofs = _proofs_of(direction)
    if proofs:
        lines.append(f"spurious: {', '.join(proofs)}")
    if direction.recovery_ns:
        times = f"{count_text(direction.recoveries, 'time')}, " if direction.recoveries else ""
        share = recovery_share_text(connection, direction)
        share = f", {share} of the connection" if share else ""
        lines.append(f"loss recovery: {times}{time_text(direction.recovery_ns)} in all{share}")
    if direction.out_of_order:
        extent = f"by up to {bytes_text(direction.reordering_max_bytes)} and {time_text(direction.reordering_max_ns)}"
        lines.append(f"order: {count_text(direction.out_of_order, 'segment')} late, {extent}")
    if direction.capture_reordered:
        late = count_text(direction.capture_reordered, "segment")
        lines.append(f"capture order: {late} recorded late")
    return lines


def causes_of(direction: Direction) -> list[str]:
    """Count the causes in words. Each retransmission has one cause."""
    recovery = f"{direction.recovery_retransmissions:,} in recovery"
    if direction.lost_retransmissions:
        recovery += f" ({direction.lost_retransmissions:,} of them not for the first time)"
    counted = [
        (direction.fast_retransmissions, f"{direction.fast_retransmissions:,} fast"),
        (direction.recovery_retransmissions, recovery),
        (direction.rto_retransmissions, f"{direction.rto_retransmissions:,} by timeout"),
        (direction.go_back_n_retransmissions, f"{direction.go_back_n_retransmissions:,} after a timeout"),
        (direction.tail_loss_probes, count_text(direction.tail_loss_probes, "tail loss probe")),
        (direction.spurious_retransmissions, f"{direction.spurious_retransmissions:,} of data already acknowledged"),
        (direction.syn_retransmissions, f"{direction.syn_retransmissions:,} of the SYN"),
        (direction.fin_retransmissions, f"{direction.fin_retransmissions:,} of the FIN"),
        (
            direction.fast_open_retransmissions,
            f"{direction.fast_open_retransmissions:,} rejected by the SYN/ACK",
        ),
        (direction.zero_window_retransmissions, f"{direction.zero_window_retransmissions:,} into a closed window"),
        (direction.unknown_retransmissions, f"{direction.unknown_retransmissions:,} unexplained"),
    ]
    return [text for count, text in counted if count]


def needless_of(direction: Direction) -> int:
    """Count the retransmissions proved spurious, without counting timeouts twice that both F-RTO and DSACKs reveal."""
    return direction.spurious_by_dsack + direction.spurious_by_timestamps


def recovery_share_text(connection: Connection, direction: Direction) -> str:
    """Return the share of the connection in recovery; away from the sender, its ends are inferred from the path's round
    trip.
    """
    share = direction.recovery_ns / connection.duration_ns if connection.duration_ns else 0.0
    about = "" if direction.view == "sender" else "about "
    return f"{about}{share_text(share)}" if share >= LEAST_SHARE else ""


def _proofs_of(direction: Direction) -> list[str]:
    counted = [
        (direction.spurious_by_dsack, f"{direction.spurious_by_dsack:,} that the receiver reported as duplicates"),
        (direction.spurious_by_timestamps, f"{direction.spurious_by_timestamps:,} by the timestamps echoed"),
        (
            direction.spurious_by_frto,
            f"{count_text(direction.spurious_by_frto, 'timeout')} by the ACK after it (F-RTO)",
        ),
    ]
    return [text for count, text in counted if count]
