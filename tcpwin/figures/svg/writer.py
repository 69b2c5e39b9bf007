"""The only writer of SVG: elements without styles, scripts or addresses, which the strictest page policy allows.

In: names, numbers and texts. Out: markup. Content must already be markup; attributes are escaped here.
"""

from __future__ import annotations

from html import escape


def element(name: str, *content: str, **attributes: object) -> str:
    """Write an element. Underscores in attribute names become hyphens; an attribute that is None is omitted."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(content)}</{name}>" if content else f"<{name}{written}/>"


def number(value: float) -> str:
    """Write a coordinate in pixels, limited to what every browser draws: a zoomed curve may extend far outside."""
    return f"{min(max(value, -1e5), 1e5):.1f}".removesuffix(".0")
