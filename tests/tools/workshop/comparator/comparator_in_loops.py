"""T10's search for plans of a product of matrices again, one plan at a time and in plain loops.

Written from its source (platformxlab/elk, t10_TensorExpression.py) and not from abele's: dimensions
are m, k, n; variables C, A, B; everything is a number. Slow: for small products on few tiles.
"""

from collections.abc import Iterator
from itertools import product
from math import ceil, gcd, prod

SYNC = 118
HAS = {"C": "mn", "A": "mk", "B": "kn"}
ROUND = {"C": "k", "A": "n", "B": "m"}
"""The dimension over whose parts copies of a variable lie."""

Split = dict[str, int]
Turns = dict[str, dict[str, int]]
"""For each dimension, how often each variable is cut along it once more."""


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def thresholds(sizes: Split, tiles: int) -> tuple[float, float]:
    points, longest = prod(sizes.values()), 3 * max(sizes.values()) / 220
    return (
        0.9 * min(points / (points + 2 * tiles), longest),
        0.9 * min(points / (points + tiles), longest),
    )


def splits(sizes: Split, tiles: int, *, strict: bool) -> Iterator[Split]:
    used, filled = thresholds(sizes, tiles)
    for counts in product(*(range(1, min(n, tiles) + 1) for n in sizes.values())):
        split = dict(zip(sizes, counts, strict=True))
        cores = prod(counts)
        if cores > tiles:
            continue
        padded = prod(sizes[d] / (ceil(sizes[d] / split[d]) * split[d]) for d in sizes)
        if not strict or (cores / tiles >= used and padded >= filled):
            yield split


def turned(sizes: Split, split: Split, tiles: int, *, strict: bool) -> Iterator[Turns]:
    """All temporal plans of a spatial one."""
    _, filled = thresholds(sizes, tiles)
    per_variable: list[list[tuple[int, int]]] = []
    for variable in HAS:
        copies = split[ROUND[variable]]
        found = product(divisors(copies), repeat=2)
        per_variable.append([f for f in found if copies % (f[0] * f[1]) == 0])
    for chosen in product(*per_variable):
        turns: Turns = {d: {} for d in sizes}
        for variable, factors in zip(HAS, chosen, strict=True):
            for dim, factor in zip(HAS[variable], factors, strict=True):
                turns[dim][variable] = factor
        ratios = []
        for dim, factors in turns.items():
            small, large = sorted(factors.values())
            cell = ceil(sizes[dim] / split[dim])
            if large % small or large > cell:
                break
            ratios.append(cell / (large * ceil(cell / large)))
        else:
            if not strict or (min(ratios) >= filled and prod(ratios) >= filled):
                yield turns


def padded_outputs(n: float) -> float:
    for grain in (2, 4, 8, 12, 16, 24):
        if n <= grain:
            return n if grain == 2 else grain
    return ceil(n / 48) * 48


def reduce_cycles(n: float, copies: int) -> float:
    total = padded_outputs(n) * copies
    if total <= 480:
        return min(total * 1.5 + 175, 481 * 0.25 + 175)
    return total * 0.25 + 175


def add_two_cycles(n: float) -> float:
    return min(n * 0.75 + 290, 16434 * 0.5 + 300) if n <= 16432 else n * 0.5 + 300


def multiply_cycles(m: int, k: int, n: int) -> int:
    blocks = ceil(k / 16) * ceil(n / 16)
    return 24 * ceil(m / 6) * blocks + 514 * blocks + 113 * ceil(n / 16) + 173


def comparators_multiply(m: int, k: int, n: int) -> int:
    if n > m:
        m, n = n, m
    if m <= 16:
        m, n = n, m
    return multiply_cycles(m, k, n)


def comparators_merge(outputs: int, copies: int) -> float:
    if copies == 1:
        return 0
    if copies == 2:
        return 2 * SYNC + 0.56 * (outputs // 2) + add_two_cycles(outputs / 2)
    return copies * SYNC + 0.56 * outputs + reduce_cycles(outputs / copies, copies)


def wider_multiply(m: int, k: int, n: int) -> int:
    return min(multiply_cycles(m, k, n), multiply_cycles(n, k, m))


def at_once(outputs: int, copies: int) -> float:
    adding = reduce_cycles(outputs / copies, copies)
    if copies == 2:
        adding = min(adding, add_two_cycles(outputs / 2))
    return SYNC + 0.56 * (outputs - outputs // copies) + adding


def wider_merge(outputs: int, copies: int) -> float:
    if copies == 1:
        return 0
    ways = [comparators_merge(outputs, copies), at_once(outputs, copies)]
    for group in divisors(copies)[1:-1]:
        ways.append(at_once(outputs, group) + at_once(ceil(outputs / group), copies // group))
    return min(ways)


def priced(
    sizes: Split,
    split: Split,
    turns: Turns,
    multiply=comparators_multiply,
    merge=comparators_merge,
) -> tuple[float, int]:
    """Cycles and bytes of one plan."""
    cell = {d: ceil(sizes[d] / split[d]) for d in sizes}
    piece = {v: prod(ceil(cell[d] / turns[d][v]) for d in dims) for v, dims in HAS.items()}
    count = {d: max(turns[d].values()) for d in sizes}
    step = {d: ceil(cell[d] / count[d]) for d in sizes}
    cycles = prod(count.values()) * multiply(step["m"], step["k"], step["n"])

    rounds: list[tuple[int, int, list[str]]] = []
    for factors in turns.values():
        left = {v: f for v, f in factors.items() if f > 1}
        while left:
            common = gcd(*left.values())
            rounds.append((sum(piece[v] for v in left), common - 1, list(left)))
            left = {v: f // common for v, f in left.items() if f > common}
    times = 1
    for elements, more, variables in sorted(rounds, key=lambda r: -r[0]):
        cycles += times * more * (elements * 0.56 + 2 * SYNC * len(variables))
        times *= more + 1

    copies = split["k"] // (turns["m"]["C"] * turns["n"]["C"])
    cycles += 0.56 * piece["C"] + 6 * SYNC + merge(step["m"] * step["n"], copies)
    held = sum(
        piece[v] * (2 if any(turns[d][v] > 1 for d in dims) else 1) for v, dims in HAS.items()
    )
    return round(cycles, 3), 2 * held


def front(sizes: Split, tiles: int, *, strict: bool, **how) -> list[tuple[float, int]]:
    """Cycles and bytes of the plans that no other beats, of the least bytes first."""
    found = {
        priced(sizes, split, turns, **how)
        for split in splits(sizes, tiles, strict=strict)
        for turns in turned(sizes, split, tiles, strict=strict)
    }
    best: list[tuple[float, int]] = []
    for cycles, held in sorted(found, key=lambda f: (f[1], f[0])):
        if not best or cycles < best[-1][0]:
            best.append((cycles, held))
    return best
