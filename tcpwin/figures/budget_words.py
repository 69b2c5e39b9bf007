"""Words for the items of the time budget and their groups, as every table, legend and column has them."""

from __future__ import annotations

from tcpwin.limits import GROUP_NAMES, ITEM_NAMES

ITEM_WORDS = ITEM_NAMES
GROUP_WORDS = GROUP_NAMES
