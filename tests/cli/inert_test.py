"""Names, keys and paths of any input do nothing in any output: inert_test.py MLLMSIM.

Hostile names stand in a scenario, its parts, a sweep, the paths of results and the tables of a run. Whatever ran would set
window.pwned in a browser or leave a file called pwned; terminals get no control characters, and tables keep their cells."""

import csv
import io
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import pyarrow
import pyarrow.parquet

from browser import CHROMIUM, Browser

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
SVG = "{http://www.w3.org/2000/svg}"

# Where a slash is no part of a name, <img> does as well as </script>.
IMAGE = "<img src=x onerror=window.pwned=1>"
SHELL = "`touch pwned`$(touch pwned);touch pwned;'touch pwned'\"|touch pwned&"
GNUPLOT = "\"; system('touch pwned'); set title \"@x @pwned \\\"`touch pwned` {/Symbol a}^2 %s %q 100%"
MARKUP = f"</script><script>window.pwned=1</script>]]>--></title></style></svg>{IMAGE}<a href='javascript:window.pwned=1'>&#0;&#x1b;&nosuch;"
TERMINAL = "\x1b]0;pwned\x07\x1b[31mred\x9b31m\r\n\x00\x7f"
FORMULA = "=cmd|' /C calc'!A0"
HOSTILE = {"markup": MARKUP, "shell": SHELL, "gnuplot": GNUPLOT, "terminal": TERMINAL, "formula": FORMULA,
           "all": MARKUP + SHELL + GNUPLOT + TERMINAL + "|a|" + FORMULA}
# As the name of a directory of results and in file names: no slash, nothing that a terminal takes for a command.
NAMES = [IMAGE, SHELL, "=1+1", "\"; system('touch pwned') #", "-x @x ]]> {a}^2 &#0;&x; 100% %q"]

RUN = """
description = {text}
assumptions = [{text}]
cluster = {{ base = "a100-80g-8x200", name = {text}, nodes = 1 }}
[model]
name = {text}
[model.llm]
name = {text}
num_hidden_layers = 4
hidden_size = 512
num_attention_heads = 8
intermediate_size = 2048
vocab_size = 1000
max_position_embeddings = 512
[[model.encoders]]
name = {text}
num_hidden_layers = 2
hidden_size = 256
num_attention_heads = 8
intermediate_size = 1024
image_size = 56
patch_size = 14
pixel_shuffle = 0.5
projector = "mlp2"
[parallelism]
tensor_model_parallel_size = 2
pipeline_model_parallel_size = 2
micro_batch_size = 1
global_batch_size = 8
[strategy]
name = "omnibal"
[data]
{data}
"""


def toml(text):
    return json.dumps(text).replace("\x7f", "\\u007f")  # JSON's strings are TOML's, but for this one


class Inert(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def tearDown(self):
        self.assertEqual(list(self.dir.rglob("pwned")), [])

    def run_mllmsim(self, *arguments, code=0):
        done = subprocess.run([MLLMSIM, *map(str, arguments)], cwd=self.dir, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        for stream in (done.stdout, done.stderr):
            self.no_control_characters(stream.decode())
        return done.stdout.decode()

    def data_of(self, *arguments):
        """JSON or CSV: names in it are as they are, but on a terminal they do nothing."""
        command = [MLLMSIM, *map(str, arguments)]
        shown = subprocess.run(["script", "--quiet", "--return", "--command", shlex.join(command), "/dev/null"], cwd=self.dir,
                               stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        self.assertEqual(shown.returncode, 0, shown.stdout)
        self.no_control_characters(shown.stdout.decode().replace("\r\n", "\n"))
        done = subprocess.run(command, cwd=self.dir, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    def no_control_characters(self, text):
        self.assertIsNone(re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), ascii(text))

    def scenario(self, text, name=None, data="samples = 100\ntokens_per_sample = 64\ntiles_per_sample = 2"):
        name = "" if name is None else f"name = {toml(name)}\n"
        file = self.dir / "scenario.toml"
        file.write_text(name + RUN.format(text=toml(text), data=data))
        return file

    def hostile_runs(self):
        """A directory of results for every hostile text, and one with all of them in its tables too."""
        for kind, text in HOSTILE.items():
            self.run_mllmsim("run", self.scenario(text), "--out", kind)
        for table, columns in {"runs": ["run", "strategy", "model", "cluster", "work"], "plan": ["key", "text"],
                               "stages": ["layers"], "spans": ["name"]}.items():
            file = self.dir / "all" / f"{table}.parquet"
            rows = pyarrow.parquet.read_table(file)
            bubbles = [kind == "bubble" for kind in rows["kind"].to_pylist()] if table == "spans" else []
            for column in columns:
                values = rows[column].to_pylist()
                if table == "spans":  # of bubbles, names are of a list
                    values = [v if bubble else HOSTILE["all"] for v, bubble in zip(values, bubbles)]
                else:
                    values = [HOSTILE["all"]] * len(rows)
                rows = rows.set_column(rows.schema.get_field_index(column), column, pyarrow.array(values, pyarrow.string()))
            pyarrow.parquet.write_table(rows.replace_schema_metadata(
                {**rows.schema.metadata, b"version": HOSTILE["all"].encode()}), file)
        return list(HOSTILE)


class Terminals(Inert):
    def test_names_of_a_scenario(self):
        for kind, text in HOSTILE.items():
            with self.subTest(kind=kind):
                file = self.scenario(text)
                self.run_mllmsim("run", file, "--out", kind)
                self.assertEqual(json.loads(self.data_of("run", file, "--json", "--out", kind))["runs"][0]["model"], text)
                self.run_mllmsim("explain", file)
                self.run_mllmsim("calibrate", "gaps", file)
                self.run_mllmsim("sweep", file, "--vary", "mbs=1,2", "--out", f"sweep-{kind}")

    def test_names_and_keys_that_are_wrong(self):
        for text in [*HOSTILE.values(), *NAMES]:
            with self.subTest(text=text):
                if "\0" not in text:  # no argument can have it
                    for words in (["run", text], ["run", "llama-3-8b-a100x8", f"{text}=1"], [text], ["compare", text],
                                  ["run", "llama-3-8b-a100x8", f"cluster={text}"], ["report", text], ["merge", text],
                                  ["calibrate", "show", text], ["plot", text, text], ["pack", text], ["validate", text],
                                  ["sweep", "llama-3-8b-a100x8", "--vary", f"{text}=1,2"], ["run", f"--{text}"]):
                        self.run_mllmsim(*words, code=2)
                file = self.dir / "wrong.toml"
                file.write_text(f"{toml(text)} = 1\n[model.llm]\n{toml(text)} = {toml(text)}\n")
                self.run_mllmsim("run", file, code=2)
        for name in (TERMINAL, MARKUP, "../x", ""):
            self.run_mllmsim("run", self.scenario("x", name=name), code=2)

    def test_tables_of_a_run(self):
        kinds = self.hostile_runs()
        self.run_mllmsim("compare", *kinds)
        self.run_mllmsim("compare", *kinds, "--by", "strategy")


class Files(Inert):
    def test_names_of_runs_and_paths_stay_names(self):
        for name in NAMES:
            with self.subTest(name=name):
                self.run_mllmsim("run", self.scenario("x", name=name))
                found = [p.parent.name for p in self.dir.glob("results/runs/*/runs.parquet")]
                self.assertEqual(found, [name])
                run = pathlib.Path("results/runs") / name
                self.run_mllmsim("plot", "timeline", run, "-o", run / f"{name}.svg")
                self.run_mllmsim("trace", run, "-o", run / f"{name}.json")
                self.run_mllmsim("report", run, "-o", run / f"{name}.html")
                for file in sorted((self.dir / run).iterdir()):
                    file.unlink()
                (self.dir / run).rmdir()

    def test_a_data_set_is_called_what_its_file_is(self):
        for i, name in enumerate(NAMES):
            with self.subTest(name=name):
                (self.dir / f"{name}.json").write_text(json.dumps([{"vit_num": 2, "token_num": 100}] * 512))
                file = self.scenario("x", data=f"set = {toml(f'./{name}.json')}")
                self.run_mllmsim("run", file, "--out", f"data-{i}")
                self.run_mllmsim("pack", f"./{name}.json", "--out", f"packs-{i}.parquet")
                self.run_mllmsim("plot", "packing", f"packs-{i}.parquet", "-o", f"packs-{i}.svg")

    def test_cells_of_csv_are_text(self):
        kinds = self.hostile_runs()
        rows = list(csv.DictReader(io.StringIO(self.data_of("compare", *kinds, "--csv"), newline="")))
        self.assertEqual(len(rows), len(kinds))
        self.assertIn(HOSTILE["markup"], {row["model"] for row in rows})
        self.run_mllmsim("plot", "bubbles", *kinds, "-o", "x.svg", "--data", "x.csv")
        (self.dir / "swept.toml").write_text(self.scenario("x").read_text())
        self.run_mllmsim("sweep", "swept.toml", "--vary", 'model.name="=1+1","@x","-y","+z"', "--out", "s")
        self.run_mllmsim("plot", "sweep", "s", "-o", "y.svg", "--data", "y.csv")
        swept = self.data_of("compare", "s", "--csv")
        for text in [swept, *((self.dir / name).read_text() for name in ("x.csv", "y.csv"))]:
            for row in csv.reader(io.StringIO(text, newline="")):
                for cell in row:
                    if re.match(r"[=+\-@\t\r]", cell):
                        float(cell)  # nothing but numbers may begin so

    def test_markdown_has_no_html_and_as_many_cells(self):
        kinds = self.hostile_runs()
        lines = self.run_mllmsim("compare", *kinds, "--markdown").strip().split("\n")
        self.assertEqual(len(lines), 2 + len(kinds))
        cells = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines}
        self.assertEqual(len(cells), 1, lines)
        self.assertNotIn("<", "".join(lines))

    def test_traces_are_json_with_the_names_as_they_are(self):
        self.hostile_runs()
        self.run_mllmsim("trace", "all", "-o", "t.json")
        names = {event["name"] for event in json.loads((self.dir / "t.json").read_text())["traceEvents"]}
        self.assertIn(HOSTILE["all"], names)


class Scripts(Inert):
    """A Slurm that keeps what is submitted; the scripts then run as Slurm would run them."""

    SBATCH = '#!/bin/sh\nfor last; do :; done\nn=$(ls kept 2>/dev/null | wc -l)\nmkdir -p kept\ncp "$last" "kept/$n"\necho "$((n + 1))"\n'

    def test_a_sweep_for_slurm_quotes_every_word(self):
        place = self.dir / "a'b $(touch pwned) `touch pwned` \"; touch pwned #"
        place.mkdir()
        tools = self.dir / "bin"
        tools.mkdir()
        for tool, text in (("sbatch", self.SBATCH), ("squeue", "#!/bin/sh\nexit 0\n"), ("scancel", "#!/bin/sh\n")):
            (tools / tool).write_text(text)
            (tools / tool).chmod(0o755)
        scenario = place / f"{SHELL}.toml"
        scenario.write_text(self.scenario("x").read_text())
        out = f"out {SHELL}"
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        launch = subprocess.Popen([MLLMSIM, "sweep", scenario.name, f"description={SHELL}\n$(touch pwned)", "--vary",
                                   f"model.name='{'$(touch pwned)'}','b'", "--out", out, "--launch", "slurm", "--shards", "2",
                                   "--partition", SHELL], cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(launch.communicate)
        self.addCleanup(launch.kill)
        launch.wait(60)  # Slurm says that nothing runs: it ends without results
        scripts = sorted((place / "kept").iterdir())
        self.assertEqual(len(scripts), 2)
        for task in ("1", "2"):
            done = subprocess.run(["sh", scripts[0]], cwd=place, capture_output=True,
                                  env={**environment, "SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_JOB_ID": "1"})
            self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run(["sh", scripts[1]], cwd=place, capture_output=True, env={**environment, "SLURM_JOB_ID": "2"})
        self.assertEqual(done.returncode, 0, done.stderr)
        models = pyarrow.parquet.read_table(place / out / "runs.parquet")["model"].to_pylist()
        self.assertEqual(models, ["$(touch pwned)", "b"])


class Pictures(Inert):
    def test_gnuplot_runs_nothing(self):
        kinds = self.hostile_runs()
        for picture in ("timeline", "bubbles", "memory", "speedup"):
            for form in ("svg", "png"):
                with self.subTest(picture=picture, form=form):
                    self.run_mllmsim("plot", picture, *kinds, "-o", f"{picture}.{form}")
        for picture in ("timeline", "bubbles", "memory", "speedup"):
            self.only_draws(self.dir / f"{picture}.svg")

    def test_values_of_a_sweep(self):
        values = ",".join(toml(text) for text in (MARKUP, GNUPLOT, SHELL, FORMULA))
        self.run_mllmsim("sweep", self.scenario("x"), "--vary", f"model.name={values}", "--out", "s")
        self.run_mllmsim("plot", "sweep", "s", "-o", "s.svg")
        self.only_draws(self.dir / "s.svg")

    def only_draws(self, file):
        """The picture is XML, and has nothing in it that runs or loads."""
        for element in xml.etree.ElementTree.parse(file).iter():
            self.assertNotIn(element.tag.replace(SVG, ""), ("script", "foreignObject", "image", "iframe", "img"))
            for attribute, value in element.attrib.items():
                self.assertFalse(attribute.lower().startswith("on"), attribute)
                self.assertNotIn("javascript:", value)


@unittest.skipUnless(CHROMIUM, "no Chromium")
class Pages(Inert):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def nothing_runs(self, page):
        self.browser.open(page)
        for click in ("", "document.querySelectorAll('button, summary').forEach(e => e.click()),"):
            self.assertEqual(self.browser.run(f"({click} typeof window.pwned)"), "undefined")
        self.assertEqual(self.browser.errors, [])
        foreign = [a for a in self.browser.addresses if not a.startswith(("data:", "blob:")) and a != page.as_uri()]
        self.assertEqual(foreign, [])
        self.assertEqual(self.browser.run("typeof window.pwned"), "undefined")

    def test_a_report(self):
        kinds = self.hostile_runs()
        self.run_mllmsim("report", *kinds, "-o", "report.html")
        self.nothing_runs(self.dir / "report.html")
        self.run_mllmsim("report", "all", "-o", "one.html")
        self.nothing_runs(self.dir / "one.html")
        self.assertNotEqual(self.browser.run("document.title"), "pwned")
        shown = self.browser.run("document.body.textContent")
        self.assertIn("<script>window.pwned=1</script>", shown)  # as text

    def test_a_report_of_a_directory_with_such_a_name(self):
        for i, name in enumerate(NAMES):
            with self.subTest(name=name):
                self.run_mllmsim("run", self.scenario("x", name=name))
                self.run_mllmsim("report", pathlib.Path("results/runs") / name, "-o", f"{i}.html")
                self.nothing_runs(self.dir / f"{i}.html")

    def test_pictures(self):
        kinds = self.hostile_runs()
        self.run_mllmsim("plot", "timeline", *kinds, "-o", "t.svg")
        self.nothing_runs(self.dir / "t.svg")


if __name__ == "__main__":
    unittest.main()
