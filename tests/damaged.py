"""Damage valid texts: change, cut or double bytes and lines, or mix in lines of another text."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

ODD = [
    b"",
    b"\0",
    b"\xff\xfe",
    b"-1",
    b"9" * 400,
    b"1e999",
    b"nan",
    b"\xe2\x80\xae",
    b"[" * 3000,
    b'"',
    b"'",
    b"=",
    b"\r",
    b",",
]


@st.composite
def damaged(draw: st.DrawFn, truths: Sequence[bytes]) -> bytes:
    """Return one of these texts, damaged in a few places."""
    data = draw(st.sampled_from(truths))
    for _ in range(draw(st.integers(1, 4))):
        lines = data.split(b"\n")
        first, second = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        at, end = sorted(draw(st.integers(0, len(lines[first]))) for _ in range(2))
        match draw(st.integers(0, 4)):
            case 0:
                odd = draw(st.sampled_from(ODD) | st.binary(max_size=4))
                lines[first] = lines[first][:at] + odd + lines[first][end:]
            case 1:
                del lines[min(first, second) : max(first, second)]
            case 2:
                lines.insert(first, lines[second])
            case 3:
                others = draw(st.sampled_from(truths)).split(b"\n")
                lines[first] = others[second % len(others)]
            case _:
                lines = [*lines[:first], lines[first][:at]]
        data = b"\n".join(lines)
    return data
