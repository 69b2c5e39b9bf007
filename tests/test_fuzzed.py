"""Damaged captures, bundles and scenarios in every command that reads them: an answer or one sentence.

By day a few seconds; at night `TCPWIN_FUZZ_SECONDS` (an hour by default) is divided among the targets.
"""

import io
import os
import random
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.command import CAPTURES

import tcpwin
from tcpwin.errors import TcpwinError
from tcpwin.lab.scenario import read_scenario
from tcpwin.limits import Analysis
from tcpwin.pairing import pair
from tcpwin.render import annotate, slice_anonymized, slice_packets

DAY_SECONDS = 0.4
NIGHT_SECONDS = float(os.environ.get("TCPWIN_FUZZ_SECONDS", "3600"))
SEEDS = tuple(
    path.read_bytes()
    for path in sorted((*CAPTURES.glob("wild/*.pcap*"), *CAPTURES.glob("broken/*.pcap*")))
    if 0 < path.stat().st_size < 30_000
)
SCENARIOS = tuple(sorted(Path(tcpwin.__file__).parent.glob("lab/scenarios/*.toml")))
VALUES = (
    b"-1",
    b"0",
    b"1e308",
    b"inf",
    b"nan",
    b"1" * 30,
    b'""',
    b'"\\u0000"',
    b"[]",
    b"{}",
    b"true",
    b'"1e999 s"',
    b"[[]]",
)
WORDS = (b"\0", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0", b"[", b"=", b'"', b"-1", b"1e999")


def mutant(chance: random.Random, seeds: tuple[bytes, ...]) -> bytes:
    """One of the seeds with bytes flipped, cut, doubled, replaced, or mixed with another."""
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                data[at : at + 1] = bytes((chance.randrange(256),))
            case 1:
                data[at : at + 8] = chance.choice(WORDS)
            case 2:
                del data[at : at + chance.randint(1, 200)]
            case 3:
                data[at:at] = data[at : at + chance.randint(1, 200)]
            case _:
                other = chance.choice(seeds)
                data[at:] = other[chance.randrange(len(other)) :]
    return bytes(data)


def opened(data: bytes, folder: Path) -> Analysis:
    path = folder / "mutant.pcap"
    path.write_bytes(data)
    return tcpwin.analyze(path)


def _pair(chance: random.Random, folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).write_bytes(mutant(chance, SEEDS))
    pair(folder / "a", folder / "b").warnings  # noqa: B018 - it is computed


def _slice(chance: random.Random, folder: Path) -> None:
    slice_packets(opened(mutant(chance, SEEDS), folder), io.BytesIO(), start_ns=0, headers_only=chance.random() < 0.5)


def _annotate(chance: random.Random, folder: Path) -> None:
    annotate(opened(mutant(chance, SEEDS), folder), io.BytesIO())


def _anonymize(chance: random.Random, folder: Path) -> None:
    slice_anonymized(opened(mutant(chance, SEEDS), folder), io.BytesIO(), start_ns=0, shift_times=True)


def _report(chance: random.Random, folder: Path) -> None:
    report = opened(mutant(chance, SEEDS), folder).report()
    report.markdown()
    report.json()


def _bundle(chance: random.Random, folder: Path) -> None:
    packed, ss = io.BytesIO(), b"State Recv-Q Send-Q\nESTAB 0 0 10.0.0.1:80 10.0.0.2:99\n"
    members = {"host/a.pcap": mutant(chance, SEEDS), "host/ss.txt": mutant(chance, (ss,))}
    form = chance.choice((".zip", ".tar", ".tar.gz"))
    if form == ".zip":
        with zipfile.ZipFile(packed, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
    else:
        with tarfile.open(fileobj=packed, mode="w:gz" if form == ".tar.gz" else "w") as archive:
            for name, data in members.items():
                (info := tarfile.TarInfo(name)).size = len(data)
                archive.addfile(info, io.BytesIO(data))
    path = folder / f"bundle{form}"
    path.write_bytes(mutant(chance, (packed.getvalue(),)) if chance.random() < 0.5 else packed.getvalue())
    tcpwin.analyze(path).findings  # noqa: B018 - they are judged


def _scenario(chance: random.Random, _: Path) -> None:
    texts = tuple(path.read_bytes() for path in SCENARIOS)
    if chance.random() < 0.3:
        text = mutant(chance, texts)
    else:
        # Mutants are rarely TOML: values are replaced by others.
        lines = chance.choice(texts).splitlines()
        for number in chance.sample(range(len(lines)), min(len(lines), chance.randint(1, 3))):
            name, equals, _ = lines[number].partition(b"=")
            lines[number] = name + equals + chance.choice(VALUES) if equals else lines[number]
        text = b"\n".join(lines)
    read_scenario("mutant", text.decode("utf8", "replace"))


TARGETS = (_pair, _slice, _annotate, _anonymize, _report, _bundle, _scenario)


def fuzz(target: Callable[[random.Random, Path], None], folder: Path, seconds: float, seed: int) -> int:
    """Run mutants for a time, and return their number."""
    end, count = time.process_time() + seconds, 0
    while time.process_time() < end:
        chance = random.Random(f"{seed} {count}")
        try:
            target(chance, folder)
        except TcpwinError as error:
            if "\n" in str(error):
                pytest.fail(f"seed {seed}, mutant {count}: {error}")
        except Exception as error:
            error.add_note(f"seed {seed}, mutant {count}")
            raise
        count += 1
    return count


@pytest.mark.parametrize("target", TARGETS, ids=lambda each: each.__name__.strip("_"))
def test_a_few_mutants(target: Callable[[random.Random, Path], None], tmp_path: Path) -> None:
    assert fuzz(target, tmp_path, DAY_SECONDS, 1)


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.parametrize("target", TARGETS, ids=lambda each: each.__name__.strip("_"))
def test_mutants_for_an_hour(target: Callable[[random.Random, Path], None], tmp_path: Path) -> None:
    assert fuzz(target, tmp_path, NIGHT_SECONDS / len(TARGETS), random.SystemRandom().randrange(1 << 30))
