"""Which packets of an upload are looked at, as people write it: a filter of libpcap, and the ends of a span."""

from tcpwin.errors import FilterError
from tcpwin.sources import Selection, compile_filter
from tcpwin_web.uploads.stream import UploadError

MOST_FILTER, MOST_MOMENT = 2000, 64
"""Characters."""
LINK_TYPES = (1, 101, 113, 276, 105, 12, 0)
"""Ethernet, plain IP, Linux's cooked ones, 802.11, and the loopbacks of BSD: a filter must be one for any of them."""


def selection_of(filter: str | None, start: str | None, end: str | None) -> Selection | None:
    """What is selected; None where nothing is said. The filter is not compiled yet: `check_filter` does that.

    Raises:
        UploadError: a moment is none, or the span ends before it begins.
    """
    words = [(each or "").strip() or None for each in (filter, start, end)]
    try:
        return Selection(*words) or None
    except (FilterError, ValueError) as error:
        raise UploadError(422, str(error)) from None


def check_filter(expression: str) -> None:
    """Compile a filter, as a job of a worker: libpcap may take long, and asks for addresses of hosts by name.

    Raises:
        FilterError: libpcap does not understand it for packets of any usual link type.
    """
    said: FilterError | None = None
    for link_type in LINK_TYPES:
        try:
            compile_filter(expression, link_type)
        except FilterError as error:
            said = said or error
        else:
            return
    if said is not None:
        raise said
