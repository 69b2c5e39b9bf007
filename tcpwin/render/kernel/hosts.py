"""Host snapshots as text: files and clocks, and a connection's sockets compared with its packets."""

from __future__ import annotations

from collections.abc import Sequence

from tcpwin.hosts import ClockOffset, JoinedSample, Seen, SocketSample, count_disagreements
from tcpwin.kernel import Kernel, parse_kernel, receive_memory
from tcpwin.limits import Analysis, Connection, role_of
from tcpwin.units import bytes_text, count_text, name_text, share_text, time_text

ROWS_SHOWN = 24
COMPARED_PACKETS = 200_000
"""Maximum packets of a capture for which samples are compared by default: comparing reads the capture a second time."""
_DIFFERENCES = {
    "local_address": "local address",
    "peer_address": "peer address",
    "local_end": "local address and port",
    "peer_end": "peer address and port",
}


def render_hosts(analysis: Analysis) -> list[str]:
    """Render a block for each host: its files, clock offset, and sockets that match no connection."""
    lines = []
    for host in analysis.hosts:
        formats = ", ".join(sorted({file.format for file in host.files}))
        about = [f"{count_text(len(host.files), 'file')} ({formats})"]
        if host.kernel is not None:
            about.append(f"Linux {name_text(host.kernel.release)}")
        about.append(f"{host.matched:,} of {count_text(host.sockets, 'socket sample')} on connections of the capture")
        lines.append(f"host     {name_text(host.label) or 'unnamed'}: {', '.join(about)}")
        if host.clock is not None:
            lines.append(f"         {clock_text(host.clock)}")
        if host.translated:
            first = host.translated[0]
            lines.append(
                f"         {first.local} → {first.peer} differs from connection #{first.connection} in its "
                f"{_DIFFERENCES[first.differs]} only: address translation? Not joined"
            )
        if host.thinned:
            lines.append("         too many samples: only every second one, or fewer, was kept")
        lines += [f"         {name_text(file.name)}: {note}" for file in host.files for note in file.notes]
    return lines


def clock_text(clock: ClockOffset) -> str:
    """Describe a host's clock offset from the capture, and its confidence."""
    if clock.method == "given":
        return f"clock: the capture's is {_signed(clock.offset_ns)} to the host's, as given"
    if clock.method == "assumed":
        if not clock.samples:
            return "clock: nothing to compare with, assumed equal to the capture's"
        return "clock: no offset fits samples and packets, assumed equal to the capture's"
    bounds = (clock.least_ns, clock.most_ns)
    between = " and ".join("unknown" if bound is None else _signed(bound) for bound in bounds)
    agreeing = f"{clock.agreeing:,} of {count_text(clock.samples, 'sample')} agree"
    if clock.method == "same_clock":
        return f"clock: taken as the capture's: its offset is between {between} ({agreeing})"
    return f"clock: the capture's is {_signed(clock.offset_ns)} to the host's (between {between}; {agreeing})"


def _signed(ns: int) -> str:
    return ("−" if ns < 0 else "+") + time_text(abs(ns))


def render_sockets(connection: Connection) -> list[str]:
    """Render a line or two for each end that has samples."""
    lines = []
    for side, samples in sorted(connection.socket_samples.items()):
        told = [each for each in samples if each.congestion_control is not None]
        head = f"socket of the {role_of(connection, side)}: {count_text(len(samples), 'sample')}"
        if not told:
            lines.append(f"{head} without TCP information")
            continue
        lines.append(f"{head}, {_sending(told)}")
        lines += [f"       {line}" for line in (_waiting(told[-1]), _receiving(told, connection, side)) if line]
    return lines + _contradictions(connection)


def _contradictions(connection: Connection) -> list[str]:
    """Render disagreements of kernel and packets: window scales always, samples only for small captures."""
    lines = []
    for claim in connection.scale_claims:
        scale = (connection.a_to_b if claim.side == "b" else connection.b_to_a).window_scale
        if scale.shift is not None and claim.shift != scale.shift:
            by, whose = role_of(connection, claim.by), role_of(connection, claim.side)
            lines.append(f"! the {by}'s socket says shift {claim.shift} for the {whose}'s windows, the packets {scale}")
    if connection.analysis.capture.packets <= COMPARED_PACKETS:
        sides = {each.side for each in connection.snapshots}
        told = [_agreement([each for each in connection.snapshots if each.side == side]) for side in sorted(sides)]
        lines += [line for each in told for line in each if line.startswith("!")]
    return lines


def _sending(samples: Sequence[SocketSample]) -> str:
    windows = [each.cwnd_bytes for each in samples if each.cwnd_bytes is not None]
    segments = [each.cwnd_segments for each in samples if each.cwnd_segments is not None]
    parts = [str(samples[-1].congestion_control)]
    if windows:
        counted = f"{min(segments):,} to {max(segments):,}" if min(segments) < max(segments) else f"{max(segments):,}"
        sizes = [bytes_text(each) for each in sorted({min(windows), max(windows)})]
        parts.append(f"congestion window {counted} segments ({' to '.join(dict.fromkeys(sizes))})")
    unsent = max((each.count("notsent_bytes") or 0 for each in samples), default=0)
    if unsent:
        parts.append(f"at most {bytes_text(unsent)} not sent yet")
    return ", ".join(parts)


def _waiting(last: SocketSample) -> str | None:
    busy_ns = last.count("busy_ns")
    if not busy_ns:
        return None
    limits = [
        (last.count("rwnd_limited_ns") or 0, "the receive window"),
        (last.count("sndbuf_limited_ns") or 0, "its send buffer"),
    ]
    told = [f"for {what} {time_text(ns)} ({share_text(ns / busy_ns)})" for ns, what in limits if ns]
    waited = f"waited {', '.join(told)}" if told else "waited neither for the receive window nor for its send buffer"
    return f"busy {time_text(busy_ns)} of its lifetime, {waited}, by its kernel's counters"


def _receiving(samples: Sequence[SocketSample], connection: Connection, side: str) -> str | None:
    fullest = max(samples, key=lambda each: (each.rmem_alloc_bytes or 0) / (each.rcvbuf_bytes or 1))
    received = fullest.count("bytes_received")
    if not fullest.rmem_alloc_bytes or not fullest.rcvbuf_bytes or not received:
        return None
    memory = receive_memory(fullest, settings=connection.hosts[side].settings, kernel=_kernel(connection, side))
    parts = [
        f"receive memory at most {bytes_text(fullest.rmem_alloc_bytes)} of {bytes_text(fullest.rcvbuf_bytes)} "
        f"({share_text(fullest.rmem_alloc_bytes / fullest.rcvbuf_bytes)})"
    ]
    if memory.measured_overhead is not None and fullest.recv_q_bytes:
        parts.append(
            f"of which {bytes_text(fullest.recv_q_bytes)} of unread data took {memory.measured_overhead:.2f} bytes per "
            "byte"
        )
    if len(memory.allowed) == 1:
        parts.append(f"which allows a window of {bytes_text(memory.allowed[0].window_bytes)}")
    return ", ".join(parts)


def _kernel(connection: Connection, side: str) -> Kernel | None:
    kernel = connection.hosts[side].kernel
    try:
        return None if kernel is None else parse_kernel(kernel.release)
    except ValueError:
        return None


def render_joined(connection: Connection) -> list[str]:
    """Render samples next to the packets, one row each, evenly chosen if there are many. Reads the source again."""
    joined = connection.snapshots
    lines: list[str] = []
    for side in sorted({each.side for each in joined}):
        samples = [each for each in joined if each.side == side]
        row = _sender_row if any(each.sample.count("bytes_sent") for each in samples) else _receiver_row
        table = [row(connection, each) for each in _chosen(samples)]
        lines += [
            "",
            f"socket of the {role_of(connection, side)} next to the packets",
            "".join(f"{head:>14}" for head in table[0]),
        ]
        for cells, each in zip(table, _chosen(samples), strict=True):
            told = "".join(f"{cell:>14}" for cell in cells.values())
            lines.append(told + ("  !" if each.disagreements else ""))
        lines += _agreement(samples)
    return lines[1:]


def _chosen(samples: Sequence[JoinedSample]) -> Sequence[JoinedSample]:
    if len(samples) <= ROWS_SHOWN:
        return samples
    return [samples[place * (len(samples) - 1) // (ROWS_SHOWN - 1)] for place in range(ROWS_SHOWN)]


def _sender_row(connection: Connection, joined: JoinedSample) -> dict[str, str]:
    sample, limits = joined.sample, joined.limits
    peer = role_of(connection, "b" if joined.side == "a" else "a")
    is_busy = limits is not None and limits.busy_ns > 0
    return {
        "at": _at(connection, joined),
        "cwnd × mss": _bytes(joined.cwnd_bytes),
        "in flight": _seen(joined.flight_bytes),
        f"{peer} window": _seen(joined.peer_window_bytes),
        "snd_wnd": _bytes(sample.snd_wnd_bytes),
        "rwnd_limited": share_text(limits.rwnd_limited_ns / limits.elapsed_ns)
        if limits is not None and is_busy
        else "",
        "by packets": _share(limits.window_limited_ns, limits.elapsed_ns) if limits is not None and is_busy else "",
        "notsent": _bytes(sample.count("notsent_bytes")),
    }


def _receiver_row(connection: Connection, joined: JoinedSample) -> dict[str, str]:
    sample = joined.sample
    unread, memory = sample.recv_q_bytes, sample.rmem_alloc_bytes
    return {
        "at": _at(connection, joined),
        f"{role_of(connection, joined.side)} window": _seen(joined.own_window_bytes),
        "rcv_wnd": _bytes(sample.rcv_wnd_bytes),
        "rcv_ssthresh": _bytes(sample.rcv_ssthresh_bytes),
        "Recv-Q": _bytes(unread),
        "r": _bytes(memory),
        "r ÷ rb": _share(memory, sample.rcvbuf_bytes),
        "r ÷ Recv-Q": f"{memory / unread:.2f}" if memory and unread else "",
    }


def _at(connection: Connection, joined: JoinedSample) -> str:
    return "no time" if joined.time_ns is None else _since(joined.time_ns - connection.start_ns)


def _share(part: int | None, whole: int | None) -> str:
    return share_text(part / whole) if part is not None and whole else ""


def _since(ns: int) -> str:
    return time_text(ns) if ns >= 0 else "−" + time_text(-ns)


def _bytes(value: int | None) -> str:
    return "" if value is None else bytes_text(value)


def _seen(seen: Seen | None) -> str:
    return "" if seen is None else bytes_text(seen.value)


def _agreement(samples: Sequence[JoinedSample]) -> list[str]:
    compared = sum(each.acked_bytes is not None or each.peer_window_bytes is not None for each in samples)
    if not compared:
        return ["no sample could be compared with the packets"]
    counted = count_disagreements(list(samples))
    if not counted:
        return [f"{compared:,} of {count_text(len(samples), 'sample')} compared with the packets: all agree"]
    told = ", ".join(f"{name} {count_text(count, 'time')}" for name, count in sorted(counted.items()))
    return [f"! kernel and packets disagree: {told}, of {compared:,} samples compared"]
