"""JSON that can stand in a page.

In: plain values. Out: text of which no character acts in HTML or in a script.
"""

from __future__ import annotations

import json
from typing import Any


def script_json(value: Any) -> str:
    """A value as JSON that can stand in a script element, whatever its strings hold."""
    text = json.dumps(value, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
