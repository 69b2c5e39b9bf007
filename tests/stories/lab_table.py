"""Limits of each lab run, derived from its meta.json: scenario, ground truth, counters, drops.

Sides are named as by tcpwin: in all runs but iperf3's the reader opened the connection, so a reads and b sends.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Cell = tuple[str, bool]
"""Capture (``snd`` at the sender, ``rcv`` at the receiver), and whether the hosts' snapshots are used."""


@dataclass(frozen=True)
class Blamed:
    """The expected first finding.

    Attributes:
        code: of its rule.
        owner, side: who can change it, and at which end.
    """

    code: str
    owner: str
    side: str | None


@dataclass(frozen=True)
class Row:
    """One run.

    Attributes:
        cause: what limited it, in words.
        item: the budget's largest item.
        group: the budget's largest group.
        top: the first finding with the snapshots of both hosts; None if there is none.
        alone: the first finding by the packets alone; the same if None.
        is_clean: nothing went wrong, so no finding may be a warning.
        besides: codes of a clean run's further findings by the packets alone.
        next_item: the next largest item, if the run was made for it.
        firsts: the first finding in single cells that differ.
        departs: budgets that differ, by capture and snapshots: item and group reported instead, and why.
    """

    cause: str
    item: str
    group: str
    top: Blamed | None
    alone: Blamed | None = None
    is_clean: bool = False
    besides: tuple[str, ...] = ()
    next_item: str | None = None
    departs: dict[Cell, tuple[str, str, str]] = field(default_factory=dict)
    firsts: dict[Cell, Blamed] = field(default_factory=dict)


SLOW_READER = Blamed("TW208", "client_application", "client")
DROPPED = Blamed("TW211", "client_host", "client")
LOOKS_SLOW = Blamed("TW202", "client_application", "client")
LOSSY_PATH = Blamed("TW307", "network", None)
UNSURE = "without the SYNs the scale of the window, and at first the way to the sender, are not known"
RECOVERING = (
    "the sender's kernel counts 18.8 s for the window; packets show 11.7 s of that, and 9.1 s at the receiver: "
    "while a sender recovers they do not show that the window is full as well"
)

RUNS: dict[str, Row] = {
    "app_limited": Row(
        "the application writes 64 KiB each 0.1 s: 5.2 of 100 Mbit/s, nothing dropped",
        "application",
        "application",
        Blamed("TW402", "server_application", "server"),
        is_clean=True,
    ),
    "cooked_any": Row(
        "5 MB at 79 Mbit/s through 100 Mbit/s: the path, after slow start", "path", "path", None, is_clean=True
    ),
    "idle_restart_ssai0": Row(
        "a message of 30 KB each 2 s, each in one flight (92 ms): the application's own pace",
        "application",
        "application",
        Blamed("TW402", "server_application", "server"),
        is_clean=True,
    ),
    "idle_restart_ssai1": Row(
        "the same with tcp_slow_start_after_idle=1: 19 of 20 messages take a round trip of 180 ms more",
        "application",
        "application",
        Blamed("TW401", "server_host", "server"),
        next_item="idle_restart",
    ),
    "iperf3_300ms_20mbit_512m2": Row(
        "iperf3 for 10 s through 20 Mbit/s: the path; the server then resets what is still on the way",
        "path",
        "path",
        Blamed("TW501", "server_application", "server"),
    ),
    "loss1_cubic_sack1": Row(
        "netem drops 59 of 5,584 segments (1 %): 2.7 of 50 Mbit/s, the window is cut 48 times",
        "after_loss",
        "loss",
        LOSSY_PATH,
    ),
    "loss1_reno_sack0": Row(
        "netem drops 65 segments (1 %), no SACK: 2.3 of 50 Mbit/s, 58 recoveries and 2 timeouts",
        "after_loss",
        "loss",
        LOSSY_PATH,
    ),
    "loss1_reorder_cubic_sack1": Row(
        "netem drops 43 segments (1 %) and reorders the rest: 4.8 of 50 Mbit/s, 27 recoveries",
        "after_loss",
        "loss",
        LOSSY_PATH,
    ),
    "mid_connection_noSYN": Row(
        "the capture begins 2 s late; 47 Mbit/s each second through 50: the path",
        "path",
        "path",
        Blamed("TW607", "nobody", None),
        is_clean=True,
        besides=("TW104",),
        departs={("rcv", False): ("unknown", "unknown", UNSURE)},
    ),
    "no_wscale_85ms": Row(
        "tcp_window_scaling=0: 64 KiB over 85 ms, 6.0 of 1000 Mbit/s, nothing dropped",
        "window_full",
        "receiver",
        Blamed("TW101", "client_host", "client"),
    ),
    "notsent_lowat_128k_466ms_10mbit": Row(
        "the reader takes 0.5 and then 2.2 Mbit/s for 30 s of 40; 10 Mbit/s for the rest",
        "window_full",
        "receiver",
        SLOW_READER,
        LOOKS_SLOW,
    ),
    "notsent_lowat_off_466ms_10mbit": Row(
        "the reader takes 0.5 and then 2.2 Mbit/s for 30 s of 40; 10 Mbit/s for the rest",
        "window_full",
        "receiver",
        SLOW_READER,
        LOOKS_SLOW,
    ),
    "offload_on_bigframes": Row(
        "20 MB at 171 Mbit/s through 200: the path, after slow start; segments of up to 62 KB in the capture",
        "path",
        "path",
        Blamed("TW603", "nobody", None),
        is_clean=True,
    ),
    "oscil_10mbit_300ms_170p2_guard": Row(
        "the reader takes 0.5 Mbit/s for 45 s of 60; its kernel drops 153 segments for want of memory, none is lost on "
        "the way, and the sender recovers from that while the window is full",
        "window_full",
        "loss",
        DROPPED,
        # The window's time is hidden in the recovery caused by the receiver's drops.
        departs={
            ("snd", False): ("fast_recovery", "loss", RECOVERING),
            ("snd", True): ("window_full", "receiver", "ACKs that waited for the reader are its time, not the loss's"),
            ("rcv", True): ("window_full", "loss", RECOVERING),
            ("rcv", False): ("congestion", "loss", RECOVERING),
        },
    ),
    "oscil_10mbit_300ms_170p2_vanilla": Row(
        "the reader takes 0.5 and then 0.7 Mbit/s for 45 s of 60; its kernel collapses 7,635 packets",
        "window_full",
        "receiver",
        SLOW_READER,
        LOOKS_SLOW,
    ),
    "oscil_10mbit_300ms_512m2_guard_vethtruesize": Row(
        "the reader takes 0.5 and then 2.2 Mbit/s for 45 s of 60; 9.4 of 10 Mbit/s for the rest and into its buffer",
        "window_full",
        "receiver",
        SLOW_READER,
        LOOKS_SLOW,
        departs=dict.fromkeys(
            (("snd", False), ("rcv", False)),
            ("path", "receiver", "of the receiver's 35 s the full window has 20.9, the path 21.9"),
        ),
    ),
    "reorder_only_cubic": Row(
        "netem reorders and drops nothing: 40 of 50 Mbit/s, the path, after slow start",
        "path",
        "path",
        Blamed("TW306", "network", None),
        is_clean=True,
    ),
    "rmem_1024k_196ms": Row(
        "tcp_rmem of 1 MiB gives a window of 512 KiB over 196 ms: 21 of 1000 Mbit/s",
        "window_full",
        "receiver",
        Blamed("TW207", "client_host", "client"),
        Blamed("TW202", "client_host", "client"),
    ),
    "rmem_64k_196ms": Row(
        "tcp_rmem of 64 KiB gives a window of 32 KB over 196 ms: 1.3 of 1000 Mbit/s",
        "window_full",
        "receiver",
        Blamed("TW207", "client_host", "client"),
    ),
    "slow_reader": Row(
        "the reader takes 40 kB each 0.2 s: 1.6 of 100 Mbit/s, the window closes 66 times",
        "window_full",
        "receiver",
        SLOW_READER,
        LOOKS_SLOW,
    ),
    "wscale_85ms": Row(
        "10 MB in 0.94 s over 85 ms through 1000 Mbit/s: slow start never ends",
        "slow_start",
        "congestion window",
        None,
        is_clean=True,
    ),
    "zero_window_stall5s": Row(
        "the reader stops for 5 s of 6.7 after its first second",
        "zero_window",
        "receiver",
        Blamed("TW201", "client_application", "client"),
    ),
}
