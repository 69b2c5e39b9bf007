"""The JSON document of a pairing, the table of packets, and bundles that can be paired."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import polars
import pytest
from lab.resends import resends
from pairing.packets import read, stepped, thinned, write
from pairing.pairs import bent, captures, data_direction, lost_frames, run_of
from reference import LAB_RUNS, ROOT

import tcpwin
from tcpwin.errors import SourceError
from tcpwin.render import render_pairing
from tcpwin.render.comparing.pairing import direction_lines
from tcpwin.units import time_text

SCHEMA = json.loads(files("tcpwin.pairing").joinpath("schema.json").read_text(encoding="utf8"))
LOSSY = "loss1_cubic_sack1"
CLOCK = {"offset_ns", "drift_ppm", "uncertainty_ns"}


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_documents_are_as_the_schema_says(tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    disturbed = bent(
        LOSSY, tmp_path, a=lambda packets: thinned(packets, 0.2), b=lambda packets: stepped(packets, 3_000_000_000)
    )
    apart = tcpwin.pair(captures(LOSSY)[0], captures("slow_reader")[1])
    for pairing in (disturbed, apart, tcpwin.pair(*captures(LOSSY))):
        validator.validate(pairing.to_dict())
        json.dumps(pairing.to_dict(), allow_nan=False)


def test_what_the_document_must_have() -> None:
    document = tcpwin.pair(*captures(LOSSY)).to_dict()
    assert document["clock"].keys() >= CLOCK
    [connection] = document["connections"]
    assert connection["clock"] == document["clock"]
    there, back = connection["directions"]
    assert (there["from"], there["to"]) == (back["to"], back["from"]) == ("10.9.2.2:38102", "10.9.1.1:5201")
    assert (back["sent"], back["delivered"], back["lost"]) == (5586, 5527, 59)
    assert (there["sent"], there["delivered"], there["lost"]) == (2966, 2966, 0)
    assert all(each[name] == 0 for each in (there, back) for name in ("late", "duplicated", "unknown"))


def test_captures_without_a_common_packet() -> None:
    pairing = tcpwin.pair(captures(LOSSY)[0], captures("slow_reader")[1])
    assert len(pairing) == 0
    assert pairing.clock is None
    assert [each.capture for each in pairing.unpaired] == ["a", "b"]
    assert len(pairing.packets()["fate"]) == 0


def test_the_table_of_packets_agrees_with_the_counts(tmp_path: Path) -> None:
    pairing = bent(LOSSY, tmp_path, b=lambda packets: thinned(packets, 0.1))
    pairing.write_packets(tmp_path / "packets.parquet")
    table = polars.read_parquet(tmp_path / "packets.parquet")
    for direction in pairing.connections[0].directions:
        mine = table.filter(direction=direction.index)
        counts = dict(mine["fate"].value_counts().iter_rows())
        assert counts.get("lost", 0) == direction.lost
        assert counts.get("late", 0) == direction.late
        assert counts.get("delivered", 0) + counts.get("late", 0) == direction.delivered
        assert counts.get("unknown", 0) == direction.unknown - direction.in_neither


def test_delays_in_the_table_are_those_of_the_lab(tmp_path: Path) -> None:
    """Also for packets in transit while b's clock was set."""
    for name, bend in (("as it is", None), ("set", lambda packets: stepped(packets, -3_000_000_000))):
        pairing = bent(LOSSY, tmp_path, b=bend)
        table = pairing.packets()
        delay_ns = table["delay_ns"][(table["frame_a"] > 0) & (table["frame_b"] > 0)]
        assert delay_ns.min() >= 24_990_000, name
        # The first packet waits for ARP behind the same delay.
        assert delay_ns.max() <= 50_010_000, name


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "run.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, capture in zip(("server", "client"), captures(LOSSY), strict=True):
            archive.write(capture, f"run/{name}.pcap.gz")
    return path


def test_a_bundle_pairs_by_itself(bundle: Path) -> None:
    pairing = tcpwin.pair(bundle)
    assert pairing.name_a.endswith("client.pcap.gz")
    assert data_direction(pairing).lost == 59
    assert data_direction(pairing).leaves_at == "b"
    assert len(pairing.packets()["fate"]) > 0


def test_a_bundle_of_the_project_pairs_by_itself() -> None:
    pairing = tcpwin.pair(ROOT / "captures" / "reference" / "idle-restart-on-stock.zip")
    assert (len(pairing), pairing.connections[0].lost, pairing.connections[0].unknown) == (1, 0, 0)


@pytest.mark.parametrize(
    "source", [LAB_RUNS / LOSSY / "snd.pcap.gz", ROOT / "captures" / "bundles" / "slow-reader.zip"]
)
def test_one_capture_alone_is_refused(source: Path) -> None:
    with pytest.raises(SourceError, match=r"two|other one"):
        tcpwin.pair(source)


def test_the_order_of_the_captures_does_not_matter() -> None:
    there, back = (tcpwin.pair(*order) for order in (captures(LOSSY), captures(LOSSY)[::-1]))
    for one, other in zip(there.connections[0].directions, back.connections[0].directions, strict=True):
        assert (one.sent, one.lost, one.delay) == (other.sent, other.lost, other.delay)
        assert {one.leaves_at, other.leaves_at} == {"a", "b"}


def test_what_may_be_read_besides_paths() -> None:
    counts: list[Any] = []
    with captures(LOSSY)[0].open("rb") as a:
        pairing = tcpwin.pair(a, [captures(LOSSY)[1]], progress=counts.append)
        assert data_direction(pairing).lost == 59
        assert (pairing.packets()["fate"] == "lost").sum() == 59
    assert counts


def test_written_captures_are_what_was_read(tmp_path: Path) -> None:
    """Guards the tests' tool."""
    packets = read(captures(LOSSY)[0])
    again = read(write(tmp_path / "again.pcap", packets))
    assert [(each.time_ns, each.data) for each in again] == [(each.time_ns, each.data) for each in packets]


def test_lost_frames_are_those_of_the_lab() -> None:
    document = tcpwin.pair(*captures(LOSSY)).to_dict()
    acks, data = document["connections"][0]["directions"]
    assert set(data["lost_frames"]) == lost_frames(LOSSY)["data"]
    assert data["lost_frames"] == sorted(data["lost_frames"])
    assert acks["lost_frames"] == []


def test_what_a_capture_lacks_is_null_in_the_file(tmp_path: Path) -> None:
    pairing = tcpwin.pair(*captures(LOSSY))
    pairing.write_packets(tmp_path / "packets.parquet")
    table = polars.read_parquet(tmp_path / "packets.parquet")
    is_lost = polars.col("fate") == "lost"
    lost = table.filter(is_lost)
    assert set(lost["frame_a"]) == lost_frames(LOSSY)["data"]
    for name in ("frame_b", "time_b_ns", "delay_ns"):
        assert lost[name].null_count() == len(lost)
        assert table.filter(~is_lost)[name].null_count() == 0
    assert table["frame_a"].null_count() == table["time_a_ns"].null_count() == 0
    assert table["lost_frame"].drop_nulls().min() == min(lost["frame_a"])


def test_captures_of_other_traffic_or_one_twice_are_warned_of() -> None:
    apart = tcpwin.pair(captures(LOSSY)[0], captures("slow_reader")[1])
    assert any("no connection is in both" in each for each in apart.warnings)
    twice = tcpwin.pair(captures(LOSSY)[0], captures(LOSSY)[0])
    assert any("copies of one capture" in each for each in twice.warnings)
    assert tcpwin.pair(*captures(LOSSY)).warnings == ()


def test_a_capture_that_ends_early(tmp_path: Path) -> None:
    """For packets after the end of the capture, fate and cause of retransmissions are unknown and not counted."""
    wild = ROOT / "captures" / "wild"
    cut = write(tmp_path / "cut.pcap", read(wild / "lossy-path-receiver.pcap.gz")[:800])
    pairing = tcpwin.pair(wild / "lossy-path.pcapng.gz", cut)
    data = data_direction(pairing)
    whole = data_direction(tcpwin.pair(wild / "lossy-path.pcapng.gz", wild / "lossy-path-receiver.pcap.gz"))
    assert 0 < data.lost < whole.lost <= data.lost + data.unknown
    assert set(data.lost_frames) < set(whole.lost_frames)
    assert (data.resent.lost, data.resent.unknown) == (data.lost, data.retransmissions - data.lost)
    text = "\n".join(render_pairing(pairing))
    shares = re.findall(rf"{data.lost} (?:of [\d,]+ packets )?(?:lost[^(]*)?\(([\d.]+) %\)", text)
    assert len(shares) >= 3
    assert len(set(shares)) == 1
    first_ns, last_ns = (read(wild / "lossy-path-receiver.pcap.gz")[at].time_ns for at in (0, 799))
    began_ns = pairing.spans_ns[0][0] if pairing.spans_ns[0] else 0
    # The relay held the first packet for 15 ms, and both ends share one clock.
    assert f"b from {time_text(first_ns - began_ns)} to {time_text(last_ns - began_ns)}" in text


def test_captures_of_one_name_get_different_labels(tmp_path: Path) -> None:
    for folder, capture in zip(("client", "server"), captures(LOSSY), strict=True):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "eth0.pcap.gz").write_bytes(capture.read_bytes())
    pairing = tcpwin.pair(*(tmp_path / folder / "eth0.pcap.gz" for folder in ("client", "server")))
    first, second, *_ = render_pairing(pairing)
    assert ("client" in first, "server" in second) == (True, True)


def test_both_kinds_of_drops_are_named() -> None:
    """Some packets are lost between the points; the receiver drops more because of their old timestamps."""
    pairing = tcpwin.pair(*captures("loss1_reorder_cubic_sack1"))
    text = "\n".join(render_pairing(pairing))
    scenario = "loss1_reorder_cubic_sack1"
    refused = sum(each.fate == "refused" for each in resends(run_of(scenario)))
    assert refused > len(lost_frames(scenario)["data"]) > 0
    assert f"Lost between a and b: {len(lost_frames(scenario)['data'])} of" in text
    assert f"Dropped beyond b: {refused} packets" in text
    found = pairing.judge(0)
    assert found is not None
    assert "reorders" in (found.verdict.fix or "")
    assert "between a and b" in (found.verdict.fix or "")


def test_frames_of_lost_segments_are_not_counted_as_segments() -> None:
    """An offloaded frame contains several segments."""
    data = data_direction(tcpwin.pair(*captures(LOSSY)))
    named, *_ = direction_lines(data, None)
    assert named.endswith(f" and {data.lost - 12} more")
    named, *_ = direction_lines(replace(data, unit="segment", lost=20 * data.lost), None)
    assert named.endswith("} and more")
    named, *_ = direction_lines(replace(data, unit="segment", lost_frames=data.lost_frames[:12]), None)
    assert named.endswith("}")
