"""netem's loss is between the two captures; each end's analysis reports as much as that end can see.

Segments that left one end but did not arrive at the other equal tc's drops. The sender's capture has every segment; at
the receiver a lost segment is a gap, filled by a retransmission.
"""

from __future__ import annotations

import itertools
from collections import Counter

from lab.both_ends import ack_way, data_way
from lab.events import frames_of, frames_resent, names_by_frame
from lab.resends import resends
from lab.runs import Run
from lab.selection import LATE, ROUGH, on

# netem of the data's direction, of the return direction, and the sender's tbf.
DATA_QUEUE, ACK_QUEUE, SENDER_QUEUE = "rtr/r1", "rtr/r0", "snd/s0"
LOSSY_IN_ORDER = ("loss1_cubic_sack1", "loss1_reno_sack0")


@on(ends=["snd"], copies=False)
def test_packets_that_never_arrived_match_the_networks_drops(run: Run) -> None:
    dropped = run.meta["tc_dropped"]
    assert [len(data_way(run).lost)] == dropped[DATA_QUEUE]
    assert [len(ack_way(run).lost)] == dropped[ACK_QUEUE] == dropped[SENDER_QUEUE] == [0]


@on(ends=["snd"], without=LATE, copies=False)
def test_nothing_arrived_that_had_not_left(run: Run) -> None:
    """Guards the pairing of the two captures, on which every truth about loss and order depends."""
    assert not data_way(run).unsent
    assert not ack_way(run).unsent


@on(ends=["snd"], copies=False)
def test_every_segment_sent_again_was_lost_refused_or_needless_as_the_kernels_counted(run: Run) -> None:
    """Guards the truth of each retransmission by counters of both kernels.

    A receiver refuses data beyond its memory (TCPOFODrop, TCPRcvQDrop) and segments whose TSval is older than the last
    in-order one (PAWSEstab): with reordering, new data may arrive after a retransmission that left later.
    DelayedACKLost counts data that it already had.
    """
    fates = Counter(each.fate for each in resends(run))
    assert fates["lost"] == sum(run.meta["tc_dropped"][DATA_QUEUE])
    refused = ("TcpExt.TCPOFODrop", "TcpExt.TCPRcvQDrop", "TcpExt.PAWSEstab")
    assert fates["refused"] == sum(run.counter("rcv", name) for name in refused)
    assert fates["arrived"] == run.counter("rcv", "TcpExt.DelayedACKLost")
    assert fates.total() == run.counter("snd", "Tcp.RetransSegs")


@on(copies=False)
def test_both_ends_tables_differ_by_the_segments_lost(run: Run) -> None:
    """The rows of tcpwin's table at each end are the segments that left, or those that arrived."""
    passages = data_way(run).data
    segments = [each.left if run.end == "snd" else each.arrived for each in passages]
    columns = run.columns
    lengths = dict(zip(columns["frame"].tolist(), columns["length"].tolist(), strict=True))
    sequence = dict(zip(columns["frame"].tolist(), columns["seq"].tolist(), strict=True))
    seen = [segment for segment in segments if segment is not None]
    assert all((sequence[each.frame], lengths[each.frame]) == (each.seq, each.length) for each in seen)
    if run.scenario not in LATE:
        assert set(names_by_frame(run)) == {each.frame for each in seen}


@on(ends=["snd"])
def test_the_senders_capture_misses_nothing(run: Run) -> None:
    """Loss beyond the capture point is not a gap in the capture; a late capture misses earlier packets."""
    data = run.data
    assert (data.acked_unseen, data.out_of_order) == (0, 0)
    if run.scenario not in LATE:
        assert (data.missed_bytes, data.previous_segment_missing) == (0, 0)


@on(ends=["rcv"])
def test_the_receivers_capture_misses_nothing_for_good(run: Run) -> None:
    """All lost data was retransmitted, so no hole remains that the capture could have caused."""
    assert (run.data.acked_unseen, run.data.missed_bytes) == (0, 0)


@on(ends=["rcv"], without=LATE, copies=False)
def test_gaps_at_the_receivers_end_are_where_segments_are_missing(run: Run) -> None:
    """`previous_segment_missing`: the first byte is beyond the highest that has arrived."""
    gaps = set()
    highest = 0
    for passage, arrival in data_way(run).data_arrivals:
        if passage.start > highest:
            gaps.add(arrival.frame)
        highest = max(highest, passage.end)
    assert frames_of(run, "previous_segment_missing") == gaps
    assert run.data.previous_segment_missing == len(gaps)


@on(LOSSY_IN_ORDER, ends=["rcv"], copies=False)
def test_each_gap_that_loss_made_begins_with_segments_that_were_lost(run: Run) -> None:
    """Without reordering, gaps equal runs of lost first transmissions."""
    again = {each.passage.index for each in resends(run)}
    first = [each for each in data_way(run).data if each.index not in again]
    behind = {
        after.arrived.frame
        for before, after in itertools.pairwise(first)
        if before.arrived is None and after.arrived is not None
    }
    assert behind
    assert frames_of(run, "previous_segment_missing") == behind


@on(ROUGH, ends=["rcv"], copies=False)
def test_what_fills_a_gap_at_the_receivers_end_is_a_retransmission(run: Run) -> None:
    """Every arriving retransmission, whether its first transmission was lost, refused or received."""
    arrived = {each.passage.arrived.frame for each in resends(run) if each.passage.arrived is not None}
    assert frames_resent(run) == arrived
    assert run.data.retransmissions == len(arrived)
    assert not frames_of(run, "out_of_order") & arrived
