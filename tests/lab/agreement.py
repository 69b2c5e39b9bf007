"""Whether tcpwin's table agrees, after some row, with one sample of ss.

Captures and samples share one virtual clock. A sample's time is read just before ss starts, and ss reads the socket up
to 100 µs later; a sample therefore agrees with a row if the connection was in that state at some moment of that time.
The capture point is behind the sender's tbf: data queued there has been sent for TCP, but is not yet captured.
"""

from __future__ import annotations

from lab.runs import Run
from lab.ss_text import Sample

SS_DELAY_NS = 100_000
# Times are truncated to microseconds in most captures and in the samples.
CLOCK_STEP_NS = 1_000
# Memory of a data packet without payload: sk_buff 256 and its head 1024 (SKB_TRUESIZE, Linux 6.1). For a socket in
# SYN-SENT, ss shows it alone: skmem's t and w are 1280.
PACKET_MEMORY_BYTES = 1280


def fits_the_queue(run: Run, sample: Sample, queued_bytes: int) -> bool:
    """Return whether bytes sent by TCP but not yet captured match those queued in the tbf.

    skmem's t is their memory: payload and 1280 bytes per packet. A queued packet has one or two segments, and up to 64
    KiB with segmentation offload.
    """
    packets, rest = divmod(sample.skmem["t"] - queued_bytes, PACKET_MEMORY_BYTES)
    mss = sample.number("mss")
    most = (64 << 10) if run.meta["scenario"].get("offload") else 2 * mss
    return queued_bytes >= 0 and rest == 0 and -(-queued_bytes // most) <= packets <= -(-queued_bytes // mss)


def has_window(run: Run, sample: Sample, row: int) -> bool:
    """Compare the accepted window with snd_wnd; a late capture has only the raw field, and ss the shift."""
    window = int(run.track.window[row])
    if run.is_late and window < 0 and sample.window_scales:
        window = int(run.track.window_raw[row]) << sample.window_scales[0]
    return window == sample.number("snd_wnd")


def has_acked(run: Run, sample: Sample, row: int) -> bool:
    """Compare the acknowledged payload with bytes_acked, which a late capture cannot know."""
    return run.is_late or int(run.track.una[row]) == run.acked_bytes(sample)


def agrees(run: Run, sample: Sample, row: int) -> bool:
    """Compare window, acknowledged payload and bytes in flight after a row of the sender's capture."""
    queued = run.outstanding_bytes(sample) - int(run.track.flight[row])
    return has_window(run, sample, row) and has_acked(run, sample, row) and fits_the_queue(run, sample, queued)


def rows_near(run: Run, time_ns: int) -> range:
    """Return the rows after which a sample of that time may have been read, that of the exact time first."""
    return run.track.between(time_ns - CLOCK_STEP_NS, time_ns + SS_DELAY_NS)


def samples_inside(run: Run, end: str, early_ns: int = 0, late_ns: int = 0) -> list[Sample]:
    """Return the samples within the capture, whose start and end may be moved."""
    first, last = int(run.track.time_ns[0]) + early_ns, int(run.track.time_ns[-1]) - late_ns
    return [sample for sample in run.samples(end) if first <= sample.time_ns <= last]
