"""/proc/net/sockstat and sockstat6: every number by section and name, TCP's with separate fields."""

from __future__ import annotations

from pathlib import Path

from cases import all_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import LAB_RUNS

from tcpwin.hosts import MemorySample, UnknownLine
from tcpwin.hosts.formats.sockstat import MAX_SECTIONS, recognise
from tcpwin.hosts.formats.sockstat import read as read_samples
from tcpwin.hosts.lines import Lines, Unknown

TRUTH = Path(__file__).parent / "truth" / "sockstat"


def read(text: str, page_size_bytes: int = 4096) -> tuple[list[MemorySample], Unknown]:
    lines = Lines(text.splitlines(keepends=True), page_size_bytes=page_size_bytes)
    return list(read_samples(lines)), lines.unknown


def test_both_files_whole_and_again() -> None:
    samples, unknown = read((TRUTH / "both.txt").read_text(encoding="utf8"))
    assert samples == [
        MemorySample(
            time_ns=None,
            line=2,
            tcp_inuse=5,
            tcp_orphan=1,
            tcp_time_wait=2,
            tcp_alloc=6,
            tcp_memory_pages=1054,
            tcp6_inuse=4,
            page_size_bytes=4096,
            values={
                ("sockets", "used"): 165,
                ("TCP", "inuse"): 5,
                ("TCP", "orphan"): 1,
                ("TCP", "tw"): 2,
                ("TCP", "alloc"): 6,
                ("TCP", "mem"): 1054,
                ("UDP", "inuse"): 3,
                ("UDP", "mem"): 1,
                ("UDPLITE", "inuse"): 0,
                ("RAW", "inuse"): 0,
                ("FRAG", "inuse"): 0,
                ("FRAG", "memory"): 0,
                ("TCP6", "inuse"): 4,
                ("UDP6", "inuse"): 0,
            },
        ),
        MemorySample(
            time_ns=None,
            line=10,
            tcp_inuse=6,
            tcp_orphan=1,
            tcp_time_wait=2,
            tcp_alloc=7,
            tcp_memory_pages=1055,
            tcp6_inuse=None,
            page_size_bytes=4096,
            values={
                ("sockets", "used"): 166,
                ("TCP", "inuse"): 6,
                ("TCP", "orphan"): 1,
                ("TCP", "tw"): 2,
                ("TCP", "alloc"): 7,
                ("TCP", "mem"): 1055,
            },
        ),
    ]
    assert samples[0].tcp_memory_bytes == 4_317_184  # 1054 × 4096.
    assert unknown == Unknown()


def test_the_tcp_line_alone_with_stamps_on_a_host_of_large_pages() -> None:
    samples, unknown = read((TRUTH / "tcp_only.txt").read_text(encoding="utf8"), page_size_bytes=65536)
    tcp = {("TCP", "inuse"): 0, ("TCP", "orphan"): 0, ("TCP", "tw"): 0}
    assert samples == [
        MemorySample(
            1_795_226_745_161_865_000, 2, 0, 0, 0, 0, 57, None, 65536, {**tcp, ("TCP", "alloc"): 0, ("TCP", "mem"): 57}
        ),
        MemorySample(
            1_795_226_745_361_915_000, 4, 0, 0, 0, 1, -2, None, 65536, {**tcp, ("TCP", "alloc"): 1, ("TCP", "mem"): -2}
        ),
        MemorySample(1_795_226_745_561_915_000, 7, None, None, None, None, None, 3, 65536, {("TCP6", "inuse"): 3}),
    ]
    assert [sample.tcp_memory_bytes for sample in samples] == [3_735_552, -131_072, None]
    assert unknown.first == [UnknownLine(6, "TCP: inuse 0 orphan")]
    assert unknown.count == 1


def test_sections_of_a_sample_are_bounded() -> None:
    names = [f"S{letter}{other}" for letter in "ABCDEFGHIJ" for other in "ABCDEFGHIJ"]
    samples, unknown = read("".join(f"{name}: inuse 1\n" for name in names))
    assert [len(sample.values) for sample in samples] == [MAX_SECTIONS]
    assert unknown.count == 100 - MAX_SECTIONS


@all_cases(
    ("text", "sure"),
    [
        ("sockets: used 165\n", 95),
        ("TCP: inuse 5 orphan 0 tw 0 alloc 6 mem 1054\n", 95),
        ("TCP6: inuse 5\n", 95),
        ("TCP6: inuse 5\none\ntwo\n", 60),
        ("Tcp: RtoAlgorithm RtoMin\nTcp: 1 200\n", 0),
        ("TCP:   12 (estab 2, closed 0, orphaned 0, timewait 0)\n", 0),  # ss -s.
        ("", 0),
    ],
)
def test_recognised_by_its_sections(text: str, sure: int) -> None:
    assert recognise(text.splitlines()) == sure


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text() | st.from_regex(r"((TCP|UDP|sockets): ?([a-z]{1,5} -?[0-9]{1,25} ?){0,4}\n){0,8}", fullmatch=True))
def test_no_text_raises(text: str) -> None:
    samples, unknown = read(text)
    recognise(text.splitlines())
    assert len(samples) + unknown.count <= 2 * len(text)


def test_each_file_of_the_lab_is_read_whole() -> None:
    files = sorted(LAB_RUNS.glob("*/sockstat_*.txt"))
    assert len(files) >= 40
    for file in files:
        rows = file.read_text(encoding="utf8").splitlines()
        samples, unknown = read("\n".join(rows))
        assert unknown == Unknown(), file
        assert len(samples) == len(rows) // 2, file
        # Timestamps have six decimals; a line is "TCP: inuse 0 orphan 0 tw 0 alloc 0 mem 57".
        assert [sample.time_ns for sample in samples] == [
            int(row.removeprefix("### ").replace(".", "")) * 1000 for row in rows[::2]
        ], file
        assert [
            [sample.tcp_inuse, sample.tcp_orphan, sample.tcp_time_wait, sample.tcp_alloc, sample.tcp_memory_pages]
            for sample in samples
        ] == [[int(word) for word in row.split()[2::2]] for row in rows[1::2]], file
