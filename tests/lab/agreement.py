"""Whether the connection was, after one row of tcpwin's table, what the kernel said in one sample of ss.

Captures and samples share one virtual clock. A sample's time is read just before ss starts, and ss reads the socket
up to 100 µs later; so a sample agrees with a row when the connection was so at some moment of that time.
The capture point lies after the sender's tbf: what waits there is out for TCP, but not yet in the capture.
"""

from __future__ import annotations

from lab.runs import Run
from lab.ss_text import Sample

SS_DELAY_NS = 100_000
# Times are cut to microseconds in most captures and in the samples.
CLOCK_STEP_NS = 1_000
# A data packet's own memory, the payload apart: sk_buff 256 and its head 1024 (SKB_TRUESIZE, Linux 6.1). ss shows
# it bare: skmem's t and w of a socket in SYN-SENT are 1280.
PACKET_MEMORY_BYTES = 1280


def fits_the_queue(run: Run, sample: Sample, queued_bytes: int) -> bool:
    """Judge whether bytes that TCP has sent and the capture has not seen are those that wait in the tbf.

    skmem's t is their memory: payload and 1280 bytes a packet. A packet in the queue holds one or two segments, and
    up to 64 KiB with segmentation offload.
    """
    packets, rest = divmod(sample.skmem["t"] - queued_bytes, PACKET_MEMORY_BYTES)
    mss = sample.number("mss")
    most = (64 << 10) if run.meta["scenario"].get("offload") else 2 * mss
    return queued_bytes >= 0 and rest == 0 and -(-queued_bytes // most) <= packets <= -(-queued_bytes // mss)


def has_window(run: Run, sample: Sample, row: int) -> bool:
    """Compare the accepted window with snd_wnd; a late capture has the raw field only, and ss the shift."""
    window = int(run.track.window[row])
    if run.is_late and window < 0 and sample.window_scales:
        window = int(run.track.window_raw[row]) << sample.window_scales[0]
    return window == sample.number("snd_wnd")


def has_acked(run: Run, sample: Sample, row: int) -> bool:
    """Compare the payload acknowledged with bytes_acked; a late capture cannot know it."""
    return run.is_late or int(run.track.una[row]) == run.acked_bytes(sample)


def agrees(run: Run, sample: Sample, row: int) -> bool:
    """Compare window, payload acknowledged and bytes in flight after a row of the sender's capture."""
    queued = run.outstanding_bytes(sample) - int(run.track.flight[row])
    return has_window(run, sample, row) and has_acked(run, sample, row) and fits_the_queue(run, sample, queued)


def rows_near(run: Run, time_ns: int) -> range:
    """Return the rows after which a sample of that time may have been read, the first one at the time itself."""
    return run.track.between(time_ns - CLOCK_STEP_NS, time_ns + SS_DELAY_NS)


def samples_inside(run: Run, end: str, early_ns: int = 0, late_ns: int = 0) -> list[Sample]:
    """Return the samples of the capture's time, which may be asked to begin earlier or end later than theirs."""
    first, last = int(run.track.time_ns[0]) + early_ns, int(run.track.time_ns[-1]) - late_ns
    return [sample for sample in run.samples(end) if first <= sample.time_ns <= last]
