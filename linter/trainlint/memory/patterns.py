"""Layers that repeat, alone or in a pattern."""

from __future__ import annotations

from functools import lru_cache

LayerKey = tuple[int, int, bool]
"""What makes layers equal: body, what it sees, whether it is checkpointed."""

LONGEST_PERIOD = 8
"""Layers after which a pattern of layer kinds may repeat (five sliding, one full)."""


@lru_cache(maxsize=256)
def stretches(keys: tuple[LayerKey, ...]) -> tuple[tuple[int, int, int], ...]:
    """Layers cut where a repeating pattern begins and ends, as (first, one past the last, period).

    A pattern counts from three repetitions on; everything else is a stretch of one layer.
    """
    out: list[tuple[int, int, int]] = []
    start = 0
    while start < len(keys):
        best = (start + 1, 1)
        for period in range(1, LONGEST_PERIOD + 1):
            end = start + period
            while end < len(keys) and keys[end] == keys[end - period]:
                end += 1
            end -= (end - start) % period
            if end - start >= 3 * period and end > best[0]:
                best = (end, period)
        out.append((start, *best))
        start = best[0]
    return tuple(out)
