"""Sequence numbers modulo 2^32, reimplemented independently of the engine."""

MODULO = 1 << 32
# RFC 7323 §2.3: no window reaches further, so numbers beyond belong to no connection.
FURTHEST = 1 << 30


def step(start: int, end: int) -> int:
    """Return the bytes from one sequence number forward to another; negative if it is behind."""
    return (end - start + (MODULO >> 1)) % MODULO - (MODULO >> 1)


class Ranges:
    """A set of sequence ranges, small and slow."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []

    def add(self, left: int, right: int) -> None:
        apart = []
        for low, high in self.ranges:
            if step(high, left) > 0 or step(right, low) > 0:
                apart.append((low, high))
            else:
                left = low if step(low, left) > 0 else left
                right = high if step(right, high) > 0 else right
        self.ranges = [*apart, (left, right)]

    def forget_below(self, edge: int) -> None:
        self.ranges = [
            (edge if step(low, edge) > 0 else low, high) for low, high in self.ranges if step(edge, high) > 0
        ]

    def overlap(self, left: int, right: int) -> int:
        """Return how many bytes of the range are in the set."""
        total = 0
        for low, high in self.ranges:
            first = low if step(left, low) > 0 else left
            last = high if step(high, right) > 0 else right
            total += max(0, step(first, last))
        return total

    def total(self) -> int:
        return sum(step(low, high) for low, high in self.ranges)
