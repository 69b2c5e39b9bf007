"""Parse the selection of an upload's packets as people write it: a libpcap filter, and the ends of a span."""

from tcpwin.errors import FilterError
from tcpwin.sources import Selection, compile_filter
from tcpwin_web.uploads.stream import UploadError

MOST_FILTER, MOST_MOMENT = 2000, 64
"""Maximum lengths, in characters."""
LINK_TYPES = (1, 101, 113, 276, 105, 12, 0)
"""Ethernet, raw IP, Linux cooked, 802.11 and BSD loopback: a filter must compile for at least one of them."""


def selection_of(filter: str | None, start: str | None, end: str | None) -> Selection | None:
    """Return the selection, or None for all packets. `check_filter` compiles the filter.

    Raises:
        UploadError: a time is invalid, or the span ends before it begins.
    """
    words = [(each or "").strip() or None for each in (filter, start, end)]
    try:
        return Selection(*words) or None
    except (FilterError, ValueError) as error:
        raise UploadError(422, str(error)) from None


def check_filter(expression: str) -> None:
    """Compile a filter. Run it in a worker: libpcap may take long.

    Raises:
        FilterError: it does not compile for any usual link type.
    """
    first: FilterError | None = None
    for link_type in LINK_TYPES:
        try:
            compile_filter(expression, link_type)
        except FilterError as error:
            first = first or error
        else:
            return
    if first is not None:
        raise first
