"""The one writer of SVG: elements without styles, scripts or addresses, so that the strictest policy shows them.

In: names, numbers and texts. Out: markup. Content is markup already; attributes are escaped here.
"""

from __future__ import annotations

from html import escape


def element(name: str, *content: str, **attributes: object) -> str:
    """Write an element. Underscores in names of attributes become hyphens; an attribute that is None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(content)}</{name}>" if content else f"<{name}{written}/>"


def number(value: float) -> str:
    """Write a coordinate in pixels, within what every browser draws: a zoomed curve may leave far outside."""
    return f"{min(max(value, -1e5), 1e5):.1f}".removesuffix(".0")
