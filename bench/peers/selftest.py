#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what decides whether a row is right, without a GPU: masks, statistics, floors, the row
writer and, where there is a torch, the float64 check on the CPU. Standard library else.

    python3 bench/peers/selftest.py

Prints "N passed, N failed, N skipped"; exit status 1 where one failed."""

import json
import math
import os
import random
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True

import points  # noqa: E402
import results  # noqa: E402
import trees  # noqa: E402

try:
    import torch

    import truth
except ImportError:
    torch = None


class Masks(unittest.TestCase):
    """Trees, their visibility and their words."""

    def test_known_tree(self):
        seen = trees.visible_nodes([-1, 0, 0, 1])
        self.assertEqual(seen, [[True, False, False, False], [True, True, False, False],
                                [True, False, True, False], [True, True, False, True]])
        self.assertEqual(trees.packed_words(seen), [[1], [3], [5], [11]])

    def test_random_trees(self):
        source = random.Random(1)
        for count in (1, 2, 31, 32, 33, 64, 65):
            parents = trees.random_parents(count, source)
            self.assertEqual(parents[0], -1)
            self.assertTrue(all(0 <= parents[i] < i for i in range(1, count)))
            seen = trees.visible_nodes(parents)
            for node in range(count):
                path, at = set(), node
                while at >= 0:
                    path.add(at)
                    at = parents[at]
                self.assertEqual({j for j in range(count) if seen[node][j]}, path)
            for row, line in zip(seen, trees.packed_words(seen)):
                self.assertEqual(len(line), (count + 31) // 32)
                bits = [line[j // 32] % (1 << 32) >> j % 32 & 1 for j in range(len(line) * 32)]
                self.assertEqual(bits[:count], [int(sees) for sees in row])
                self.assertEqual(sum(bits[count:]), 0)
                self.assertTrue(all(-(1 << 31) <= word < 1 << 31 for word in line))

    def test_chain_is_causal(self):
        self.assertEqual(trees.visible_nodes([-1, 0, 1, 2]), trees.causal_nodes(4))


class Numbers(unittest.TestCase):
    """Points, quartiles and floors."""

    def test_summary(self):
        self.assertEqual(points.summarize([4.0, 1.0, 3.0, 2.0, 5.0]), (3.0, 2.0, 4.0, 5))
        self.assertEqual(points.summarize([1.0, 2.0]), (1.5, 1.25, 1.75, 2))
        self.assertEqual(points.summarize([7.0]), (7.0, 7.0, 7.0, 1))

    def test_points(self):
        self.assertEqual(points.parse_point("1,8,16,200000"), (1, 8, 16, 200000))
        for text in ("", "1,2,3", "1,2,3,x", "0,1,1,1", "1,1,1,-5", "1,1,1,1,1"):
            self.assertRaises(points.InputError, points.parse_point, text)

    def test_limits(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "limits.txt")
            for text, wanted in (("# c\n1 8 1 4096 5 4 # d\n\n", [(1, 8, 1, 4096)]),
                                 ("1 8 1 4096\n", None), ("a b c d e f\n", None), ("", None)):
                with open(path, "w", encoding="ascii") as file:
                    file.write(text)
                if wanted is None:
                    self.assertRaises(points.InputError, points.read_limits, path)
                else:
                    self.assertEqual(points.read_limits(path), wanted)
            self.assertRaises(points.InputError, points.read_limits, path + "x")

    def test_floor(self):
        ceilings = {"mma_tflops": 500.0, "gather": [
            {"rows": 1000, "random_gbps": 1000.0, "contiguous_gbps": 2000.0},
            {"rows": 100000, "random_gbps": 3000.0, "contiguous_gbps": 4000.0}]}
        one = points.Point(1, 1, 1, 9999)  # 10,000 rows: half way in the logarithm
        self.assertAlmostEqual(points.floor_us(one, "random", ceilings), 10000 * 1152 / 2000e3)
        self.assertAlmostEqual(points.floor_us(one, "contiguous", ceilings), 10000 * 1152 / 3000e3)
        many = points.Point(1, 128, 8, 9992)
        self.assertAlmostEqual(points.floor_us(many, "random", ceilings),
                               2.0 * 1024 * 10000 * 1088 / 500e6)


class Rows(unittest.TestCase):
    """The result file."""

    row = {"op": "accuracy", "implementation": "kdtr_flash", "B": 1, "H": 8, "Q": 8, "N": 5,
           "mask": "tree", "seed": 1, "relative_error": 1.23456e-3}

    def test_row(self):
        self.assertEqual(results.row_text(self.row),
                         '{"op": "accuracy", "implementation": "kdtr_flash", "B": 1, "H": 8, '
                         '"Q": 8, "N": 5, "mask": "tree", "seed": 1, '
                         '"relative_error": 1.234560e-03}')

    def test_bad_rows(self):
        for change in ({"relative_error": math.nan}, {"relative_error": math.inf}):
            self.assertRaises(ValueError, results.row_text, {**self.row, **change})
        short = {name: value for name, value in self.row.items() if name != "seed"}
        self.assertRaises(ValueError, results.row_text, short)

    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "r.json")
            results.write_file(path, {"gpu": 'a "card"'}, None, [self.row, self.row])
            with open(path, encoding="ascii") as file:
                text = file.read()
            whole = json.loads(text)
            self.assertEqual(whole["schema"], 1)
            self.assertEqual(whole["environment"]["gpu"], 'a "card"')
            self.assertNotIn("ceilings", whole)
            self.assertEqual(len(whole["rows"]), 2)
            self.assertEqual(sum('"op"' in line for line in text.splitlines()), 2)
            bad = {**self.row, "relative_error": math.nan}
            self.assertRaises(ValueError, results.write_file, path, {}, None, [bad])
            self.assertEqual(os.listdir(folder), ["r.json"])
            with open(path, encoding="ascii") as file:
                self.assertEqual(file.read(), text)


def small_problem(prefix):
    """Two requests of three nodes and two heads, as truth.Truth takes them, on the CPU."""
    generator = torch.Generator().manual_seed(prefix)
    point = points.Point(2, 2, 3, prefix)
    problem = types.SimpleNamespace(point=point)
    problem.q = torch.randn(6, 2, 576, generator=generator).bfloat16()
    problem.pool = torch.randn(2 * 2 * (prefix + 3), 576, generator=generator).bfloat16()
    order = torch.randperm(len(problem.pool), generator=generator)
    problem.slots = order[:2 * prefix].int()
    problem.tree_slots = order[2 * prefix:2 * prefix + 6].int()
    seen = [trees.visible_nodes([-1, 0, 0]), trees.visible_nodes([-1, 0, 1])]
    problem.visible = torch.tensor(seen)
    return problem


def plain_row(problem, request, node, head, scale):
    """One output row and its log-sum-exp, element by element on Python numbers."""
    point = problem.point
    slots = problem.slots[request * point.prefix:(request + 1) * point.prefix].tolist()
    slots += [int(problem.tree_slots[request * 3 + j]) for j in range(3)
              if problem.visible[request][node][j]]
    query = problem.q[request * 3 + node][head].tolist()
    keys = [problem.pool[slot].tolist() for slot in slots]
    scores = [scale * math.fsum(a * b for a, b in zip(query, key)) for key in keys]
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    total = math.fsum(weights)
    row = [math.fsum(w * key[d] for w, key in zip(weights, keys)) / total for d in range(512)]
    return row, top + math.log(total)


@unittest.skipIf(torch is None, "no torch")
class Check(unittest.TestCase):
    """The float64 truth and what it refuses."""

    def test_truth(self):
        for elements in (1 << 26, 6 * 2):  # one step, and steps of two keys
            truth._ELEMENTS = elements
            problem = small_problem(7)
            o, lse = truth.Truth(problem, 0.125).of(problem.visible)
            for request in range(2):
                for node in range(3):
                    for head in range(2):
                        row, total = plain_row(problem, request, node, head, 0.125)
                        found = o[request * 3 + node][head]
                        worst = (found - torch.tensor(row, dtype=torch.float64)).abs().max()
                        self.assertLess(float(worst), 1e-13)
                        self.assertAlmostEqual(float(lse[request * 3 + node][head]), total, 12)
        truth._ELEMENTS = 1 << 26

    def test_rounding_passes_and_faults_do_not(self):
        problem = small_problem(40)
        one = truth.Truth(problem, 0.125)
        o, _ = one.of(problem.visible)
        relative, largest = truth.errors(o.bfloat16(), o)
        self.assertTrue(0.0 < relative < truth.RELATIVE_LIMIT)
        self.assertTrue(0.0 < largest < 0.1)
        unwritten = o.bfloat16()
        unwritten[5, 1, 511] = math.nan
        chain = torch.tensor([trees.causal_nodes(3)] * 2)
        missing = one.of(torch.zeros_like(problem.visible))[0]
        for wrong in (unwritten, one.of(chain)[0].bfloat16(), missing.bfloat16(),
                      o.roll(1, 0).bfloat16(), (1.01 * o).bfloat16(), torch.zeros_like(o)):
            self.assertRaises(truth.WrongOutput, truth.errors, wrong, o)


def main():
    """The exit status."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    outcome = unittest.TextTestRunner(verbosity=1).run(suite)
    failed = len(outcome.failures) + len(outcome.errors)
    skipped = len(outcome.skipped)
    print(f"{outcome.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
