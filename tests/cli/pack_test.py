"""mllmsim pack through the front door: pack_test.py PATH_OF_MLLMSIM"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import duckdb

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())


class Pack(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def pack(self, *arguments, code=0):
        done = subprocess.run([MLLMSIM, "pack", *map(str, arguments)], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def lengths(self, name="lengths.json"):
        """2,000 samples of 1, 3 and 5 tiles, and one that no pack can hold."""
        records = [{"vit_num": v, "token_num": 256 * v + 50 + i * 37 % 300, "image_flags": v}
                   for i in range(2000) for v in [(1, 1, 1, 3, 5)[i % 5]]]
        path = self.dir / name
        path.write_text(json.dumps(records + [{"vit_num": 1, "token_num": 9000, "image_flags": 0}]))
        return path

    def test_membership_holds_every_sample_once_within_the_limits(self):
        lengths = self.lengths()
        for algorithm in ["isf", "best-fit"]:
            with self.subTest(algorithm):
                self.pack(lengths, "--q-v", 9, "--q-t", 4096, "--algorithm", algorithm, "--out", "packs.parquet")
                file = f"'{self.dir}/packs.parquet'"
                count = duckdb.sql(f"select count(*), count(distinct sample), min(sample), max(sample) from {file}").fetchall()[0]
                self.assertEqual(count, (2001, 2001, 0, 2000))
                over = duckdb.sql(f"select list(sample) from {file} group by pack "
                                  "having sum(tiles) > 9 or sum(tokens) > 4096").fetchall()
                self.assertEqual(over, [([2000],)])
                gaps = duckdb.sql(f"select pack from {file} group by pack having max(position) <> count(*) - 1").fetchall()
                self.assertEqual(gaps, [])
                self.assertEqual(duckdb.sql(f"select distinct set from {file}").fetchall(), [("lengths",)])

    def test_json_says_what_the_file_holds(self):
        done = self.pack(self.lengths(), "--q-v", 9, "--q-t", 4096, "--algorithm", "isf", "--out", "p.parquet", "--json")
        figures = json.loads(done.stdout)
        packing = figures["packings"][0]
        packs = duckdb.sql(f"select count(distinct pack) from '{self.dir}/p.parquet'").fetchall()[0][0]
        self.assertEqual(packing["packs"], packs)
        self.assertEqual(packing["oversized_samples"], 1)
        self.assertAlmostEqual(packing["samples_per_pack"], 2001 / packs)
        self.assertGreaterEqual(packs, figures["lower_bound"])

    def test_both_side_by_side_and_best_fit_is_better(self):
        isf, best_fit = json.loads(self.pack(self.lengths(), "--q-v", 9, "--q-t", 4096, "--json").stdout)["packings"]
        self.assertLessEqual(best_fit["packs"], isf["packs"])
        self.assertLess(best_fit["dist_ratio_tokens"], isf["dist_ratio_tokens"])
        text = self.pack(self.lengths()).stdout
        for word in ["isf", "best-fit", "above the lower bound", "dist ratio", "packs below threshold", "seconds"]:
            self.assertIn(word, text)

    def test_same_seed_same_bytes(self):
        for name in ["a", "b"]:
            self.pack(self.lengths(), "--algorithm", "isf", "--seed", 7, "--out", name)
        self.assertEqual((self.dir / "a").read_bytes(), (self.dir / "b").read_bytes())

    def test_a_mixture_of_ones_own(self):
        mixture = self.dir / "mine.toml"
        mixture.write_text('[[sets]]\nname = "a"\nsamples = 500\ntiles = { 1 = 0.7, 5 = 0.3 }\ntext = { median = 100, sigma = 0.5 }\n')
        self.assertEqual(json.loads(self.pack(mixture, "--json").stdout)["samples"], 500)
        one = json.loads(self.pack(mixture, "max_tiles=1", "--algorithm", "isf", "--q-v", 4, "--q-t", 4096, "--json").stdout)
        self.assertEqual(one["packings"][0]["packs"], 125)

    def test_the_published_set_chooses_the_published_limits(self):
        figures = json.loads(self.pack("internvl-1.2m", "--json").stdout)
        self.assertEqual((figures["samples"], figures["q_v"], figures["q_t"]), (1267819, 9, 4096))
        isf, best_fit = figures["packings"]
        self.assertAlmostEqual(isf["samples_per_pack"], 4.6, delta=0.1)
        self.assertLess(best_fit["above_lower_bound"], 0.005)

    def test_mistakes(self):
        bad = self.dir / "bad.json"
        bad.write_text('[{"vit_num": 1}, {"vit_num": -1, "token_num": 5}]')
        error = self.pack(bad, code=2).stderr
        self.assertIn("record 1: token_num: missing", error)
        self.assertIn("record 2: vit_num", error)
        self.assertIn("did you mean", self.pack("internvl-1.3m", code=2).stderr)
        self.assertIn("--algorithm", self.pack(self.lengths(), "--algorithm", "magic", code=2).stderr)
        self.assertIn("--q-v", self.pack(self.lengths(), "--q-v", 0, code=2).stderr)
        self.assertIn("internvl-1.2m", self.pack(code=2).stderr)


if __name__ == "__main__":
    unittest.main()
