"""Replace every address in a standalone report: in its text, figures and table.

Scripts and styles stay as they are: the page's policy allows them by their hashes.
"""

import base64
import gzip
import re

from tcpwin_web.anonymise.cryptopan import CryptoPan

_ELEMENT = re.compile(r"(<(script|style)\b[^>]*>)(.*?)(</\2>)", re.DOTALL | re.IGNORECASE)
_DATA = re.compile(r'id="packed-(?!plotly")')


def replace_in_page(page: str, mapping: CryptoPan) -> str:
    """Map every address in a report's page."""
    parts, end = [], 0
    for found in _ELEMENT.finditer(page):
        parts.append(mapping.text(page[end : found.start()]))
        opening, _, content, closing = found.groups()
        if _DATA.search(opening):
            content = _repacked(content, mapping)
        parts += [opening, content, closing]
        end = found.end()
    parts.append(mapping.text(page[end:]))
    return "".join(parts)


def _repacked(packed: str, mapping: CryptoPan) -> str:
    document = gzip.decompress(base64.b64decode(packed)).decode("utf-8")
    return base64.b64encode(gzip.compress(mapping.text(document).encode(), 6, mtime=0)).decode()
