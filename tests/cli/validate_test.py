"""mllmsim validate through the front door: validate_test.py PATH_OF_MLLMSIM"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import duckdb

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())

# Eight stages, one micro-batch each way: 24 micro-batches of 10 + 20 ms and 7 of fill are 31 x 30 ms.
FAMILY = """
source = "by hand"
target = { median = 0.10 }
[parallelism]
pipeline_model_parallel_size = 8
global_batch_size = 24
[given_times]
forward = "10 ms"
backward = "20 ms"
[[points]]
id = "exact"
published = { iteration_s = 0.93, bubble_share = 0.2258064516 }
[[points]]
id = "half as long"
set.given_times = { forward = "5 ms", backward = "10 ms" }
published.iteration_s = "500 ms"
speedup_over = "exact"
"""

# Passes that start late: a knob of the ablation.
ABLATED = """
source = "a pipeline"
model = "llama-3-8b"
software = { base = "megatron-2022", host_time_per_pass = "1 s" }
cluster = "a100-80g-8x200"
parallelism = { tensor_model_parallel_size = 2, pipeline_model_parallel_size = 4, global_batch_size = 8 }
data = { samples = 1000, tokens_per_sample = 2048 }
[[points]]
id = "late"
published.iteration_s = "1 ms"
"""

CSV_FAMILY = """
source = "from a table"
[parallelism]
pipeline_model_parallel_size = 8
global_batch_size = 24
[given_times]
forward = "10 ms"
backward = "20 ms"
[points]
csv = "runs.csv"
id = "{stages} stages"
where = { kind = "real" }
[points.set]
parallelism.pipeline_model_parallel_size = "stages"
parallelism.global_batch_size = { column = "stages", times = 3 }
[points.published]
iteration_s = { column = "time (ms)", times = 1e-3 }
"""
# 3 p micro-batches and p - 1 of fill, 30 ms each.
CSV = """# a comment, with a comma
# stages,kind,stages,time (ms)
x,real,8,930
x,made up,4,1
x,real,4,450
"""
# The second row is twice as slow, the third cannot be said. Eight stages unless an argument says otherwise.
ARGUMENTS_FAMILY = CSV_FAMILY[:CSV_FAMILY.index("id =")] + """json = "args"
id = "{time (ms)} ms"
[points.set]
parallelism.pipeline_model_parallel_size = { column = "--stages", missing = 8 }
[points.published]
iteration_s = { column = "time (ms)", times = 1e-3 }
[[points.when]]
where = { "--slow" = "true" }
set = { given_times.forward = "20 ms", given_times.backward = "40 ms" }
[[points.leave_out]]
where = { "--kind" = ["moe", "t5"] }
because = "no such kind"
"""
ARGUMENTS_CSV = """time (ms),args
930,"{""--stages"": 8}"
1860,"{""--slow"": true}"
1,"{""--kind"": ""moe""}"
"""


class Validate(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def validate(self, *arguments, code=0):
        done = subprocess.run([MLLMSIM, "validate", *map(str, arguments)], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def test_predicted_published_error(self):
        report = json.loads(self.validate(self.write("f.toml", FAMILY), "--json").stdout)
        bubble, exact, half = report["rows"]
        self.assertEqual([bubble["metric"], exact["metric"], exact["id"], exact["source"]],
                         ["bubble_share", "iteration_s", "exact", "by hand"])
        self.assertAlmostEqual(exact["predicted"], 0.93)
        self.assertAlmostEqual(exact["relative_error"], 0, places=6)
        self.assertAlmostEqual(half["relative_error"], 0.465 / 0.5 - 1)
        self.assertAlmostEqual(report["summary"]["all"]["median"], 0, places=6)
        self.assertAlmostEqual(report["summary"]["all"]["bias"], -0.07 / 3, places=6)
        speedup, = report["speedups"]  # twice as fast; published 0.93 / 0.5
        self.assertAlmostEqual(speedup["predicted"], 2)
        self.assertAlmostEqual(speedup["relative_error"], 2 / 1.86 - 1)

    def test_parquet_has_the_same_rows(self):
        self.validate(self.write("f.toml", FAMILY), "--out", "v.parquet")
        rows = duckdb.sql(f"select id, source, metric, published, predicted / published - 1 - relative_error as gap "
                          f"from '{self.dir}/v.parquet'").fetchall()
        self.assertEqual([r[:3] for r in rows], [("exact", "by hand", "bubble_share"), ("exact", "by hand", "iteration_s"),
                                                 ("half as long", "by hand", "iteration_s")])
        self.assertTrue(all(abs(r[4]) < 1e-12 for r in rows))

    def test_text_and_page_tell_hits_and_misses(self):
        done = self.validate(self.write("f.toml", FAMILY), "--page", "page.md")
        self.assertIn("half as long", done.stdout)
        self.assertIn("-7.0 %", done.stdout)
        page = (self.dir / "page.md").read_text()
        self.assertIn("| half as long | iteration_s | 0.465 | 0.5 | -7.0 % |", page)
        self.assertIn("## Targets missed\n\nNone.", page)
        self.write("f.toml", FAMILY.replace("median = 0.10", "largest = 0.05"))
        self.validate("f.toml", "--page", "page.md")
        self.assertIn("- by hand: largest 7.0 % (5 %)", (self.dir / "page.md").read_text())

    def test_ablation_shows_what_fitted_constants_contribute(self):
        family = self.write("f.toml", ABLATED)
        report = json.loads(self.validate(family, "--json", "--ablate").stdout)["ablation"]
        knobs = [k["name"] for k in report["knobs"]]
        self.assertIn("software.host_time_per_pass", knobs)
        self.assertTrue(all(k["chosen_with"] and k["neutral"] for k in report["knobs"]))
        source, everything = report["sources"]
        self.assertEqual([source["source"], everything["source"]], ["a pipeline", "all"])
        self.assertEqual(len(source["each_neutral"]), len(knobs))
        slow = source["all_evidence"]["median"]  # predicted far too slow of a figure of 1 ms: 1 s late each pass
        self.assertLess(source["each_neutral"][knobs.index("software.host_time_per_pass")]["median"], slow / 2)
        self.assertEqual(source["each_neutral"][knobs.index("calibration gemm.sustained")]["median"], slow)
        text = self.validate(family, "--ablate", "--page", "page.md").stdout
        self.assertIn("chosen with", text)
        self.assertIn("## What rests on these runs", (self.dir / "page.md").read_text())
        self.assertEqual(json.loads(self.validate(family, "--json").stdout)["ablation"]["sources"], [])

    def test_threads_do_not_matter(self):
        family = self.write("f.toml", FAMILY)
        one = self.validate(family, "--json", "--threads", 1, "--out", "1.parquet").stdout
        two = self.validate(family, "--json", "--threads", 2, "--out", "2.parquet").stdout
        self.assertEqual(one, two)
        self.assertEqual((self.dir / "1.parquet").read_bytes(), (self.dir / "2.parquet").read_bytes())

    def test_points_from_a_csv_file(self):
        family = self.write("f.toml", CSV_FAMILY)
        table = self.write("elsewhere/runs.csv", CSV)
        for arguments in ([f"points.csv={table}"], ["--csv-dir", table.parent], ["--csv-dir", self.dir]):
            report = json.loads(self.validate(family, *arguments, "--json").stdout)
            self.assertEqual([r["id"] for r in report["rows"]], ["8 stages", "4 stages"])
            self.assertTrue(all(abs(r["relative_error"]) < 1e-6 for r in report["rows"]))

    def test_a_csv_file_in_two_folders_is_asked_about(self):
        family = self.write("f.toml", CSV_FAMILY)
        for folder in ("published", "published/modern"):
            self.write(f"{folder}/runs.csv", CSV)
        self.validate(family, "--csv-dir", "published")  # the one in the folder itself
        error = self.validate(family, "--csv-dir", self.dir, code=2).stderr
        self.assertRegex(error, r"points.csv: found \S+/published/modern/runs.csv and \S+/published/runs.csv; say which with points.csv=PATH")
        error = self.validate(family, "--csv-dir", "nowhere", code=2).stderr
        self.assertIn("--csv-dir: there is no directory nowhere", error)

    def test_rows_by_their_arguments(self):
        """Arguments in a JSON column are columns of their own; some rows are changed, some left out with a reason."""
        family = self.write("f.toml", ARGUMENTS_FAMILY)
        self.write("runs.csv", ARGUMENTS_CSV)
        report = json.loads(self.validate(family, "--json").stdout)
        self.assertEqual([r["id"] for r in report["rows"]], ["930 ms", "1860 ms"])
        self.assertTrue(all(abs(r["relative_error"]) < 1e-6 for r in report["rows"]), report["rows"])
        self.assertEqual(report["skipped"], [{"source": "from a table", "reason": "no such kind", "rows": 1}])
        self.assertIn("from a table: 1 rows left out: no such kind", self.validate(family).stdout)

    def test_rows_that_a_map_lacks_are_left_out(self):
        """A cell that is in no map leaves its row out, with the reason; "*" maps all others; "8.0" is a whole number of stages."""
        family = CSV_FAMILY.replace('= "stages"', '= { column = "stages", times = 1 }', 1).replace(
            "[points.published]", 'granularity = { column = "kind", map = { real = "stage" } }\n[points.published]').replace(
            'where = { kind = "real" }', "")
        self.write("f.toml", family)
        self.write("runs.csv", CSV.replace("x,real,8", "x,real,8.0"))
        done = self.validate("f.toml")
        self.assertIn('from a table: 1 rows left out: kind: expected "real", found "made up"', done.stdout)
        self.assertIn("8.0 stages", done.stdout)
        self.write("f.toml", family.replace('real = "stage"', '"*" = "stage"'))
        self.assertNotIn("left out", self.validate("f.toml").stdout)
        self.write("f.toml", family.replace("real = ", "unreal = "))
        self.assertIn('runs.csv:3:3: kind: expected "unreal", found "real"', self.validate("f.toml", code=2).stderr)

    def test_rows_that_are_no_run_are_left_out(self):
        """Of three rows one cannot be divided over its stages: it is left out, by file, line and key. If all are like that, it is an error."""
        family = self.write("f.toml", CSV_FAMILY.replace('{ column = "stages", times = 3 }', '"kind"').replace('where = { kind = "real" }', ""))
        self.write("runs.csv", CSV.replace("real", "24").replace("made up", "0"))
        done = self.validate(family)
        self.assertRegex(done.stdout, r"from a table: 1 rows left out: .*runs.csv:4:\d+: parallelism.global_batch_size: expected")
        self.assertIn("8 stages", done.stdout)
        self.write("runs.csv", CSV.replace("real", "0").replace("made up", "0"))
        self.assertIn("runs.csv:3:", self.validate(family, code=2).stderr)

    def test_wrong_rules_are_named(self):
        family = self.write("f.toml", CSV_FAMILY + "[[points.when]]\nwhere = { pp = 4 }\n[[points.leave_out]]\nbecause = 'x'\n")
        self.write("runs.csv", CSV)
        error = self.validate(family, code=2).stderr
        for text in ["points.when.set: missing", "points.leave_out.where: missing"]:
            self.assertIn(text, error)

    def test_a_family_without_its_csv_file_is_skipped(self):
        self.write("dir/a.toml", FAMILY)
        self.write("dir/b.toml", CSV_FAMILY)
        done = self.validate("dir")
        self.assertIn("from a table: skipped: runs.csv is not there", done.stderr)
        self.assertIn("half as long", done.stdout)

    def test_wrong_cells_are_named_by_line_and_column(self):
        family = self.write("f.toml", CSV_FAMILY)
        self.write("runs.csv", CSV.replace("x,real,4,450", "x,real,4,fast\nx,real,four,3\nx,real"))
        done = self.validate(family, code=2)
        self.assertIn("runs.csv:7:1: expected 4 cells, found 2", done.stderr)
        self.write("runs.csv", CSV.replace("x,real,4,450", "x,real,4,fast\nx,real,four,3"))
        done = self.validate(family, code=2)
        self.assertIn('runs.csv:5:10: time (ms): expected a number, found "fast"', done.stderr)
        self.assertIn('runs.csv:6:8: stages: expected a number, found "four"', done.stderr)
        self.write("runs.csv", "stagess,kind,time (ms)\n")
        self.assertIn('runs.csv:1:1: stages: no such column; did you mean "stagess"?',
                      self.validate(family, code=2).stderr)

    def test_mistakes_in_a_family_are_all_named(self):
        text = FAMILY.replace("iteration_s = 0.93", "iteration_z = 0.93").replace('"exact"\n"""', "") \
            .replace('speedup_over = "exact"', 'speedup_over = "exat"')
        done = self.validate(self.write("f.toml", text), code=2)
        self.assertIn('f.toml:17:1: points.speedup_over: no other point has the id "exat"; did you mean "exact"?'
                      .split(": ", 1)[1], done.stderr)
        text = FAMILY.replace("iteration_s = 0.93", "iteration_z = 0.93").replace("set.given_times", "set.given_time")
        done = self.validate(self.write("f.toml", text), code=2)
        self.assertIn('iteration_z: no such column of numbers; did you mean "iteration_s"?', done.stderr)
        self.assertIn("given_time: unknown key", done.stderr)

    def test_shipped_families_by_name(self):
        report = json.loads(self.validate("zero-bubble-schedules", "--json").stdout)
        self.assertEqual(len(report["rows"]), 12)
        self.assertLess(report["summary"]["all"]["median"], 0.02)
        self.assertIn('did you mean "zero-bubble-schedules"?', self.validate("zero-buble-schedules", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
