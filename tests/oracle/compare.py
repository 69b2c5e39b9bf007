"""tcpwin's per-segment table beside tshark's, capture by capture and field by field.

In: a folder of captures and one of tshark 4.0 tables (NAME.tshark.tsv.gz, a header row first). Out: for each capture
its segments with both opinions, how often each field was judged, and every difference.
It decides nothing: who is right stands in test_differences.py.
"""

from __future__ import annotations

from collections.abc import Mapping

TABLE = ".tshark.tsv.gz"
ACK = 0x10
FLAG_BITS = 0xFF  # as far as the header's flag byte goes; tshark adds the reserved bits above it
# tcpwin's event and tshark's field in tcp.analysis. Loss, order and duplicate ACKs are not judged here.
EVENTS = {name: name for name in ("zero_window", "window_full", "window_update", "zero_window_probe", "keep_alive")}
EXACT = {
    "seq": "tcp.seq_raw",
    "ack": "tcp.ack_raw",
    "length": "tcp.len",
    "window_raw": "tcp.window_size_value",
}
# A category of debatable.csv, by how it begins, and the field that it puts in doubt.
DOUBT = {
    "bif_": "bytes_in_flight",
    "scale_": "window",
    "syn": "window",
    "wscale_": "window",
    "window_limited": "window_full",
    "window_update": "window_update",
}

Doubts = Mapping[tuple[str, int, str], str]
