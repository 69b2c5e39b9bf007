"""A verdict's machine names in the words of pages."""

from collections.abc import Mapping
from typing import Any

from tcpwin.limits import LIMIT_NAMES

OWNER_WORDS = {
    "client_application": "the client's application",
    "server_application": "the server's application",
    "client_host": "the client's host",
    "server_host": "the server's host",
    "application": "the application",
    "host": "the host",
    "network": "the network path",
    "nobody": "nobody",
}


def limit_words(verdict: Mapping[str, Any]) -> str:
    """What limited a connection, with the second limit where there is one."""
    named = [verdict["limit"], *([verdict["second_limit"]] if verdict["second_limit"] else [])]
    return " and ".join(LIMIT_NAMES[each] for each in named)


def problem_words(verdict: Mapping[str, Any]) -> str:
    """What lost the time of a connection with a problem."""
    return LIMIT_NAMES[verdict["also"] or verdict["limit"]]
