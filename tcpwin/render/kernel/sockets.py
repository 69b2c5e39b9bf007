"""Sockets, and distributions over sockets, as text tables.

In: socket samples, or distributions. Out: lines of at most 120 characters for ordinary values. A missing number is
`-`; a number that `ss` omits because it is zero is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tcpwin.hosts import Distribution, SocketSample, number_of, socket_values
from tcpwin.units import bytes_text, clock_text, count_text, name_text, rate_text, share_text, time_text

ABSENT = "-"
MOST_CONCLUSIONS = 20
_INDENT = "  "
_PERCENTILES = ("min", "p25", "p50", "p75", "p85", "p95", "p99", "max", "mean", "sum")
_LEGEND = {
    "cwnd": "cwnd: congestion window in bytes, segments × MSS",
    "send": "send, delivery: bit/s",
    "r/rb": "r/rb: receive memory used / allowed",
    "Recv-Q": "Recv-Q: received and not yet read; of a LISTEN socket, connections not yet accepted / allowed",
    "retrans": "retrans: segments retransmitted, now in flight / in all",
    "rwnd": "rwnd, sndbuf: share of the busy time limited by the peer's window, by the send buffer",
}


def span_text(first_ns: int | None, last_ns: int | None) -> str:
    """Format the first and last time of samples, with the date and the duration."""
    if first_ns is None or last_ns is None:
        return "at unknown times"
    if first_ns == last_ns:
        return f"at {clock_text(first_ns, with_date=True)} UTC"
    is_same_day = first_ns // 86_400_000_000_000 == last_ns // 86_400_000_000_000
    end = clock_text(last_ns, with_date=not is_same_day)
    return f"{clock_text(first_ns, with_date=True)} to {end} UTC ({time_text(last_ns - first_ns)})"


def value_text(name: str, value: Any) -> str:
    """Format a value in the unit that its field's name ends with."""
    if value is None:
        return ABSENT
    if name == "time_ns":
        return clock_text(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return name_text(value) or ABSENT
    if name.endswith("_bytes"):
        return bytes_text(value).replace(" ", "")
    if name.endswith("_bps"):
        return _rate(value)
    if name.endswith("_ns"):
        return time_text(value).replace(" ", "")
    if name.endswith("_share"):
        return share_text(value).replace(" ", "")
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def endpoint_text(address: str, port: int | None, service: str | None, scope: str | None) -> str:
    """Format an address and a port as `ss` does."""
    host = name_text(address) + (f"%{name_text(scope)}" if scope else "")
    shown = name_text(service) if service is not None else "*" if port is None else str(port)
    return f"[{host}]:{shown}" if ":" in address else f"{host}:{shown}"


def render_sockets(
    samples: Sequence[SocketSample], *, fields: Sequence[str] = (), labels: Sequence[str] = ()
) -> Iterator[str]:
    """Render a table of samples: two lines each, or one line with the given fields.

    Args:
        samples: the samples in the order of the table.
        fields: shown instead of the usual ones.
        labels: a label for each sample, such as the number of its file; shown if there are any.
    """
    if not samples:
        return
    head = _who(samples, labels)
    if fields:
        texts = [[value_text(name, value) for name, value in socket_values(each, fields).items()] for each in samples]
        columns = [_align((title, *cells), is_left=True) for title, *cells in head]
        columns += [_align((name, *cells)) for name, cells in zip(fields, zip(*texts, strict=True), strict=True)]
        for words in zip(*columns, strict=True):
            yield "  ".join(words).rstrip()
        return
    firsts = list(zip(*(_align(column, is_left=True) for column in head), strict=True))
    shown = _usual_columns(samples)
    numbers = list(zip(*(_align(column) for column in shown), strict=True))
    for place, first in enumerate(firsts):
        yield "  ".join(first).rstrip()
        if numbers:
            yield _INDENT + "  ".join(numbers[place]).rstrip()
    titles = {column[0] for column in shown}
    legend = [text for title, text in _LEGEND.items() if title in titles]
    if legend:
        yield ""
        yield from legend


def render_conclusions(samples: Iterable[SocketSample]) -> Iterator[str]:
    """Render what samples show by themselves: a line for each of the first `MOST_CONCLUSIONS` with anything unusual."""
    from tcpwin.hosts import conclude

    told = ((each, conclude(each)) for each in samples)
    for number, (each, text) in enumerate((each, text) for each, text in told if text is not None):
        if number == MOST_CONCLUSIONS:
            yield "More sockets have conclusions; --format json shows all."
            return
        local = endpoint_text(each.local_address, each.local_port, each.local_service, each.local_scope)
        peer = endpoint_text(each.peer_address, each.peer_port, each.peer_service, each.peer_scope)
        yield f"{local} → {peer}: {text}"


def _who(samples: Sequence[SocketSample], labels: Sequence[str]) -> list[list[str]]:
    columns = []
    if labels:
        columns.append(["file", *labels])
    if any(each.time_ns is not None for each in samples):
        columns.append(["time", *(clock_text(each.time_ns) for each in samples)])
    if any(each.state for each in samples):
        columns.append(["state", *(name_text(each.state) or ABSENT for each in samples)])
    columns.append(
        [
            "local",
            *(endpoint_text(s.local_address, s.local_port, s.local_service, s.local_scope) for s in samples),
        ]
    )
    columns.append(
        ["peer", *(endpoint_text(s.peer_address, s.peer_port, s.peer_service, s.peer_scope) for s in samples)]
    )
    return columns


def _usual_columns(samples: Sequence[SocketSample]) -> list[list[str]]:
    """Return the columns in which any socket has a value."""
    has_tcp_info = any(each.cwnd_segments is not None for each in samples)
    # `ss` omits a zero window: only another socket's value proves that the kernel reports windows (since 5.4).
    has_windows = any(each.snd_wnd_bytes is not None for each in samples)
    columns = []
    for title, text in _USUAL:
        if (title == "Send-Q" and has_tcp_info) or (title == "snd_wnd" and not has_windows):
            continue
        cells = [text(each) for each in samples]
        if any(cell != ABSENT for cell in cells):
            columns.append([title, *cells])
    return columns


def _field(name: str) -> Callable[[SocketSample], str]:
    return lambda sample: value_text(name, number_of(sample, name, fill_zeros=True))


def _received(sample: SocketSample) -> str:
    if sample.accept_queue is None:
        return value_text("recv_q_bytes", sample.recv_q_bytes)
    return f"{sample.accept_queue:,}/{value_text('', sample.accept_queue_max)}"


def _receive_memory(sample: SocketSample) -> str:
    if sample.rmem_alloc_bytes is None and sample.rcvbuf_bytes is None:
        return ABSENT
    used = value_text("rmem_alloc_bytes", sample.rmem_alloc_bytes)
    return f"{used}/{value_text('rcvbuf_bytes', sample.rcvbuf_bytes)}"


def _retransmissions(sample: SocketSample) -> str:
    now, total = (number_of(sample, name, fill_zeros=True) for name in ("retrans_segments", "retrans_total"))
    if now is None and total is None:
        return ABSENT
    return f"{value_text('', now)}/{value_text('', total)}"


def _share(name: str) -> Callable[[SocketSample], str]:
    def text(sample: SocketSample) -> str:
        share: float | None = getattr(sample, f"{name}_share")
        if share is None and sample.busy_ns is not None:
            share = 0.0
        return value_text("_share", share)

    return text


_USUAL: tuple[tuple[str, Callable[[SocketSample], str]], ...] = (
    ("cwnd", _field("cwnd_bytes")),
    ("rtt", _field("rtt_ns")),
    ("rto", _field("rto_ns")),
    ("send", _field("send_bps")),
    ("delivery", _field("delivery_rate_bps")),
    ("snd_wnd", _field("snd_wnd_bytes")),
    ("rcv_ssth", _field("rcv_ssthresh_bytes")),
    ("r/rb", _receive_memory),
    ("Recv-Q", _received),
    ("Send-Q", _field("send_q_bytes")),
    ("notsent", _field("notsent_bytes")),
    ("retrans", _retransmissions),
    ("rwnd", _share("rwnd_limited")),
    ("sndbuf", _share("sndbuf_limited")),
)


def render_distributions(found: Mapping[str, Distribution | None], *, sockets: int) -> Iterator[str]:
    """Render distributions as a table; a single field also has its exact numbers."""
    if not found:
        yield f"{count_text(sockets, 'socket')}, none with any number"
        return
    if len(found) == 1:
        [(name, only)] = found.items()
        yield from _render_one(name, only, sockets)
        return
    rows = [["field", "count", *_PERCENTILES]]
    for name, each in found.items():
        if each is None:
            rows.append([name, "0", *(ABSENT for _ in _PERCENTILES)])
        else:
            rows.append([name, f"{each.count:,}", *(value_text(name, getattr(each, key)) for key in _PERCENTILES)])
    columns = [_align(column, is_left=not place) for place, column in enumerate(zip(*rows, strict=True))]
    for words in zip(*columns, strict=True):
        yield " ".join(words).rstrip()


def _render_one(name: str, found: Distribution | None, sockets: int) -> Iterator[str]:
    if found is None:
        yield f"{name}: reported by none of {count_text(sockets, 'socket')}"
        return
    yield f"{name} of {count_text(found.count, 'socket')}"
    exact = [f"{_exact(getattr(found, key))}" for key in _PERCENTILES]
    readable = [value_text(name, getattr(found, key)) for key in _PERCENTILES]
    columns = (_align(_PERCENTILES, is_left=True), _align(exact), _align(readable))
    for words in zip(*columns, strict=True):
        yield _INDENT + "  ".join(words)


def _exact(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}".rstrip("0").rstrip(".")


def _rate(bits_per_second: float) -> str:
    """Format a rate without its unit: ``7.49M``."""
    return rate_text(bits_per_second).removesuffix("bit/s").replace(" ", "")


def _align(cells: Iterable[str], *, is_left: bool = False) -> list[str]:
    texts = list(cells)
    width = max(map(len, texts))
    return [text.ljust(width) if is_left else text.rjust(width) for text in texts]
