"""Crypto-PAn against the test vectors of its authors' program (sample_trace_raw.dat, sample_trace_sanitized.dat)."""

import ipaddress

import pytest

from tcpwin_web.anonymise.cryptopan import CryptoPan

KEY = bytes(
    [
        *(21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16),
        *(216, 152, 143, 131, 121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2),
    ]
)
VECTORS = """
128.11.68.132 135.242.180.132
129.118.74.4 134.136.186.123
130.132.252.244 133.68.164.234
141.223.7.43 141.167.8.160
141.233.145.108 141.129.237.235
152.163.225.39 151.140.114.167
156.29.3.236 147.225.12.42
165.247.96.84 162.9.99.234
166.107.77.190 160.132.178.185
192.102.249.13 252.138.62.131
192.215.32.125 252.43.47.189
192.233.80.103 252.25.108.8
192.41.57.43 252.222.221.184
193.150.244.223 253.169.52.216
195.205.63.100 255.186.223.5
198.200.171.101 249.199.68.213
198.26.132.101 249.36.123.202
198.36.213.5 249.7.21.132
198.51.77.238 249.18.186.254
199.217.79.101 248.38.184.213
202.49.198.20 245.206.7.234
203.12.160.252 244.248.163.4
204.184.162.189 243.192.77.90
204.202.136.230 243.178.4.198
"""


def test_the_published_vectors() -> None:
    vectors = dict(line.split() for line in VECTORS.split("\n")[1:-1])
    assert {plain: CryptoPan(KEY).address(plain) for plain in vectors} == vectors


@pytest.mark.parametrize(
    "pair", [("10.1.2.3", "10.1.2.77"), ("2001:db8::1", "2001:db8:0:1::5"), ("1.2.3.4", "200.2.3.4")]
)
def test_as_many_leading_bits_are_shared_as_before(pair: tuple[str, str]) -> None:
    pan = CryptoPan(bytes(range(32)))

    def shared(addresses: tuple[str, str]) -> int:
        first, second = (ipaddress.ip_address(each) for each in addresses)
        return first.max_prefixlen - (int(first) ^ int(second)).bit_length()

    assert shared((pan.address(pair[0]), pan.address(pair[1]))) == shared(pair)


def test_addresses_in_texts_are_mapped_and_nothing_else() -> None:
    pan = CryptoPan(KEY)
    assert pan.text("128.11.68.132:80 closed it at 10:20:30") == "135.242.180.132:80 closed it at 10:20:30"
    six = pan.address("2001:db8::1")
    assert pan.text("from [2001:db8::1]:443 in 1.5 s, 99.9%") == f"from [{six}]:443 in 1.5 s, 99.9%"
    assert pan.text("Linux 6.1.192, TW201: b → a") == "Linux 6.1.192, TW201: b → a"
    assert pan.document({"a": ["128.11.68.132", 1, None]}) == {"a": ["135.242.180.132", 1, None]}


def test_a_key_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        CryptoPan(b"short")
