"""The verdict in answers of the API: generated from the engine's tables by `just model`."""

from pydantic import BaseModel, ConfigDict

from tcpwin.model import ConfidenceName, DirectionName, EndName, LimitName, OwnerName


class Verdict(BaseModel):
    """What limited a connection, what that cost, and who can change it."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)

    limit: LimitName
    """What limited it: the limit with most of the connection's life."""
    second_limit: LimitName | None
    """Another limit of like size; null where there is none."""
    share: float
    """The limit's share of the connection's duration."""
    cost_ns: int
    """By how much sooner it would have ended with the limit alone lifted."""
    cost_low_ns: int
    """Lower bound of the cost; 0 where the limit is only possible."""
    cost_high_ns: int
    """Upper bound of the cost."""
    confidence: ConfidenceName
    """certain: read off the packets or the kernel's count; likely: judged; possible: one of several readings."""
    owner: OwnerName
    """Who can change it; nobody where nothing is wrong."""
    side: EndName | None
    """The end at which to change something; null where it is no end."""
    direction: DirectionName | None
    """Whose data was limited; null without data."""
    fix: str | None
    """What to change; null where there is nothing to change."""
    text: str
    """The answer in a line."""
    lost_ns: int
    """Time lost to limits that somebody can mend, whatever the largest limit is."""
    also: LimitName | None
    """The largest limit of that time, where limit is none that can be mended."""
    is_problem: bool
    """Whether so much was lost that somebody should look."""
    named_ns: int = 0
    """Cost of the limit that fix is about."""
