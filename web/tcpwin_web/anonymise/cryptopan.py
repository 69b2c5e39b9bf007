"""Map addresses so that two share exactly as many leading bits afterwards as before.

Crypto-PAn: Xu, Fan, Ammar, Moon, "Prefix-Preserving IP Address Anonymization" (ICNP 2002), with AES-128 as in the
authors' program: the key's second half, encrypted, is the padding.
"""

import ipaddress
import re
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

KEY_BYTES = 32
_CANDIDATE = re.compile(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\.\d)|[0-9A-Fa-f:]*:[0-9A-Fa-f:]+(?:\.\d{1,3}){0,3})", re.ASCII
)


class CryptoPan:
    """The mapping of one key."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"the key has {KEY_BYTES} bytes")
        # The article's mode: each block is independent.
        self._aes = Cipher(algorithms.AES128(key[:16]), modes.ECB()).encryptor()
        self._padding = int.from_bytes(self._aes.update(key[16:]))
        self._cached = lru_cache(maxsize=100_000)(self._map)

    def address(self, text: str) -> str:
        """Map an IPv4 or IPv6 address.

        Raises:
            ValueError: it is not an address.
        """
        return self._cached(text)

    def _map(self, text: str) -> str:
        address = ipaddress.ip_address(text)
        bits = address.max_prefixlen
        plain = int(address) << (128 - bits)
        blocks = bytearray()
        for length in range(bits):
            prefix = ((1 << length) - 1) << (128 - length)
            blocks += ((plain & prefix) | (self._padding & ~prefix & ((1 << 128) - 1))).to_bytes(16)
        encrypted = self._aes.update(bytes(blocks))
        pad = 0
        for length in range(bits):
            pad = pad << 1 | encrypted[length * 16] >> 7
        return str(type(address)(int(address) ^ pad))

    def text(self, text: str) -> str:
        """Map every address in a text."""
        return _CANDIDATE.sub(self._replace, text)

    def _replace(self, match: re.Match[str]) -> str:
        found = match[0]
        # Leave ports after addresses, such as fe80::1:443, and times such as 10:20:30 as they are.
        for end in range(len(found), max(len(found) - 7, 1), -1):
            rest = found[end:]
            if rest and not rest.startswith(":"):
                continue
            try:
                return self.address(found[:end]) + rest
            except ValueError:
                continue
        return found

    def document(self, value: Any) -> Any:
        """Map every address in a JSON value; keys stay as they are."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.document(each) for each in value]
        if isinstance(value, dict):
            return {name: self.document(each) for name, each in value.items()}
        return value
