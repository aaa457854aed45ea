# SPDX-License-Identifier: Apache-2.0
"""Random draft trees and their masks, on plain lists. Standard library only."""


def random_parents(count, random):
    """Parents of `count` nodes: -1 for the root, for each other node any earlier one.

    `random` has a method randrange."""
    return [-1] + [random.randrange(i) for i in range(1, count)]


def visible_nodes(parents):
    """visible[i][j] is True where node i sees node j: ancestors and itself."""
    rows = []
    for node, parent in enumerate(parents):
        row = list(rows[parent]) if parent >= 0 else [False] * len(parents)
        row[node] = True
        rows.append(row)
    return rows


def causal_nodes(count):
    """visible[i][j] of a chain: nodes 0 to i."""
    return [[j <= i for j in range(count)] for i in range(count)]


def packed_words(visible):
    """Rows of 32-bit words, bit j % 32 of word j / 32 for node j, as signed 32-bit integers (which
    is what torch has)."""
    words = (len(visible) + 31) // 32
    packed = []
    for row in visible:
        line = [0] * words
        for j, sees in enumerate(row):
            if sees:
                line[j // 32] |= 1 << (j % 32)
        packed.append([word - (1 << 32) if word >> 31 else word for word in line])
    return packed
