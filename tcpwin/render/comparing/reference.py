"""Published references as text: the list, one reference with its runs, and the nearest runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tcpwin.limits import LIMIT_NAMES
from tcpwin.reference import (
    ARTICLES,
    Article,
    Bucket,
    LabRun,
    Latency,
    Nearness,
    RateRange,
    Reference,
    Run,
    buffer_words,
    kernel_words,
    path_words,
    result_words,
    stated_text,
)
from tcpwin.units import binary_text, bytes_text, count_text, rate_text, share_text, time_text

_BOUNDS = {"exact": "", "about": "about ", "over": "over "}


def render_references(references: Iterable[Reference]) -> Iterator[str]:
    """Render the list of references, one line each."""
    listed = list(references)
    width = max((len(each.name) for each in listed), default=0)
    for each in listed:
        yield f"{each.name:<{width}}  {count_text(len(each.runs), 'run'):>7}  {each.title}"


def render_reference(reference: Reference, runs: Sequence[Run]) -> Iterator[str]:
    """Render a reference: its source, its gaps, and some of its runs."""
    yield f"{reference.name}: {reference.title}"
    source = reference.source
    by = ", ".join(each for each in (source.publisher, source.published) if each)
    yield f"source: {source.article}{f' ({by})' if by else ''}"
    yield f"        {source.section}"
    yield from (f"note: {note}" for note in reference.notes)
    for run in runs:
        yield ""
        yield from _run_lines(run)


def render_articles(articles: Iterable[Article]) -> Iterator[str]:
    """Render the list of articles, one line each."""
    listed = list(articles)
    width = max((len(each.name) for each in listed), default=0) + len(ARTICLES) + 1
    for each in listed:
        yield f"{f'{ARTICLES}/{each.name}':<{width}}  {len(each.entries):>3} entries  {each.title}"


def render_article(article: Article) -> Iterator[str]:
    """Render the entries of an article: its numbers, and the command that shows tcpwin's."""
    by = ", ".join(each for each in (article.publisher, article.published) if each)
    yield f"{article.name}: {article.title} ({by})"
    place = ""
    for entry in article.entries:
        if entry.place != place:
            place = entry.place
            yield ""
            yield place
        yield f"  {entry.what}"
        numbers = [
            (f"{number.what} " if number.what else "") + stated_text(number)
            for number in entry.numbers
            if stated_text(number)
        ]
        if numbers:
            yield f"    article: {'; '.join(numbers)}"
        yield f"    {f'not in tcpwin: {entry.because}' if entry.because else entry.command.removesuffix(' --json')}"


def render_library(runs: Iterable[LabRun]) -> Iterator[str]:
    """Render the list of the library's runs, one line each."""
    listed = list(runs)
    width = max((len(each.full_name) for each in listed), default=0)
    for run in listed:
        yield f"{run.full_name:<{width}}  {rate_text(run.goodput_bps):>11}  {LIMIT_NAMES[run.limit]}"


def render_lab_run(run: LabRun) -> Iterator[str]:
    """Render one run of the library: what was set, and what happened."""
    yield run.full_name
    yield f"  path: {time_text(run.rtt_ns)}, {path_words(run)}"
    yield f"  buffers: {buffer_words(run)}"
    for name, pace_bps in (("writer", run.writer_bps), ("reader", run.reader_bps)):
        if pace_bps is not None:
            yield f"  {name}: {rate_text(pace_bps)}"
    yield f"  {run.algorithm}, {kernel_words(run)}, {count_text(run.seeds, 'run')}"
    yield f"  carried: {bytes_text(run.volume_bytes)} in {time_text(run.duration_ns)}, {result_words(run)}"
    cost = f", cost {time_text(run.cost_ns)}" if run.cost_ns else ""
    yield f"  limited by: {LIMIT_NAMES[run.limit]} ({share_text(run.share)} of the time, {run.confidence}{cost})"
    yield from (f"  {name.removeprefix('TcpExt')}: {count:,}" for name, count in run.counters.items())
    yield f"repeat it: tcpwin lab run {run.full_name}"


def render_nearest(found: Iterable[Nearness]) -> Iterator[str]:
    """Render runs with their distance, similarities and differences."""
    for number, near in enumerate(found):
        if number:
            yield ""
        yield f"distance {near.distance:.2f}: {near.run.reference}/{near.run.name}"
        yield from (f"  {why}" for why in near.why)
        yield from (f"  {line}" for line in _run_lines(near.run)[1:])


def run_facts(run: Run) -> Iterator[tuple[str, str]]:
    """Return a run's settings and results as pairs of name and text; a name may occur twice."""
    yield from _conditions(run)
    yield from _results(run)
    for sample in run.ramp:
        sent_again = f", {sample.retransmissions} retransmitted" if sample.retransmissions else ""
        yield "ramp", f"{sample.end_ns / 1e9:g} s {rate_text(sample.rate_bps)}{sent_again}"


def rates_text(run: Run) -> str:
    """Return the lowest and highest Mbit/s of each loop; empty if none are stated."""
    return " / ".join(map(_rates, run.throughput))


def _run_lines(run: Run) -> list[str]:
    lines = [run.name]
    lines += [f"  {name}: {text}" for name, text in _conditions(run)]
    lines += [f"  {name}: {text}" for name, text in _results(run)]
    for place, sample in enumerate(run.ramp):
        cwnd = "" if sample.cwnd_bytes is None else f", cwnd {bytes_text(sample.cwnd_bytes)}"
        sent_again = f", {sample.retransmissions} retransmitted"
        begin = "  ramp: " if place == 0 else "        "
        lines.append(f"{begin}{sample.end_ns / 1e9:>3g} s  {rate_text(sample.rate_bps):>11}{sent_again}{cwnd}")
    return lines


def _conditions(run: Run) -> Iterator[tuple[str, str]]:
    path = [
        "" if run.rtt_ns is None else f"round trip {time_text(run.rtt_ns)}",
        "" if run.rate_bps is None else rate_text(run.rate_bps),
    ]
    yield "workload", ", ".join([run.workload, *(each for each in path if each)])
    if run.kernel is not None or run.is_patched is not None:
        patch = {None: "", True: "with the collapse patch", False: "without the collapse patch"}[run.is_patched]
        yield "kernel", ", ".join(each for each in (run.kernel or "unstated version", patch) if each)
    memory = [
        "" if run.rmem_max_bytes is None else f"tcp_rmem at most {binary_text(run.rmem_max_bytes)}",
        "" if run.adv_win_scale is None else f"tcp_adv_win_scale {run.adv_win_scale:+d}",
        "" if run.tcp_mem_max_bytes is None else f"tcp_mem at most {binary_text(run.tcp_mem_max_bytes)}",
        "" if run.memory_ratio is None else f"{run.memory_ratio:g} bytes of memory per byte of data",
    ]
    window = [
        "" if run.window_bytes is None else f"window {binary_text(run.window_bytes)}",
        "" if run.window_raw is None else f"window {run.window_raw:,} with shift {run.window_shift}",
        "" if run.window_max_bytes is None else f"up to {binary_text(run.window_max_bytes)}",
        "" if run.sockets is None else count_text(run.sockets, "socket"),
    ]
    if any((*memory, *window)):
        yield "memory", ", ".join(each for each in (*memory, *window) if each)
    for name, value in run.settings.items():
        yield "setting", f"{name} = {value}"


def _results(run: Run) -> Iterator[tuple[str, str]]:
    if run.throughput:
        yield "throughput", f"{rates_text(run)} Mbit/s"
    if run.counters:
        yield "counters", ", ".join(f"{name} {count:,}" for name, count in run.counters.items())
    if run.latencies:
        yield "latency", ", ".join(f"{name} {_latency(each)}" for name, each in run.latencies.items())
    if run.max_latency_ns is not None:
        yield "tcp_try_rmem_schedule", f"at most {time_text(run.max_latency_ns)}"
    if run.latency_histogram:
        spans = [f"{_span(each)} {each.count:,}" for each in run.latency_histogram if each.count]
        yield "tcp_try_rmem_schedule", ", ".join(spans)
    if run.distribution is not None:
        names = ("min", "mean", "max", "p25", "p50", "p75", "p85", "p95", "p99")
        percentiles = ", ".join(f"{name} {getattr(run.distribution, name):,.0f}" for name in names)
        yield f"{run.distributed}", f"{percentiles}, sum {run.distribution.sum:,.0f}"
    if run.verdict:
        yield "verdict", run.verdict


def _rates(rates: RateRange) -> str:
    least, most = (f"{each / 1e6:g}" for each in (rates.least_bps, rates.most_bps))
    return least if least == most else f"{least}–{most}"


def _latency(latency: Latency) -> str:
    return _BOUNDS[latency.bound] + time_text(latency.value_ns)


def _span(bucket: Bucket) -> str:
    most = f"{bucket.most_ns / 1e6:g} ms:"
    return f"below {most}" if bucket.least_ns is None else f"{bucket.least_ns / 1e6:g} to {most}"
