"""The timed captures, made on demand by the engine's example `generate` and cached in a folder.

Takes a folder and names, returns files with packet and connection counts. A capture is remade when the generator's
sources or its arguments change. Nothing is timed here.
"""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from . import reshape

ENGINE = Path(__file__).resolve().parents[3] / "tcpwin" / "engine"
MIB = 1 << 20
CHUNK_BYTES = 1 << 20
SPARE_BYTES = 512 * MIB
COUNT = "import sys, tcpwin; found = tcpwin.analyze(sys.argv[1]); print(found.capture.packets, len(found))"


class CaptureError(Exception):
    """A capture could not be made; the message gives the reason and a remedy."""


@dataclass(frozen=True)
class Shape:
    """Arguments of `generate`.

    `compressed` names the shape of which this is the gzip file, `reshaped` the shape that a function of `reshape`
    converts. `eventful` connections have events.
    """

    filename: str
    arguments: tuple[str, ...]
    connections: int
    size_mib: int
    compressed: str | None = None
    reshaped: tuple[str, str] | None = None
    eventful: int | None = None

    @property
    def made_from(self) -> str | None:
        return self.reshaped[0] if self.reshaped else self.compressed


SHAPES = {
    "A": Shape("A.pcap", ("--shape", "A"), 200, 100),
    "B": Shape("B.pcap", ("--shape", "B"), 2_000, 1_000),
    "C": Shape("C.pcap", ("--shape", "C"), 200, 2_000),
    "D": Shape("D.pcap", ("--shape", "D"), 1_000_000, 430, eventful=0),
    "E": Shape("E.pcapng", ("--shape", "E"), 200, 130),
    "A.gz": Shape("A.pcap.gz", (), 200, 50, compressed="A"),
    "B.gz": Shape("B.pcap.gz", (), 2_000, 500, compressed="B"),
    "small": Shape("small.pcap", ("--shape", "A", "--packets", "100", "--connections", "5"), 5, 1),
    "elephant": Shape("elephant.pcap", ("--shape", "A", "--connections", "1"), 1, 100),
    "50 bulk": Shape("bulk.pcap", ("--shape", "A", "--connections", "50"), 50, 100),
    "no SYNs": Shape("no-syns.pcap", (), 200, 100, reshaped=("A", "without_syns")),
    "IPv6": Shape("ipv6.pcap", (), 200, 120, reshaped=("A", "in_ipv6")),
    "VXLAN": Shape("vxlan.pcap", (), 200, 150, reshaped=("A", "in_vxlan")),
    "no timestamps": Shape("no-timestamps.pcap", (), 200, 100, reshaped=("A", "without_timestamps")),
    "all reordered": Shape("reordered.pcap", (), 200, 100, reshaped=("A", "swapped")),
    "scan": Shape("scan.pcap", (), 1_000_000, 80, reshaped=("D", "lone_syns"), eventful=0),
}
SHAPED = ("elephant", "50 bulk", "no SYNs", "IPv6", "VXLAN", "no timestamps", "all reordered", "scan")
"""Captures of which only memory is judged."""


@dataclass(frozen=True)
class Capture:
    """`eventful`: connections with events; all if nobody counted."""

    path: Path
    packets: int
    connections: int
    eventful: int | None = None


def build_example(name: str, *, release: bool = True, environment: Mapping[str, str] | None = None) -> Path:
    """Build one of the engine's examples with cargo; return its path."""
    command = ["cargo", "build", "--no-default-features", "--example", name]
    command += ["--message-format", "json-render-diagnostics"]
    if release:
        command.append("--release")
    variables = {**os.environ, **(environment or {})}
    done = subprocess.run(command, cwd=ENGINE, stdout=subprocess.PIPE, text=True, check=False, env=variables)
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == name:
            return Path(message["executable"])
    raise CaptureError(f"cargo built no example {name!r} (exit {done.returncode}); see its messages above")


def prepare(folder: Path, names: Iterable[str]) -> dict[str, Capture]:
    """Make missing or outdated captures of the given names; return all of them by name."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = list(names)
    # Make a capture's source before the capture itself.
    wanted = list(dict.fromkeys([SHAPES[name].made_from or name for name in wanted] + wanted))
    record_path = folder / "captures.json"
    record = json.loads(record_path.read_text()) if record_path.exists() else {}
    sources = _sources_sha256()
    missing = [name for name in wanted if not _is_current(folder, name, record, sources)]
    if missing:
        _check_disk(folder, missing)
        generator = build_example("generate")
    for name in missing:
        shape = SHAPES[name]
        path = folder / shape.filename
        if shape.compressed:
            packets = record[shape.compressed]["packets"]
            _compress(folder / SHAPES[shape.compressed].filename, path)
        elif shape.reshaped:
            original, how = shape.reshaped
            packets = _reshape(folder / SHAPES[original].filename, path, getattr(reshape, how))
        else:
            packets = _generate(generator, shape, path)
        record[name] = {"key": _key(shape, sources), "packets": packets, "bytes": path.stat().st_size}
        record_path.write_text(json.dumps(record, indent=1))
    return {
        name: Capture(
            folder / SHAPES[name].filename, record[name]["packets"], SHAPES[name].connections, SHAPES[name].eventful
        )
        for name in wanted
    }


def other(path: Path, eventful: int | None = None) -> Capture:
    """Return a capture made by somebody else."""
    # In another process, because measured commands inherit this one's peak memory.
    command = [sys.executable, "-c", COUNT, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CaptureError(done.stderr.strip().splitlines()[-1])
    packets, connections = map(int, done.stdout.split())
    return Capture(path, packets, connections, eventful)


def _reshape(source: Path, path: Path, how: reshape.Reshape) -> int:
    fresh = path.with_name(path.name + ".fresh")
    try:
        packets = reshape.reshape(source, fresh, how)
        _copy(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    return packets


def _sources_sha256() -> str:
    digest = hashlib.sha256()
    for source in [*sorted((ENGINE / "examples" / "generate").glob("*.rs")), Path(reshape.__file__)]:
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _key(shape: Shape, sources: str) -> str:
    return hashlib.sha256(json.dumps([asdict(shape), sources]).encode()).hexdigest()


def _is_current(folder: Path, name: str, record: dict[str, dict[str, object]], sources: str) -> bool:
    entry = record.get(name)
    path = folder / SHAPES[name].filename
    if entry is None or not path.exists():
        return False
    return entry["key"] == _key(SHAPES[name], sources) and entry["bytes"] == path.stat().st_size


def _check_disk(folder: Path, missing: list[str]) -> None:
    sizes_mib = [SHAPES[name].size_mib for name in missing]
    # Each new file is copied before the original is removed, so the largest briefly exists twice.
    needed_bytes = (sum(sizes_mib) + max(sizes_mib)) * MIB * 11 // 10 + SPARE_BYTES
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise CaptureError(
            f"{folder} has {free_bytes // MIB:,} MiB free and {needed_bytes // MIB:,} MiB are needed for "
            f"{', '.join(missing)}: choose another folder with --dir"
        )


def _generate(generator: Path, shape: Shape, path: Path) -> int:
    fresh = path.with_name(path.name + ".fresh")
    try:
        command = [str(generator), *shape.arguments, str(fresh)]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        found = re.search(r"\bpackets=(\d+)", done.stderr)
        if done.returncode != 0 or found is None:
            raise CaptureError(f"generate failed for {path.name}: {done.stderr.strip()}")
        _copy(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    return int(found[1])


def _copy(fresh: Path, path: Path) -> None:
    """Copy a new file in large pieces and let it reach the disk.

    The page cache of a file written in small pieces can consist of small folios, which more than doubles the cost of
    reading it; and pages not yet written would disturb the timing.
    """
    partial = path.with_name(path.name + ".partial")
    with fresh.open("rb") as source, partial.open("wb") as target:
        shutil.copyfileobj(source, target, CHUNK_BYTES)
        target.flush()
        os.fsync(target.fileno())
    partial.replace(path)


def _compress(source: Path, path: Path) -> None:
    partial = path.with_name(path.name + ".partial")
    with source.open("rb") as plain, partial.open("wb") as target:
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=target, mtime=0) as packed:
            shutil.copyfileobj(plain, packed, CHUNK_BYTES)
        target.flush()
        os.fsync(target.fileno())
    partial.replace(path)


def warm(captures: Iterable[Capture]) -> None:
    """Read every capture once, so that no tool waits for the disk."""
    for capture in captures:
        with capture.path.open("rb", buffering=0) as file:
            while file.read(CHUNK_BYTES):
                pass
