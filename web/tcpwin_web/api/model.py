"""The verdict in responses of the API: generated from the engine's tables by `just model`."""

from pydantic import BaseModel, ConfigDict

from tcpwin.model import ConfidenceName, DirectionName, EndName, LimitName, OwnerName


class Verdict(BaseModel):
    """Verdict on a connection: its limit, the cost, and who can fix it."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)

    limit: LimitName
    """The limit that took the largest share of the connection's duration."""
    second_limit: LimitName | None
    """Another limit of similar size, or null."""
    share: float
    """The limit's share of the connection's duration."""
    cost_ns: int
    """Time that the connection would have saved without this limit."""
    cost_low_ns: int
    """Lower bound of the cost; 0 if the limit is only possible."""
    cost_high_ns: int
    """Upper bound of the cost."""
    confidence: ConfidenceName
    """certain: read from the packets or the kernel's counter; likely: judged; possible: one of several readings."""
    owner: OwnerName
    """Who can fix it; nobody if nothing is wrong."""
    side: EndName | None
    """The end at which to apply the fix, or null."""
    direction: DirectionName | None
    """Direction of the limited data; null without data."""
    fix: str | None
    """The recommended change, or null."""
    text: str
    """The answer in one line."""
    lost_ns: int
    """Time lost to limits that can be fixed, whichever limit is the largest."""
    named_ns: int
    """Cost of the limit that `fix` addresses: `also`, or else `limit`."""
    also: LimitName | None
    """The largest fixable limit if `limit` cannot be fixed."""
    is_problem: bool
    """Whether the lost time is large enough to need attention."""
