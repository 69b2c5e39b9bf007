"""Compare answers byte by byte: python tests/analysis/answers.py [--old PYTHON] [--damaged COUNT].

One thread with three, and with `--old` this engine with the one that another installation's Python imports, on every
capture of the tests and on damaged ones, which are made from a seed. Exit 1 if an answer differs.
"""

import argparse
import gzip
import hashlib
import io
import random
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import chdir, suppress
from itertools import repeat
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))

from reference import REFERENCE_CAPTURES  # noqa: E402
from test_fuzzed import mutant  # noqa: E402

import tcpwin  # noqa: E402
from tcpwin import TcpwinError, _engine  # noqa: E402

CAPTURES = TESTS.parent / "captures"
THREADS = 3
# Larger ones take most of the time, and damage in them is found nowhere else either.
MOST_BYTES = 60_000


def captures() -> list[Path]:
    """Every capture of the tests, those from elsewhere included."""
    folders = (CAPTURES, TESTS, REFERENCE_CAPTURES)
    paths = [path for folder in folders for path in sorted(folder.rglob("*.pcap*")) if path.is_file()]
    return [path for path in paths if path.suffix not in (".toml", ".json", ".md", ".txt", ".py")]


def damaged(count: int) -> Iterator[bytes]:
    whole = [path.read_bytes() for path in sorted(CAPTURES.rglob("*.pcap*")) if 0 < path.stat().st_size < MOST_BYTES]
    seeds = tuple(_plain(data)[:MOST_BYTES] for data in whole)
    for seed in range(count):
        yield mutant(random.Random(seed), seeds)


def _plain(data: bytes) -> bytes:
    with suppress(OSError, EOFError, zlib.error):
        return gzip.decompress(data)
    return data


def digest(path: Path, threads: int) -> str:
    """Of the JSON document with all fields, of findings as text, and of the rows of packets."""
    answer = hashlib.sha256()
    try:
        analysis = tcpwin.analyze(path, threads=threads)
        answer.update(analysis.to_json(fields=["all"]).encode())
        answer.update(analysis.to_json().encode())
        answer.update("\n".join(map(str, analysis.findings)).encode())
        rows = io.BytesIO()
        _engine.write_rows([path], rows, format="csv", name=path.name)
        answer.update(rows.getvalue())
    except TcpwinError as error:
        answer.update(str(error).encode())
    return answer.hexdigest()


def digests(threads: int, count: int) -> Iterator[tuple[str, str]]:
    """Yield each capture's name and the digest of its answers."""
    for path in captures():
        yield str(path), digest(path, threads)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        # Answers contain the name, which must be the same in every run.
        path = Path("damaged.pcap")
        for seed, data in enumerate(damaged(count)):
            path.write_bytes(data)
            yield f"damaged {seed}", digest(path, threads)


def digests_by(python: str, threads: int, count: int) -> Iterator[tuple[str, str]]:
    """Yield what `digests` yields with another Python's tcpwin."""
    command = [python, __file__, "--digests", str(threads), "--damaged", str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            name, _, answer = line.rstrip("\n").rpartition("\t")
            yield name, answer


def main() -> int:
    parser = argparse.ArgumentParser(prog="answers.py", description="Compare answers of threads and engines.")
    parser.add_argument("--old", metavar="PYTHON", help="an installation of tcpwin to compare with")
    parser.add_argument("--damaged", type=int, default=2_000, metavar="COUNT", help="damaged captures (%(default)s)")
    parser.add_argument("--digests", type=int, metavar="THREADS", help="print digests instead")
    options = parser.parse_args()
    if options.digests:
        for name, answer in digests(options.digests, options.damaged):
            print(f"{name}\t{answer}", flush=True)
        return 0
    several = digests_by(sys.executable, THREADS, options.damaged)
    old = digests_by(options.old, 1, options.damaged) if options.old else None
    count = differing = 0
    for one, other, before in zip(digests(1, options.damaged), several, old or repeat(None)):  # noqa: B905
        count += 1
        for which, found in ((f"{THREADS} threads", other), ("the old engine", before or one)):
            if found != one:
                differing += 1
                print(f"{one[0]}: {which} answers differently", flush=True)
    expected = len(captures()) + options.damaged
    print(f"{count} of {expected} captures compared, {differing} answers differ")
    return int(differing > 0 or count < expected)


if __name__ == "__main__":
    sys.exit(main())
