"""Statistical comparison of two lists of results, where lower is better."""

import math
import random
import statistics


def bootstrap_interval(values, draws=10_000):
    """The 95 % interval of the median."""
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(draws))
    return medians[draws * 25 // 1000], medians[draws * 975 // 1000]


def probability_of_larger(ours, theirs):
    """p-value of the one-sided Mann-Whitney test that ours are larger (normal approximation with ties)."""
    wins = sum((a > b) + 0.5 * (a == b) for a in ours for b in theirs)
    n, m = len(ours), len(theirs)
    both = ours + theirs
    ties = sum(count**3 - count for count in map(both.count, set(both)))
    deviation = math.sqrt(n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1))))
    return 1 - statistics.NormalDist().cdf((wins - n * m / 2 - 0.5) / deviation) if deviation else 0.5
