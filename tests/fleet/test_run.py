"""Many captures become one data set: each capture's rows equal those of it alone, none is lost or duplicated."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dpkt
import numpy as np
import polars
import pyarrow.dataset
import pytest
from cli.command import CAPTURES, TCPWIN, TEXT, refused
from fleet.sets import LAB, LOSS, MANY, READER, RUN, ask, contents, run_fleet, tcpwin
from live import until
from spread import some_by_day

import tcpwin as library
from tcpwin.fleet import Dataset, Task, discover, tables
from tcpwin.fleet.groups import grouped, threads_of
from tcpwin.fleet.measuring import run
from tcpwin.fleet.task import File
from tcpwin.limits import ITEMS, VERDICT_FIELDS


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of many connections, one connection, snapshots of hosts, an archive, and a file that is not a
    capture.
    """
    folder = tmp_path_factory.mktemp("fleet") / "set"
    summary = run_fleet(READER, MANY, RUN, CAPTURES / "bundles" / "slow-reader.zip", TEXT, "-o", folder, status=3)
    assert (summary["captures"], summary["measured"], summary["unchanged"]) == (6, 6, 0)
    assert [each["name"] for each in summary["failed"]] == [str(TEXT)]
    return folder


def key_of(dataset: Path, name: object) -> str:
    ((key,),) = ask(dataset, f"SELECT capture FROM {{captures}} WHERE name = '{name}'")
    return str(key)


def alone(path: Path) -> library.Analysis:
    if path.parent == RUN:
        others = [each for each in sorted(RUN.iterdir()) if each.name.startswith(("ss_", "nstat_", "sockstat_"))]
        return library.analyze(path, snapshots=[(each.stem.split("_")[1], each) for each in others])
    return library.analyze(path)


@pytest.mark.parametrize(
    "path", some_by_day([READER, MANY, RUN / "snd.pcap.gz", CAPTURES / "bundles" / "slow-reader.zip"])
)
def test_rows_equal_those_of_the_capture_alone(dataset: Path, path: Path) -> None:
    analysis = alone(path)
    members = {entry.name: entry.key for entry in Dataset.open(dataset).entries.values()}
    (key,) = [key for name, key in members.items() if name == str(path) or name.startswith(f"{path}/")]
    rows = {
        name: polars.read_parquet(dataset / name / "**/*.parquet").filter(capture=key)
        for name in ("connections", "budgets", "findings", "captures")
    }
    connections = rows["connections"].sort("id").to_dicts()
    assert len(connections) == len(analysis)
    for connection, row in zip(analysis.connections, connections, strict=True):
        one = analysis.connections.table(start=connection.id, stop=connection.id + 1)
        for name, value in next(iter(one.rows())).items():
            group, dot, field = name.partition(".")
            assert (row[group][field] if dot else row[name]) == value, name
        assert row["verdict"] == {name: getattr(connection.verdict, name) for name in VERDICT_FIELDS}
        for side, budget in connection.budget.items():
            (spent,) = rows["budgets"].filter(connection=connection.id, direction=side).to_dicts()
            assert {item: spent[f"{item}_ns"] for item in ITEMS} == {
                item: budget.items_ns.get(item, 0) for item in ITEMS
            }
            assert spent["is_counted"] == (budget.kernel is not None)
    names = list(analysis.findings.table())
    found = sorted((tuple(each[name] for name in names) for each in rows["findings"].to_dicts()), key=str)
    expected = [tuple(row[name] for name in names) for row in analysis.findings.table().rows()]
    assert found == sorted(expected, key=str)
    (capture,) = rows["captures"].to_dicts()
    assert capture["packets"] == analysis.capture.packets
    assert capture["problems"] == len(analysis.problems)
    assert capture["summary"] == analysis.summary.text
    assert capture["error"] is None
    assert capture["hosts"] == [host.label for host in analysis.hosts]


def test_a_broken_file_is_a_row_with_its_error(dataset: Path) -> None:
    ((error, packets, day),) = ask(dataset, f"SELECT error, packets, day FROM {{captures}} WHERE name = '{TEXT}'")
    (message,) = tcpwin("analyze", TEXT).stderr.decode().splitlines()
    assert (message, packets, day) == (f"tcpwin: {error}", None, None)
    key = key_of(dataset, TEXT)
    assert ask(dataset, f"SELECT count(*) FROM {{connections}} WHERE capture = '{key}'") == [(0,)]


def test_every_reader_finds_the_same_partitions(dataset: Path) -> None:
    by_duckdb = ask(dataset, "SELECT CAST(day AS VARCHAR), site, count(*) FROM {connections} GROUP BY ALL ORDER BY ALL")
    by_polars = (
        polars.scan_parquet(dataset / "connections", hive_partitioning=True)
        .group_by(polars.col("day").cast(polars.String), "site")
        .len()
        .sort("day", "site")
        .collect()
        .rows()
    )
    arrow = pyarrow.dataset.dataset(dataset / "connections", partitioning="hive").to_table(columns=["day", "site"])
    counted: dict[tuple[str, str], int] = {}
    for row in arrow.to_pylist():
        counted[row["day"], row["site"]] = counted.get((row["day"], row["site"]), 0) + 1
    assert by_duckdb == by_polars == [(*place, count) for place, count in sorted(counted.items())]
    assert {site for _, site, _ in by_duckdb} == {"lab", "wild", "bundles", RUN.name}


def test_the_data_set_says_what_it_holds(dataset: Path) -> None:
    document = json.loads((dataset / "dataset.json").read_text())
    assert (document["schema"], document["partitions"]) == ("tcpwin/fleet/1", ["day", "site"])
    for table, columns in document["tables"].items():
        (file,) = sorted((dataset / table).rglob("*.parquet"))[:1]
        assert polars.read_parquet_schema(file).names() == [each["name"] for each in columns]
        assert all(each["meaning"].endswith(".") for each in columns)
    assert tables()["connections"][1].meaning == "Number of the connection, from 0 in the order of first segments."


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    """Captures of two sites."""
    for site, paths in {"paris": (READER, LOSS), "rome": (MANY,)}.items():
        (tmp_path / "captures" / site).mkdir(parents=True)
        for path in paths:
            shutil.copy(path, tmp_path / "captures" / site)
    return tmp_path / "captures"


def test_unchanged_captures_stay_and_changed_ones_are_replaced(captures: Path, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    first = run_fleet(captures, "-o", folder)
    assert (first["measured"], first["unchanged"]) == (3, 0)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    assert run_fleet(captures, "-o", folder)["unchanged"] == 3
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")} == before

    shutil.copy(LOSS, captures / "rome" / MANY.name)
    shutil.copy(READER, captures / "rome")
    again = run_fleet(captures, "-o", folder)
    assert (again["captures"], again["measured"], again["unchanged"]) == (4, 2, 2)
    clean = tmp_path / "clean"
    run_fleet(captures, "-o", clean)
    assert contents(folder) == contents(clean)
    assert run_fleet(captures / "paris", "-o", folder, "--again")["measured"] == 2
    assert contents(folder) == contents(clean)


def test_new_sources_extend_it(captures: Path, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    run_fleet(captures / "paris", "-o", folder)
    assert run_fleet(captures / "rome", "-o", folder)["measured"] == 1
    run_fleet(captures, "-o", tmp_path / "at-once")
    assert contents(folder) == contents(tmp_path / "at-once")


def test_sites_are_folders_or_named(captures: Path, tmp_path: Path) -> None:
    tasks = {Path(task.name).name: task.site for task in discover([str(captures)])}
    assert tasks == {READER.name: "paris", LOSS.name: "paris", MANY.name: "rome"}
    assert "no such file or folder" in refused("fleet", "run", f"a/b={captures}", "-o", tmp_path / "none")
    assert not (tmp_path / "none").exists()
    run_fleet(f"Rome & Co={captures / 'rome'}", captures / "paris", "-o", tmp_path / "set", "--site", "Île")
    sites = ask(tmp_path / "set", "SELECT site, count(*) FROM {captures} GROUP BY 1 ORDER BY 1")
    assert sites == [("Rome & Co", 1), ("Île", 2)]


def test_hosts_are_those_of_the_captures_own_folder(tmp_path: Path) -> None:
    """From above, everything in a folder would belong to one host named after the folder."""
    for folder in (RUN, RUN.parent):
        (task,) = [each for each in discover([str(folder)]) if each.name == str(RUN / "snd.pcap.gz")]
        assert {each.label for each in task.snapshots} == {"snd", "rcv"}
    for number in range(11):
        shutil.copy(RUN / "snd.pcap.gz", tmp_path / f"host{number}x.pcap.gz")
        shutil.copy(RUN / "ss_snd.txt", tmp_path / f"ss_host{number}x.txt")
    many = [[each.label for each in task.snapshots] for task in discover([str(tmp_path)])]
    assert sorted(many) == sorted([f"host{number}x"] for number in range(11))


def test_patterns_rings_links_and_pipes(captures: Path, tmp_path: Path) -> None:
    pattern = [Path(task.name).name for task in discover([str(captures / "**" / "*.gz")])]
    assert pattern == [LOSS.name, READER.name, MANY.name]
    ring = tmp_path / "ring"
    ring.mkdir()
    for number in range(3):
        (ring / f"eth0.pcap{number}").write_bytes(gzip.decompress(READER.read_bytes()))
    os.mkfifo(ring / "pipe.pcap")
    (ring / "link.pcap").symlink_to(READER)
    tasks = {Path(task.name).name: task for task in discover([str(ring)])}
    assert [len(tasks[name].files) for name in ("eth0.pcap", "link.pcap", "pipe.pcap")] == [3, 1, 1]
    assert tasks["pipe.pcap"].failure is not None
    assert tasks["link.pcap"].failure is None
    (tmp_path / "nothing").mkdir()
    assert "no capture found" in refused("fleet", "run", tmp_path / "nothing", "-o", tmp_path / "set")


def rotated(path: Path, folder: Path, name: str) -> list[Path]:
    """Return a capture as left by `tcpdump -G 1`: a file for each second, named by its time."""
    packets: dict[str, list[tuple[Any, bytes]]] = {}
    with gzip.open(path) as file:
        for time, packet in dpkt.pcap.UniversalReader(file):
            stamp = datetime.fromtimestamp(int(time), UTC).strftime("%Y%m%d-%H%M%S")
            packets.setdefault(stamp, []).append((time, packet))
    files = []
    for stamp, part in packets.items():
        files.append(folder / f"{name}-{stamp}.pcap")
        with files[-1].open("wb") as out:
            writer = dpkt.pcap.Writer(out, nano=True)
            for time, packet in part:
                writer.writepkt(packet, time)
    return files


def test_connections_continue_across_files_named_by_time(tmp_path: Path) -> None:
    folder, site = tmp_path / "set", tmp_path / "site"
    site.mkdir()
    files = rotated(READER, tmp_path, "eth0")
    assert len(files) > 3
    shutil.copy(files[0], site)
    run_fleet(site, "-o", folder)
    assert ask(folder, "SELECT name FROM {captures}") == [(str(site / files[0].name),)]
    for file in files[1:]:
        shutil.copy(file, site)
    assert run_fleet(site, "-o", folder)["captures"] == 1
    analysis = library.analyze(shifted(READER, tmp_path / "whole.pcap", 0))
    name = files[0].name[: len("eth0-20261126-")] + "*.pcap"
    assert ask(folder, "SELECT name, files, packets FROM {captures}") == [
        (str(site / name), len(files), analysis.capture.packets)
    ]
    rows = ask(folder, "SELECT verdict.text, a_to_b.payload_bytes, b_to_a.payload_bytes FROM {connections}")
    (connection,) = analysis.connections
    there, back = connection.a_to_b, connection.b_to_a
    assert rows == [(connection.verdict.text, there.payload_bytes, back.payload_bytes)]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("a_00001_20261126020000.pcapng", "a_00002_20261126030000.pcapng"), {"a_20261126*.pcapng": 2}),
        (("a_2026-11-26_02:00:00.cap.gz", "a_2026-11-26_02:15:00.cap.gz"), {"a_2026-11-26_*.cap.gz": 2}),
        (("a-20261126-0000.pcap", "a-20261127-0000.pcap"), {"a-20261126-0000.pcap": 1, "a-20261127-0000.pcap": 1}),
        (("a-20261126-0000.pcap", "b-20261126-0100.pcap"), {"a-20261126-0000.pcap": 1, "b-20261126-0100.pcap": 1}),
        (("a-20261126-9900.pcap", "a-20261126-9901.pcap"), {"a-20261126-9900.pcap": 1, "a-20261126-9901.pcap": 1}),
    ],
)
def test_files_of_a_day_are_one_capture(names: tuple[str, ...], found: dict[str, int], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).write_bytes(gzip.decompress(READER.read_bytes()))
    assert {Path(task.name).name: len(task.files) for task in discover([str(tmp_path)])} == found


def shifted(path: Path, to: Path, seconds: float) -> Path:
    """Return a capture with all packets shifted in time."""
    with gzip.open(path) as file, to.open("wb") as out:
        writer = dpkt.pcap.Writer(out, nano=True)
        for time, packet in dpkt.pcap.UniversalReader(file):
            writer.writepkt(packet, float(time) + seconds)
    return to


def test_each_connection_belongs_to_the_day_on_which_it_began(tmp_path: Path) -> None:
    analysis = library.analyze(MANY)
    middle_ns = (analysis.capture.first_time_ns or 0) + analysis.capture.duration_ns // 2
    late = shifted(MANY, tmp_path / "late.pcap", (-middle_ns % 86_400_000_000_000) / 1e9)
    run_fleet(late, "-o", tmp_path / "set")
    counts = ask(
        tmp_path / "set",
        "SELECT day, count(*), min(make_timestamp_ns(start_ns)::DATE), max(make_timestamp_ns(start_ns)::DATE) "
        "FROM {connections} GROUP BY 1 ORDER BY 1",
    )
    assert len(counts) == 2
    assert sum(count for _, count, _, _ in counts) == len(analysis)
    assert all(day == first == last for day, _, first, last in counts)
    of_budgets = ask(tmp_path / "set", "SELECT day, count(*) FROM {budgets} GROUP BY 1 ORDER BY 1")
    assert of_budgets == [(day, 2 * count) for day, count, _, _ in counts]


def begin(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [TCPWIN, "fleet", "run", *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def many_of(tmp_path: Path, count: int) -> Path:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(count):
        shutil.copy(LOSS, folder / f"{number:03}.pcap.gz")
    return folder


def test_a_killed_run_resumes_where_it_stopped(tmp_path: Path) -> None:
    sources, folder = many_of(tmp_path, 12), tmp_path / "set"
    running = begin(sources, "-o", folder, "--workers", 2)
    manifest = folder / "manifest.jsonl"
    until(lambda: manifest.exists() and manifest.read_bytes().count(b"\n") >= 3)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    # Leftovers of a run that ended between a file and its manifest line, and within that line.
    lost = next((folder / "connections").rglob("*.parquet"))
    shutil.copy(lost, lost.with_name(f"{'0' * 16}-{'0' * 16}.parquet"))
    with manifest.open("a") as file:
        file.write('{"key": "0')
    measured = len(Dataset.open(folder).entries)
    summary = run_fleet(sources, "-o", folder)
    assert summary["measured"] <= 12 - measured
    assert summary["measured"] + summary["unchanged"] == 12
    run_fleet(sources, "-o", tmp_path / "clean")
    assert contents(folder) == contents(tmp_path / "clean")
    assert not (folder / ".staging").exists()


def test_a_process_that_dies_loses_no_capture(tmp_path: Path) -> None:
    sources, folder = many_of(tmp_path, 12), tmp_path / "set"
    running = begin(sources, "-o", folder, "--workers", 2)
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    until(lambda: (folder / "manifest.jsonl").exists() and (folder / "manifest.jsonl").read_bytes().count(b"\n") >= 2)
    os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
    _, said = running.communicate()
    assert (running.returncode, said) == (0, b"")
    assert ask(folder, "SELECT count(*), count(DISTINCT name), count(error) FROM {captures}") == [(12, 12, 0)]
    assert ask(folder, "SELECT count(*), count(DISTINCT capture) FROM {connections}") == [(12, 12)]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Eight small captures of one site: of two days, and two that cannot be read."""
    folder = tmp_path / "small"
    folder.mkdir()
    for number in range(2):
        shutil.copy(LOSS, folder / f"loss{number}x.pcap.gz")
        shutil.copy(MANY, folder / f"many{number}x.pcap.gz")
        shifted(READER, folder / f"reader{number}x.pcap", number * 86_400)
    shutil.copy(TEXT, folder / "text.pcap")
    (folder / "empty.pcap").touch()
    return folder


def files_of(dataset: Path, table: str) -> list[Path]:
    return sorted((dataset / table).rglob("*.parquet"))


def test_small_captures_share_files_and_each_says_what_it_says_alone(small: Path, tmp_path: Path) -> None:
    folder, single = tmp_path / "set", tmp_path / "single"
    summary = run_fleet(small, "-o", folder, "--workers", 1, "--also", "events", "--also", "series", status=3)
    assert (summary["measured"], len(summary["failed"])) == (8, 2)
    for path in small.iterdir():
        run_fleet(
            path, "-o", single, "--also", "events", "--also", "series", status=3 * (path.stem in ("text", "empty"))
        )
    assert contents(folder) == contents(single)
    assert len(files_of(folder, "connections")) < len(files_of(single, "connections"))
    for entry in Dataset.open(folder).entries.values():
        for table, rows in entry.rows.items():
            files = ", ".join(f"'{folder / path}'" for path in entry.paths if path.startswith(f"{table}/"))
            counted = ask(folder, f"SELECT count(*) FROM read_parquet([{files}]) WHERE capture = '{entry.key}'")
            assert counted == [(rows,)]


def test_one_capture_leaves_a_file_that_others_stay_in(small: Path, tmp_path: Path) -> None:
    folder, clean = tmp_path / "set", tmp_path / "clean"
    run_fleet(small, "-o", folder, "--workers", 1, status=3)
    before = contents(folder)
    shutil.copy(LOSS, small / "many1x.pcap.gz")
    shutil.copy(LOSS, small / "text.pcap")
    again = run_fleet(small, "-o", folder, status=3)
    assert (again["measured"], again["unchanged"]) == (2, 6)
    run_fleet(small, "-o", clean, status=3)
    assert contents(folder) == contents(clean) != before
    # Leftovers of a run that ended before one file's rows were removed from the others.
    entry = next(each for each in Dataset.open(folder).entries.values() if each.name.endswith("loss1x.pcap.gz"))
    with (folder / "manifest.jsonl").open("a") as file:
        file.write(json.dumps({"leaves": entry.key, "paths": entry.paths}) + "\n")
    assert entry.key not in Dataset.open(folder).entries
    again = run_fleet(small, "-o", folder, status=3)
    assert (again["measured"], again["unchanged"]) == (1, 7)
    assert contents(folder) == contents(clean)
    assert run_fleet(small, "-o", folder, "--again", "--workers", 1, status=3)["measured"] == 8
    assert contents(folder) == contents(clean)
    assert files_of(folder, "captures") == sorted(
        {folder / each.paths[-1] for each in Dataset.open(folder).entries.values()}
    )


@pytest.mark.nightly
def test_a_large_capture_is_shared_by_threads_and_says_the_same(small: Path, tmp_path: Path) -> None:
    run_fleet(small, "-o", tmp_path / "set", status=3)
    code = "from tcpwin.fleet import run, task; task.LARGE_BYTES = 20_000; run([{!r}], {!r}, workers=64)"
    subprocess.run([sys.executable, "-c", code.format(str(small), str(tmp_path / "shared"))], check=True)
    assert contents(tmp_path / "shared") == contents(tmp_path / "set")


def test_large_captures_come_first_and_share_the_threads() -> None:
    tasks = [Task(name, "here", (File(name, "", size),)) for name, size in (("a", 1), ("b", 1 << 30), ("c", 2 << 30))]
    assert [[task.name for task in group] for group in grouped(tasks, 2)] == [["b"], ["c"], ["a"]]
    assert [threads_of(tasks, places) for places in (1, 2, 4, 8)] == [1, 1, 2, 4]
    assert threads_of(tasks[:1], 4) == 4


def test_two_runs_do_not_meet_in_one_data_set(tmp_path: Path) -> None:
    import fcntl

    folder = tmp_path / "set"
    run_fleet(READER, "-o", folder)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another run is writing to it" in refused("fleet", "run", READER, "-o", folder)


def test_a_folder_that_is_not_a_data_set_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("of somebody\n")
    assert "not empty and not a data set" in refused("fleet", "run", READER, "-o", tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]
    run_fleet(READER, "-o", tmp_path / "set")
    description = tmp_path / "set" / "dataset.json"
    document: dict[str, Any] = json.loads(description.read_text())
    description.write_text(json.dumps({**document, "schema": "tcpwin/fleet/99"}))
    assert "tcpwin/fleet/99" in refused("fleet", "run", READER, "-o", tmp_path / "set")
    assert "mine: " in refused("fleet", "run", READER, "-o", tmp_path / "mine")


def test_a_full_disk_ends_the_run_and_what_was_written_stays(tmp_path: Path) -> None:
    """A limit on the size of files (RLIMIT_FSIZE) acts like a full disk."""
    folder = tmp_path / "set"
    run_fleet(READER, "-o", folder)
    before = contents(folder)
    command = f"ulimit -f 16; trap '' XFSZ; exec {TCPWIN} fleet run {LAB} -o {folder}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert done.returncode == 3
    assert b"File too large" in done.stderr
    assert b"Traceback" not in done.stderr
    assert contents(folder) == before
    run_fleet(LAB, "-o", folder)
    assert ask(folder, "SELECT count(*) FROM {captures}") == [(len(list(LAB.glob("*.pcap.gz"))),)]


def test_events_and_series_of_the_worst_connections(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    run_fleet(READER, "-o", folder, "--also", "events", "--also", "series")
    connection = library.analyze(READER).connections[0]
    rows = ask(folder, "SELECT frame, time_ns, names, direction FROM {events} ORDER BY frame")
    expected = [(each.frame, each.time_ns, list(each.names), each.direction) for each in connection.events]
    assert rows == sorted(expected)
    series = connection.series("flight", direction="b_to_a")
    rows = ask(folder, "SELECT time_ns, max FROM {series} WHERE direction = 'b_to_a' AND series = 'flight' ORDER BY 1")
    assert rows == list(zip(series.time_ns.tolist(), series.max.tolist(), strict=True))
    assert np.all(np.diff(series.time_ns) > 0)
    # Captures measured without events are measured again only if events are requested.
    run_fleet(LOSS, "-o", tmp_path / "other")
    assert run_fleet(LOSS, "-o", tmp_path / "other", "--also", "events")["measured"] == 1
    assert run_fleet(LOSS, "-o", tmp_path / "other", "--also", "events")["unchanged"] == 1


def test_an_unknown_table_is_an_argument_error(tmp_path: Path) -> None:
    with pytest.raises(library.ArgumentError, match="unknown table nonsense; available: events, series"):
        run([str(CAPTURES / "lab")], tmp_path / "fleet", also=["nonsense"])
