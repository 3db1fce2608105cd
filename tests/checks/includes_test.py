"""This tree keeps the rules of includes.py, and the rules fail where they should: each is broken once in a tree of
two-line files."""

import tempfile
import unittest
from pathlib import Path

import includes

ROOT = Path(__file__).resolve().parents[2]

# A tree without problems: each file and what it includes.
CLEAN = {
    "sim/base/units.hpp": "<cstdint>",
    "sim/kernel/queue.cpp": '"sim/base/units.hpp"',
    "sim/kernel/routes.cpp": "<boost/graph/adjacency_list.hpp>",
    "sim/tables/parquet.cpp": "<parquet/api/reader.h>",
    "strategies/data/batch.hpp": '"sim/base/units.hpp"',
    "strategies/data/packing/isf.hpp": '"strategies/data/batch.hpp"',
    "results/cli/main.cpp": "<boost/program_options.hpp>",
    "tests/sim/base/units_test.cpp": '"sim/base/units.hpp"',
}


def problems_with(files):
    """What is found after adding files to the clean tree: their include goes into the second line."""
    with tempfile.TemporaryDirectory() as folder:
        for name, header in {**CLEAN, **files}.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"// A fake.\n#include {header}\n")
        return includes.problems(Path(folder))


class Includes(unittest.TestCase):
    maxDiff = None

    def test_this_tree(self):
        self.assertGreater(len(includes.sources(ROOT)), 200)  # it did find the sources
        self.assertEqual("", "\n".join(includes.problems(ROOT)))

    def test_clean(self):
        self.assertEqual([], problems_with({}))

    def test_upward(self):
        self.assertEqual(
            ["sim/base/text.hpp:2: includes strategies/data/batch.hpp: sim may not know strategies"],
            problems_with({"sim/base/text.hpp": '"strategies/data/batch.hpp"'}))

    def test_cycle_of_a_room_and_the_room_inside_it(self):
        self.assertEqual(
            ["strategies/data/pack.cpp:2: includes strategies/data/packing/isf.hpp: a cycle of strategies/data, "
             "strategies/data/packing, closed by strategies/data/packing/isf.hpp:2: includes "
             "strategies/data/batch.hpp"],
            problems_with({"strategies/data/pack.cpp": '"strategies/data/packing/isf.hpp"'}))

    def test_cycle_of_three_rooms(self):
        found = problems_with({"sim/base/a.hpp": '"sim/world/b.hpp"',
                                     "sim/world/b.hpp": '"sim/kernel/c.hpp"',
                                     "sim/kernel/c.hpp": '"sim/base/units.hpp"'})
        self.assertEqual(1, len(found), found)
        for place in ["sim/base/a.hpp:2", "sim/world/b.hpp:2", "sim/kernel/"]:
            self.assertIn(place, found[0])

    def test_include_beside_the_file(self):
        self.assertEqual([], problems_with({"sim/base/text.cpp": '"units.hpp"'}))

    def test_source_outside_a_room(self):
        self.assertEqual(["results/measure.cpp:1: sources live in subfolders of results/"],
                         problems_with({"results/measure.cpp": "<vector>"}))

    def test_test_of_no_room(self):
        self.assertEqual(["tests/sim/attic/a_test.cpp:1: there is no sim/attic to test"],
                         problems_with({"tests/sim/attic/a_test.cpp": "<vector>"}))

    def test_owned_header(self):
        self.assertEqual(
            ["results/cli/plot.cpp:2: includes arrow/api.h: only sim/tables may"],
            problems_with({"results/cli/plot.cpp": "<arrow/api.h>"}))

    def test_program_options_outside_the_command_line(self):
        self.assertEqual(
            ["sim/base/text.cpp:2: includes boost/program_options.hpp: only results/cli, "
             "cost_models/calibrate, cost_models/fit may"],
            problems_with({"sim/base/text.cpp": "<boost/program_options.hpp>"}))

    def test_a_second_file_of_boost_graph(self):
        found = problems_with({"sim/kernel/a.cpp": "<boost/graph/graph_traits.hpp>"})
        self.assertEqual(2, len(found), found)
        self.assertEqual("sim/kernel/a.cpp:2: includes boost/graph/graph_traits.hpp: "
                         "2 files include boost/graph/, 1 may", found[0])


if __name__ == "__main__":
    unittest.main()
