"""The report as a reader meets it, in a real browser: report_test.py MLLMSIM."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy
import pandas
import pyarrow
import pyarrow.parquet

from browser import CHROMIUM, Browser

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = ROOT / "scenarios" / "runs" / "internvl-6b-20b-a100x32.toml"
MEGATRON = "parallelism.use_tp_pp_dp_mapping=false"  # ranks: tp fastest, then dp, then pp


def mllmsim(directory, *arguments, code=0, **environment):
    done = subprocess.run([MLLMSIM, *map(str, arguments)], cwd=directory, capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == code, (done.returncode, done.stderr)
    return done


def rewrite(path, change):
    """Changes a table of a run, keeping its metadata."""
    table = pyarrow.parquet.read_table(path)
    new = pyarrow.Table.from_pandas(change(table.to_pandas()), table.schema, preserve_index=False)
    pyarrow.parquet.write_table(new, path)


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.temporary.name)
        mllmsim(cls.dir, "run", RUN, MEGATRON, "-o", "a")
        mllmsim(cls.dir, "run", RUN, MEGATRON, "-s", "balanced", "-o", "b")
        mllmsim(cls.dir, "report", "a", "b", "-o", "report.html")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()


class Page(Reports):
    def test_says_what_was_run_and_how_to_run_it_again(self):
        page = (self.dir / "report.html").read_text()
        run = pandas.read_parquet(self.dir / "a/runs.parquet").loc[0]
        for text in ["internvl-6b-20b-a100x32 (baseline)", "internvl-6b-20b-a100x32 (balanced)", f"{run.gpu_days:.4g}", run.scenario_hash,
                     run.calibration_hash, "global_batch_size: 128 micro-batches", "mllmsim run internvl-6b-20b-a100x32-baseline.toml",
                     "interpolated between measurements", "45 x internvit-6b-448.block"]:
            self.assertIn(text, page)

    def test_its_scenario_gives_the_same_run(self):
        page = (self.dir / "report.html").read_text()
        text = re.search(r"<details><summary>Show it</summary><pre>(.*?)</pre>", page, re.S).group(1)
        scenario = self.dir / "again" / "internvl-6b-20b-a100x32.toml"
        scenario.parent.mkdir()
        scenario.write_text(text.replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        mllmsim(self.dir, "run", scenario, "-o", "c")
        self.assertEqual((self.dir / "a/runs.parquet").read_bytes(), (self.dir / "c/runs.parquet").read_bytes())

    def test_speed_ups_are_over_the_first_run_of_the_same_model(self):
        mllmsim(self.dir, "run", ROOT / "scenarios/runs/llama-3-8b-a100x8.toml", "-o", "other")
        mllmsim(self.dir, "report", "a", "b", "other", "-o", "models.html")
        days = [pandas.read_parquet(self.dir / name / "runs.parquet").loc[0].gpu_days for name in ("a", "b")]
        found = re.findall(r"<td[^>]*>([0-9.]+) x</td>", (self.dir / "models.html").read_text())
        self.assertEqual(found, ["1.00", f"{days[0] / days[1]:.2f}"])  # nothing to compare the other with

    def test_opens_with_what_wins_and_where_the_rest_goes(self):
        page = (self.dir / "report.html").read_text()
        a, b = [pandas.read_parquet(self.dir / name / "runs.parquet").loc[0] for name in "ab"]
        self.assertIn("<h1>internvl-6b-20b: baseline, balanced</h1>", page)
        answer = re.search(r'<p class="answer">(.*?)</p>', page).group(1)
        self.assertTrue(answer.startswith("<strong>balanced</strong> is the cheapest for internvl-6b-20b"), answer)
        self.assertIn(f"<strong>{a.gpu_days / b.gpu_days:.2f} x</strong> fewer than baseline", answer)
        self.assertIn(f"compute {100 * (1 - b.bubble_share):.1f} % of a step", answer)
        self.assertIn(f"waiting for a neighbour stage ({100 * b.bubble_share_pp_other:.1f} %)", answer)
        order = [page.index(f'id="{name}"') for name in ["answer", "timeline-section", "pictures", "plan", "reproduce"]]
        self.assertEqual(order, sorted(order))
        for name in ["pp_other", "dp_reduce_scatter", 'alt="Timeline']:
            self.assertFalse(name in page, name)

    def test_one_run_is_told_as_well(self):
        mllmsim(self.dir, "report", "a", "-o", "one.html")
        answer = re.search(r'<p class="answer">(.*?)</p>', (self.dir / "one.html").read_text()).group(1)
        self.assertIn("<strong>internvl-6b-20b</strong> under baseline takes", answer)

    def test_two_scenarios_are_saved_under_two_names(self):
        mllmsim(self.dir, "run", RUN, MEGATRON, "gbs=256", "-o", "small")
        mllmsim(self.dir, "report", "a", "b", "small", "-o", "three.html")
        names = re.findall(r'download="([^"]*)"', (self.dir / "three.html").read_text())
        self.assertEqual(len(set(names)), 3, names)
        self.assertEqual(names[1], "internvl-6b-20b-a100x32-balanced.toml")

    def test_same_runs_same_bytes(self):
        mllmsim(self.dir, "report", "a", "b", "-o", "again.html")
        self.assertEqual((self.dir / "report.html").read_bytes(), (self.dir / "again.html").read_bytes())

    def test_texts_of_a_run_are_only_texts(self):
        shutil.copytree(self.dir / "a", self.dir / "odd")
        odd = '</script><script>document.title="owned"</script><img src=x onerror="document.title=1">'
        for name in ["runs", "stages", "steps", "spans", "memory"]:
            rewrite(self.dir / "odd" / f"{name}.parquet", lambda t: t.assign(run=odd))
        rewrite(self.dir / "odd/spans.parquet", lambda t: t.assign(name=t.name.where(t.kind == "bubble", odd)))
        mllmsim(self.dir, "report", "odd", "-o", "odd.html")
        self.assertNotIn("<script>document", (self.dir / "odd.html").read_text())

    def test_without_gnuplot_a_note_takes_the_place_of_pictures(self):
        done = mllmsim(self.dir, "report", "a", "-o", "none.html", PATH=str(self.dir))
        self.assertIn("gnuplot-nox", done.stderr)
        page = (self.dir / "none.html").read_text()
        self.assertIn("gnuplot-nox", page)
        self.assertNotIn("<img", page)

    def test_mistakes(self):
        self.assertIn("at least one RUN", mllmsim(self.dir, "report", code=2).stderr)
        mllmsim(self.dir, "report", "nothing", code=2)
        mllmsim(self.dir, "report", "a", "-o", "no/such/directory.html", code=3)
        shutil.copytree(self.dir / "a", self.dir / "warped")
        rewrite(self.dir / "warped/spans.parquet", lambda t: t.assign(stream="warp"))
        message = mllmsim(self.dir, "report", "warped", code=2).stderr
        self.assertIn("warped/spans.parquet: stream: expected", message)
        self.assertIn('found "warp"', message)


@unittest.skipUnless(CHROMIUM, "no chromium")
class InBrowser(Reports):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        super().tearDownClass()

    def open(self, name="report.html"):
        self.browser.open(self.dir / name)
        self.browser.wait("window.mllmsimTimeline && mllmsimTimeline.frames > 0")
        self.browser.run("localStorage.clear()")
        self.browser.run("document.getElementById('timeline').scrollIntoView({block: 'center'})")
        self.frame()  # the page tells of its scrolling, which ends what the pointer shows, a frame later

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])
        self.assertEqual([a for a in self.browser.addresses if not a.startswith(("file:", "data:", "blob:"))], [])

    def place(self, share, lane=0, strip=0):
        """Page coordinates of a time, as a share of what is shown, on a strip of a lane."""
        return self.browser.run(f"""(() => {{
          const box = document.getElementById('timeline').getBoundingClientRect(), t = mllmsimTimeline;
          const [top, height] = t.lanes()[{lane}].strips[{strip}];
          return [box.left + 1 + t.gutter + {share} * (box.width - 2 - t.gutter - 12), box.top + 1 + top + height / 2];
        }})()""")

    def view(self):
        return self.browser.run("mllmsimTimeline.view")

    def frame(self):
        """The view after all that was asked for is drawn."""
        self.browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self.view()

    def text(self, name):
        return self.browser.run(f"document.getElementById('{name}').innerText")

    def test_renders(self):
        self.open()
        spans = pandas.read_parquet(self.dir / "a/spans.parquet")
        self.assertEqual(self.browser.run("mllmsimTimeline.spans"), (spans.end_ns > spans.start_ns).sum())
        self.assertEqual(self.view(), {"from": 0, "to": spans.end_ns.max()})
        x, y = self.place(0.5)  # stage 0 computes all the time: a colour, not the white of the page
        pixel = self.browser.run(f"""(() => {{ const c = document.getElementById('timeline'), b = c.getBoundingClientRect();
          return [...c.getContext('2d').getImageData({x} - b.left, {y} - b.top, 1, 1).data]; }})()""")
        self.assertNotEqual(pixel[:3], [255, 255, 255])
        self.assertTrue(self.browser.run("[...document.images].every((i) => i.complete && i.naturalWidth >= 1200)"))
        self.assertEqual(self.browser.run("document.images.length"), 2)

    def test_wheel_zooms_where_the_mouse_is(self):
        self.open()
        end = self.view()["to"]
        x, y = self.place(0.25)
        self.browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400, modifiers=2)  # with Ctrl
        view = self.frame()
        self.assertAlmostEqual(view["to"] - view["from"], end / 2.718281828, delta=end / 1e3)
        self.assertAlmostEqual(view["from"] + 0.25 * (view["to"] - view["from"]), 0.25 * end, delta=end / 500)

    def test_wheel_alone_scrolls_the_page(self):
        self.open()
        before = self.view()
        x, y = self.place(0.5)
        self.browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=100)
        self.assertEqual(self.frame(), before)

    def test_dragging_pans(self):
        self.open()
        end = self.view()["to"]
        self.browser.run(f"mllmsimTimeline.setView({end} * 0.4, {end} * 0.6)")
        (x0, y), (x1, _) = self.place(0.5), self.place(0.25)
        self.browser.mouse("mousePressed", x0, y, button="left", clickCount=1)
        for x in [x0 - 10, x1]:
            self.browser.mouse("mouseMoved", x, y, button="left", buttons=1)
        self.browser.mouse("mouseReleased", x1, y, button="left", clickCount=1)
        view = self.frame()
        self.assertAlmostEqual(view["from"], 0.45 * end, delta=end / 1000)
        self.assertAlmostEqual(view["to"], 0.65 * end, delta=end / 1000)

    def test_hovering_shows_what_is_there(self):
        self.open()
        spans = pandas.read_parquet(self.dir / "a/spans.parquet")
        end = self.view()["to"]
        span = spans[(spans.stage == 2) & (spans.kind == "backward") & (spans.micro_batch == 7)].iloc[0]
        x, y = self.place((span.start_ns + span.end_ns) / 2 / end, lane=2)
        self.browser.mouse("mouseMoved", x, y)
        text = self.browser.wait("!document.getElementById('tip').hidden && document.getElementById('tip').innerText")
        self.assertIn("backward: llm", text)
        self.assertIn("micro-batch 7", text)
        self.assertIn(f"takes {(span.end_ns - span.start_ns) / 1e6:.1f} ms", text)
        self.assertIn("stage 2, ranks 16-17, compute", text)
        self.browser.mouse("mouseMoved", 5, 5)
        self.browser.wait("document.getElementById('tip').hidden")

    def test_keys(self):
        self.open()
        end = self.view()["to"]
        self.browser.run("document.getElementById('timeline').focus({preventScroll: true})")
        self.browser.key("+")
        self.assertAlmostEqual(self.frame()["to"] - self.view()["from"], end / 1.5, delta=1)
        before = self.view()["from"]
        self.browser.key("ArrowRight")
        self.assertAlmostEqual(self.frame()["from"] - before, 0.1 * end / 1.5, delta=1)
        self.browser.key(".")
        self.assertIn("micro-batch", self.text("details"))
        self.browser.key("0")
        self.assertEqual(self.frame(), {"from": 0, "to": end})

    def test_the_tooltip_goes_away(self):
        self.open()
        hidden = "document.getElementById('tip').hidden"
        for leave in [lambda: self.browser.key("Escape"), lambda: self.browser.run("scrollBy(0, 40)"), lambda: self.browser.mouse("mouseMoved", 5, 5)]:
            x, y = self.place(0.5)
            self.browser.mouse("mouseMoved", x + 1, y)
            self.browser.mouse("mouseMoved", x, y)
            self.browser.wait("!" + hidden)
            leave()
            self.browser.wait(hidden)

    def test_two_clicks_measure(self):
        self.open()
        end = self.view()["to"]
        self.browser.run("document.getElementById('measure').click()")
        for share in [0.2, 0.7]:
            x, y = self.place(share, strip=2)  # away from the edges of passes
            self.browser.mouse("mousePressed", x, y, button="left", clickCount=1)
            self.browser.mouse("mouseReleased", x, y, button="left", clickCount=1)
        low, high = self.browser.run("mllmsimTimeline.ruler")
        self.assertAlmostEqual(high - low, end / 2, delta=end / 80)
        self.assertIn(f"{(high - low) / 1e9:.2f}", self.text("details"))
        self.browser.run("document.getElementById('timeline').focus({preventScroll: true})")
        self.browser.key("Escape")
        self.assertEqual(self.browser.run("mllmsimTimeline.ruler"), [])

    def test_the_time_axis_stays_in_view(self):
        self.open()
        self.browser.run("document.getElementById('timeline').scrollIntoView({block: 'end'}), scrollBy(0, 700)")
        self.browser.run("document.getElementById('timeline').style.height = '3000px', scrollBy(0, 600)")
        self.assertEqual(self.browser.run("document.getElementById('axis').getBoundingClientRect().top"), 0)

    def test_replicas_fold(self):
        mllmsim(self.dir, "run", ROOT / "scenarios/runs/internvl-1.2m-a100x32.toml", "data.steps=2", "-o", "replicas")
        mllmsim(self.dir, "report", "replicas", "-o", "replicas.html")
        self.open("replicas.html")
        shown = "mllmsimTimeline.lanes().filter((l) => !l.folded).length"
        self.assertEqual(self.browser.run("mllmsimTimeline.heads().length"), 4)
        before = self.browser.run(shown)
        top = self.browser.run("document.getElementById('timeline').getBoundingClientRect().top + mllmsimTimeline.heads()[0].top + 10")
        left = self.browser.run("document.getElementById('timeline').getBoundingClientRect().left + 20")
        self.browser.run(f"scrollBy(0, {top} - 300)")
        self.browser.mouse("mousePressed", left, 300, button="left", clickCount=1)
        self.browser.mouse("mouseReleased", left, 300, button="left", clickCount=1)
        self.assertEqual(self.browser.run(shown), before - 4)
        self.browser.run("document.getElementById('fold').click()")
        self.assertEqual(self.browser.run(shown), 16)
        self.browser.run("document.getElementById('fold').click()")
        self.assertEqual(self.browser.run(shown), 0)

    def test_idle_time_by_cause_alone(self):
        self.open()
        self.browser.run("document.getElementById('causes').click()")
        legend = self.text("legend")
        self.assertIn("pipeline warm-up", legend)
        self.assertNotIn("forward", legend)
        paint = self.browser.run("mllmsimTimeline.looks.map((l, i) => [l.bubble, mllmsimTimeline.paint(i, false)])")
        self.assertEqual(len({colour for bubble, colour in paint if not bubble}), 1)
        self.assertEqual(len({colour for bubble, colour in paint if bubble}), 8)

    def test_a_tap_shows_details_in_view(self):
        self.browser.send("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
        self.browser.send("Emulation.setTouchEmulationEnabled", enabled=True)
        self.open()
        x, y = self.place(0.5)
        self.browser.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.browser.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.browser.wait("document.getElementById('details').textContent")
        box = self.browser.run("(() => { const b = document.getElementById('details').getBoundingClientRect(); return [b.top, b.bottom]; })()")
        self.assertTrue(0 <= box[0] < box[1] <= 800, box)
        self.browser.send("Emulation.setTouchEmulationEnabled", enabled=False)
        self.browser.send("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)

    def test_another_strategy_is_shown_whole(self):
        self.open()
        self.browser.run("mllmsimTimeline.setView(1e9, 2e9)")
        self.browser.run("""(() => { const s = document.getElementById('run'); s.value = s.options[1].value;
          s.dispatchEvent(new Event('change')); })()""")
        self.browser.wait("document.getElementById('timeline').getAttribute('aria-label').includes('balanced')")
        self.assertEqual(self.frame(), {"from": 0, "to": pandas.read_parquet(self.dir / "b/spans.parquet").end_ns.max()})

    def test_search(self):
        self.open()
        self.browser.run("""(() => { const s = document.getElementById('search'); s.value = 'backward'; s.dispatchEvent(new Event('input')); })()""")
        self.assertTrue(self.text("found").startswith("128 spans"))  # 32 micro-batches on 4 stages
        self.browser.run("document.getElementById('search').focus({preventScroll: true})")
        spans = pandas.read_parquet(self.dir / "a/spans.parquet")
        starts = sorted(spans[spans.kind == "backward"].start_ns)
        for start in starts[:6]:  # whatever their stage
            self.browser.key("Enter")
            self.assertIn("backward", self.text("details"))
            self.assertEqual(self.browser.run("mllmsimTimeline.selected.start"), start)
        self.browser.run("""(() => { const s = document.getElementById('search'); s.value = 'mb 31'; s.dispatchEvent(new Event('input')); })()""")
        spans = pandas.read_parquet(self.dir / "a/spans.parquet")
        self.assertTrue(self.text("found").startswith(f"{(spans.micro_batch == 31).sum()} spans"))
        self.browser.run("""(() => { const s = document.getElementById('search'); s.value = s.placeholder; s.dispatchEvent(new Event('input')); })()""")
        self.assertRegex(self.text("found"), r"^[0-9,]+ spans")

    def test_light_and_dark(self):
        colour = "getComputedStyle(document.body).backgroundColor"
        self.open()
        light = self.browser.run(colour)
        self.browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        night = self.browser.run(colour)
        self.assertNotEqual(light, night)
        self.browser.run("document.getElementById('theme').click()")
        self.assertEqual(self.browser.run(colour), light)
        self.browser.run("document.getElementById('theme').click()")
        self.browser.run("document.images[0].scrollIntoView()")
        self.frame()
        box = self.browser.run("(() => { const b = document.images[0].getBoundingClientRect(); return [b.left + 8, b.top + 8]; })()")
        self.assertLess(self.browser.pixel(*box)[0], 80)  # pictures are dark as well
        self.browser.send("Emulation.setEmulatedMedia", features=[])
        self.browser.run("localStorage.clear()")

    def test_fits_a_small_screen(self):
        self.browser.send("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=False)
        self.open()
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 390)
        # Pictures drawn for it, with nothing beside the screen.
        self.assertEqual(set(self.browser.run("[...document.images].map(i => i.naturalWidth)")), {480})
        self.assertEqual(self.browser.run("[...document.querySelectorAll('figure')].filter(f => f.scrollWidth > f.clientWidth).length"), 0)
        self.browser.send("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
        self.open()
        self.assertEqual(set(self.browser.run("[...document.images].map(i => i.naturalWidth)")), {1200})

    # 4 lanes of 25,000 kernels: far more than there are pixels.
    def test_a_hundred_thousand_spans_are_few_boxes(self):
        shutil.copytree(self.dir / "a", self.dir / "many", dirs_exist_ok=True)

        def kernels(spans):
            n = 100_000
            i = numpy.arange(n)
            out = pandas.DataFrame({c: [spans[c].iloc[0]] * n for c in spans.columns})
            start = i % 25_000 * 400_000
            return out.assign(stage=i // 25_000, stream="compute", kind=numpy.where(i % 3 == 0, "forward", "backward"), name="k" + pandas.Series(i % 40).astype(str),
                              micro_batch=i % 25_000 // 800, start_ns=start, end_ns=start + 300_000 + i % 7 * 10_000)

        rewrite(self.dir / "many/spans.parquet", kernels)
        mllmsim(self.dir, "report", "many", "-o", "many.html")
        self.open("many.html")
        self.assertEqual(self.browser.run("mllmsimTimeline.spans"), 100_000)
        self.frame()
        self.assertLess(self.browser.run("mllmsimTimeline.drawn"), 4 * 1280)  # at most one a pixel of each lane
        self.browser.run("mllmsimTimeline.setView(5e9, 5e9 + 10 * 400000)")  # ten kernels of each lane
        self.frame()
        self.assertIn(self.browser.run("mllmsimTimeline.drawn"), range(40, 49))
        milliseconds = self.browser.run("""(async () => {
          const times = [], t = mllmsimTimeline, end = t.view.to;
          for (let i = 0; i < 200; ++i) {
            const from = 1e7 * i, span = 1e10 / (1 + i % 100);
            const before = performance.now();
            t.setView(from, from + span);
            t.draw();
            document.getElementById('timeline').getContext('2d').getImageData(0, 0, 1, 1);
            times.push(performance.now() - before);
            await new Promise(requestAnimationFrame);
          }
          return times.sort((a, b) => a - b);
        })()""")
        print(f"frames of 100,000 spans: median {milliseconds[100]:.1f} ms, 95 % {milliseconds[190]:.1f} ms, worst {milliseconds[-1]:.1f} ms", file=sys.stderr)


@unittest.skipUnless(CHROMIUM, "no chromium")
class SweepPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.temporary.name)
        mllmsim(cls.dir, "sweep", RUN, "--vary", "parallelism.pipeline_model_parallel_size=2,4", "--vary", "cluster.nodes=4,8",
                "--strategies", "baseline,omnibal,zero3", "-o", "sweep")
        mllmsim(cls.dir, "report", "sweep", "-o", "sweep.html")
        cls.runs = pandas.read_parquet(cls.dir / "sweep/runs.parquet")
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.temporary.cleanup()

    def setUp(self):
        self.browser.open(self.dir / "sweep.html")

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])
        self.assertEqual([a for a in self.browser.addresses if not a.startswith(("file:", "data:", "blob:"))], [])

    def rows(self):
        return self.browser.run("[...document.querySelectorAll('#table tbody tr')].map((r) => Number(r.dataset.point))")

    def test_opens_with_the_best_points(self):
        best = self.runs[self.runs.fits].sort_values("gpu_days").iloc[0]
        answer = self.browser.run("document.querySelector('.answer').innerText")
        self.assertIn(best.strategy, answer.split(" needs ")[0])
        self.assertIn(f"nodes {best['cluster.nodes']}", answer.split(" needs ")[0])

    def test_the_table_sorts_and_filters(self):
        fitting = self.runs[self.runs.fits]
        self.assertEqual(self.rows()[:len(fitting)], list(fitting.sort_values("gpu_days", kind="stable").point))
        for order in [True, False]:
            self.browser.run("document.querySelector('th[data-column=mfu] button').click()")
            self.assertEqual(self.rows()[0], fitting.sort_values("mfu", ascending=order).iloc[0].point)
        self.browser.run("""(() => { const s = document.querySelector('[data-key="cluster.nodes"]'); s.value = '8'; s.dispatchEvent(new Event('change')); })()""")
        self.assertEqual(set(self.rows()), set(self.runs[self.runs["cluster.nodes"] == 8].point))
        self.assertIn("6 points: 3 fit, 1 does not fit in memory, 2 cannot be planned", self.browser.run("document.getElementById('count').innerText"))

    def test_the_heat_map_has_the_best_of_each_cell(self):
        fitting = self.runs[self.runs.fits]
        cells = self.browser.run("[...document.querySelectorAll('.heat td')].map((c) => Number(c.dataset.point))")
        best = fitting.loc[fitting.groupby(["cluster.nodes", "parallelism.pipeline_model_parallel_size"]).gpu_days.idxmin()]
        self.assertEqual(set(cells), set(best.point))

    def test_the_frontier_is_of_points_that_none_beats(self):
        fitting = self.runs[self.runs.fits]
        front = [p.point for p in fitting.itertuples() if not ((fitting.days <= p.days) & (fitting.gpu_days <= p.gpu_days) & ((fitting.days < p.days) | (fitting.gpu_days < p.gpu_days))).any()]
        self.assertEqual(set(self.browser.run("[...document.querySelectorAll('[data-front=true]')].map((c) => Number(c.dataset.point))")), set(front))

    def test_a_click_shows_the_run(self):
        point = self.browser.run("(() => { const c = document.querySelector('.heat td'); c.click(); return Number(c.dataset.point); })()")
        run = self.runs[self.runs.point == point].iloc[0]
        text = self.browser.run("document.getElementById('chosen').innerText")
        for part in [run.strategy, f"waiting for a neighbour stage {100 * run.bubble_share_pp_other:.1f} %", f"computing {100 * (1 - run.bubble_share):.1f} %",
                     f"strategy.name={run.strategy}", "GPU-days"]:
            self.assertIn(part, text)
        self.assertEqual(self.browser.run("document.querySelector('#table tr.best').dataset.point"), str(point))
        misfit = self.runs[~self.runs.fits].iloc[0]
        self.browser.run(f"document.querySelector('#table tr[data-point=\"{misfit.point}\"]').click()")
        self.assertIn(misfit.reason, self.browser.run("document.getElementById('chosen').innerText"))
        self.browser.key("Escape")
        self.assertTrue(self.browser.run("document.getElementById('chosen').hidden"))

    def test_fits_a_small_screen(self):
        self.browser.send("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=False)
        self.browser.open(self.dir / "sweep.html")
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 390)
        self.browser.send("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)

    def test_texts_are_only_texts(self):
        odd = '</script><img src=x onerror="document.title=1">'
        shutil.copytree(self.dir / "sweep", self.dir / "odd")
        rewrite(self.dir / "odd/runs.parquet", lambda t: t.assign(run=odd, strategy=odd + t.strategy, reason=odd))
        mllmsim(self.dir, "report", "odd", "-o", "odd.html")
        self.browser.open(self.dir / "odd.html")
        self.assertEqual(self.browser.run("document.images.length"), 0)
        self.assertIn("a sweep of 12 points", self.browser.run("document.title"))

    def test_a_sweep_is_reported_alone(self):
        self.assertIn("page of its own", mllmsim(self.dir, "report", "sweep", "sweep", code=2).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
