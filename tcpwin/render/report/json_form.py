"""JSON for embedding in a page.

In: plain values. Out: text without characters that are special in HTML or in a script.
"""

from __future__ import annotations

import json
from typing import Any


def script_json(value: Any) -> str:
    """Encode a value as JSON that is safe in a script element, whatever its strings contain."""
    text = json.dumps(value, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
