"""Parse window scales given by hand: a host's address and its shift, ``10.0.0.1=7``."""

import re
from collections.abc import Iterable

from tcpwin.hosts import read_scales
from tcpwin_web.uploads.stream import UploadError

MAX_SCALES = 100


def scales_of(words: Iterable[str]) -> dict[str, int]:
    """Return the shifts by address.

    Raises:
        UploadError: one is not HOST=SHIFT, or a host has two shifts.
    """
    found: dict[str, int] = {}
    for word in words:
        host, _, shift = word.strip().rpartition("=")
        if not host or not re.fullmatch(r"\d{1,3}", shift, re.ASCII):
            raise UploadError(422, f"{word!r} is not a host with its window scale, such as 10.0.0.1=7")
        try:
            [(host, number)] = read_scales({host: int(shift)}).items()
        except ValueError as error:
            raise UploadError(422, str(error)) from None
        if found.setdefault(host, number) != number:
            raise UploadError(422, f"{host} is given both {found[host]} and {number}")
    if len(found) > MAX_SCALES:
        raise UploadError(422, f"window scales of {MAX_SCALES} hosts at most")
    return found
