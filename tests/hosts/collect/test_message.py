"""Decoding one message of the kernel's socket dump."""

from __future__ import annotations

import struct

from hosts.collect.messages import attribute, message

from tcpwin.hosts.collect.message import read_socket

MS = 1_000_000


def test_a_message_with_every_attribute() -> None:
    """Layouts of include/uapi/linux/inet_diag.h and tls.h."""
    head = bytearray(message(1, ("2001:db8::1", 22), ("2001:db8::2", 50_001)))
    head[2:4] = bytes((4, 2))
    struct.pack_into("=2I5I", head, 44, 9, 1, 1500, 11, 12, 1000, 77)
    tls = attribute(1, struct.pack("=H", 0x0304)) + attribute(2, struct.pack("=H", 52))
    tls += (
        attribute(3, struct.pack("=H", 2)) + attribute(4, struct.pack("=H", 3)) + attribute(5, b"") + attribute(6, b"")
    )
    parts = (
        attribute(8, b"\x02"),
        attribute(11, b"\x01"),
        attribute(7, struct.pack("=9I", *range(1, 10))),
        attribute(4, b"dctcp\0"),
        attribute(9, struct.pack("=2H3I", 1, 1, 512, 100, 2000)),
        attribute(16, struct.pack("=5I", 5, 1, 7000, 320, 512)),
        attribute(19 | 0x8000, attribute(1, b"tls\0") + attribute(2, tls)),
        attribute(60, b"later"),
    )
    record, _ = read_socket(bytes(head) + b"".join(parts))
    assert record == {
        "cookie": (1 << 32) + 9,
        "state": "ESTAB",
        "recv_q_bytes": 11,
        "send_q_bytes": 12,
        "local_address": "2001:db8::1",
        "local_port": 22,
        "peer_address": "2001:db8::2",
        "peer_port": 50_001,
        "uid": 1000,
        "inode": 77,
        "timer": {"name": "persist", "expires_ns": 1500 * MS, "retransmissions": 2},
        "v6only": True,
        "shutdown": "<--",
        "rmem_alloc_bytes": 1,
        "rcvbuf_bytes": 2,
        "wmem_alloc_bytes": 3,
        "sndbuf_bytes": 4,
        "fwd_alloc_bytes": 5,
        "wmem_queued_bytes": 6,
        "optmem_bytes": 7,
        "backlog_bytes": 8,
        "drops": 9,
        "congestion_control": "dctcp",
        "dctcp": {"ce_state": 1, "alpha": 512, "ab_ecn_bytes": 100, "ab_tot_bytes": 2000},
        "bbr": {"bw_bps": 8 * (5 + (1 << 32)), "mrtt_ns": 7 * MS, "pacing_gain": 1.25, "cwnd_gain": 2.0},
        "ulp": {
            "name": "tls",
            "values": {
                "version": "1.3",
                "cipher": "aes-gcm-256",
                "rxconf": "hw",
                "txconf": "sw",
                "zc_ro_tx": "",
                "no_pad_rx": "",
            },
        },
    }
