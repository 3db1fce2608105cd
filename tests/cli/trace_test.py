"""Traces as a user meets them: trace_test.py MLLMSIM checks the shape that Perfetto and PyTorch's trace tools expect."""

import collections
import gzip
import json
import pathlib
import subprocess
import tempfile
import unittest

import pandas

from program import MLLMSIM, InOneDirectory

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = ROOT / "scenarios" / "runs" / "internvl-6b-20b-a100x32.toml"  # tp 2, pp 4, dp 4
OPTIMUS = ROOT / "scenarios" / "runs" / "vit-11b-llama-70b-h100x64.toml"
MEGATRON = "parallelism.use_tp_pp_dp_mapping=false"  # ranks: tp fastest, then dp, then pp


class Trace(InOneDirectory):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.mllmsim("run", RUN, MEGATRON, "-o", "run")
        cls.mllmsim("trace", "run", "-o", "a.json")
        cls.trace = json.loads((cls.dir / "a.json").read_text())
        cls.events = cls.trace["traceEvents"]
        cls.spans = pandas.read_parquet(cls.dir / "run/spans.parquet")

    def of(self, phase):
        return [e for e in self.events if e["ph"] == phase]

    def test_every_event_says_where_and_when(self):
        for e in self.events:
            for key in ["ph", "pid", "tid", "ts", "name"]:
                self.assertIn(key, e)

    def test_looks_like_kineto(self):
        self.assertEqual(self.trace["schemaVersion"], 1)
        self.assertEqual(self.trace["distributedInfo"]["rank"], 0)
        self.assertEqual(self.trace["distributedInfo"]["world_size"], 32)
        self.assertEqual(self.trace["deviceProperties"][0]["totalGlobalMem"], 80 * 2**30)

    def test_an_event_per_span_with_its_times(self):
        self.assertEqual(len(self.of("X")), len(self.spans))
        stage = self.spans[(self.spans.stage == 1) & (self.spans.kind == "backward")]
        rank = 2 * 4 * 1  # tp fastest, then dp, then pp
        mine = [e for e in self.of("X") if e["pid"] == rank and e["args"]["kind"] == "backward"]
        self.assertEqual([round(e["ts"] * 1000) for e in mine], list(stage.start_ns))
        self.assertEqual([round(e["dur"] * 1000) for e in mine], list(stage.end_ns - stage.start_ns))

    def test_events_of_a_thread_do_not_overlap(self):
        end = collections.defaultdict(float)
        for e in sorted(self.of("X"), key=lambda e: e["ts"]):
            self.assertGreaterEqual(e["ts"] + 1e-3, end[e["pid"], e["tid"]])
            end[e["pid"], e["tid"]] = e["ts"] + e["dur"]

    def test_processes_and_threads_have_names(self):
        named = {(e["pid"], e["tid"]) for e in self.of("M") if e["name"] == "thread_name"}
        self.assertEqual(named, {(e["pid"], e["tid"]) for e in self.of("X")})
        processes = {e["pid"]: e["args"]["name"] for e in self.of("M") if e["name"] == "process_name"}
        self.assertEqual(processes, {0: "rank 0: stage 0", 8: "rank 8: stage 1", 16: "rank 16: stage 2", 24: "rank 24: stage 3"})

    def test_every_send_has_an_arrow_to_its_receive(self):
        starts, ends = ({e["id"]: e for e in self.of(p)} for p in "sf")
        self.assertEqual(len(starts), (self.spans.kind == "pp_send").sum())
        self.assertEqual(starts.keys(), ends.keys())
        slices = {(e["pid"], e["tid"], e["ts"]) for e in self.of("X")}
        for i, s in starts.items():
            self.assertIn((s["pid"], s["tid"], s["ts"]), slices)
            self.assertEqual(abs(s["pid"] - ends[i]["pid"]), 8)  # the next or previous stage

    def test_a_stream_has_one_number_on_every_rank(self):
        names = collections.defaultdict(set)
        for e in self.of("M"):
            if e["name"] == "thread_name":
                names[e["tid"]].add(e["args"]["name"])
        self.assertTrue(all(len(of_thread) == 1 for of_thread in names.values()), names)

    def test_counters_follow_memory_and_bubbles(self):
        memory = pandas.read_parquet(self.dir / "run/memory.parquet")
        counted = [e["args"]["bytes in use"] for e in self.of("C") if e["name"] == "memory"]
        self.assertEqual(sorted(counted), sorted(memory.memory_bytes))
        bubbles = [e["args"] for e in self.of("C") if e["name"] == "bubbles"]
        self.assertEqual(len(bubbles), 2 * (self.spans.kind == "bubble").sum())

    def test_our_own_importer_reads_it(self):
        self.mllmsim("calibrate", "import", "kineto", "a.json", "--out", "raw.jsonl")
        lines = [json.loads(line) for line in (self.dir / "raw.jsonl").read_text().splitlines()]
        found = [line for line in lines if line.get("part") == "collective" and line["op"] == "all_reduce"]
        # The copies in bf16 that DeepSpeed makes of each stage's gradients; stages with as many parameters are one measurement.
        stages = pandas.read_parquet(self.dir / "run/stages.parquet")
        self.assertEqual({line["bytes"] for line in found}, set(2 * stages.parameters))

    def test_gzip_holds_the_same(self):
        self.mllmsim("trace", "run", "-o", "a.json.gz", "--ranks", "8-15")
        ranks = {e["pid"] for e in json.loads(gzip.decompress((self.dir / "a.json.gz").read_bytes()))["traceEvents"]}
        self.assertEqual(ranks, {8})
        self.mllmsim("trace", "run", "-o", "b.json.gz", "--ranks", "8-15")
        self.assertEqual((self.dir / "a.json.gz").read_bytes(), (self.dir / "b.json.gz").read_bytes())

    def test_mistakes(self):
        self.assertIn(".json", self.mllmsim("trace", "run", "-o", "a.txt", code=2).stderr)
        self.assertIn("there is 0", self.mllmsim("trace", "run", "-o", "c.json", "--step", 3, code=2).stderr)
        self.mllmsim("trace", "run", code=2)
        self.mllmsim("trace", "nothing", "-o", "c.json", code=2)
        self.assertFalse((self.dir / "c.json").exists())


class OptimusTrace(unittest.TestCase):
    """Encoders beside the pipeline send between any two stages, on streams of their own."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as directory:
            for arguments in [["run", OPTIMUS, "strategy.name=optimus", "-o", "run"], ["trace", "run", "-o", "a.json"]]:
                subprocess.run([MLLMSIM, *map(str, arguments)], cwd=directory, capture_output=True, check=True)
            cls.events = json.loads((pathlib.Path(directory) / "a.json").read_text())["traceEvents"]
        cls.threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in cls.events if e["name"] == "thread_name"}

    def test_a_stream_has_one_number_on_every_rank(self):
        self.assertTrue(any("encoder: sending to the next stage" in name for name in self.threads.values()))
        numbers = {(thread, name) for (rank, thread), name in self.threads.items()}
        self.assertEqual(len(numbers), len({thread for thread, name in numbers}))
        self.assertEqual(len(numbers), len({name for thread, name in numbers}))

    def test_every_transfer_has_one_arrow_between_its_streams(self):
        def transfers(kind):  # rank, thread and end in ns of each
            return collections.Counter(
                (e["pid"], e["tid"], round(1000 * (e["ts"] + (e["dur"] if kind == "pp_recv" else 0))))
                for e in self.events if e["ph"] == "X" and e["args"]["kind"] == kind)

        starts = {e["id"]: e for e in self.events if e["ph"] == "s"}
        ends = {e["id"]: e for e in self.events if e["ph"] == "f"}
        self.assertEqual(starts.keys(), ends.keys())
        # An arrow starts with its send and ends in the last nanosecond of its receive.
        self.assertEqual(collections.Counter((e["pid"], e["tid"], round(1000 * e["ts"])) for e in starts.values()), transfers("pp_send"))
        self.assertEqual(collections.Counter((e["pid"], e["tid"], round(1000 * e["ts"]) + 1) for e in ends.values()), transfers("pp_recv"))
        other_end = {"sending to the next stage": "receiving from the previous stage", "sending to the previous stage": "receiving from the next stage"}
        for i, start in starts.items():
            sent = self.threads[start["pid"], start["tid"]].split(" ", 2)[-1]
            received = self.threads[ends[i]["pid"], ends[i]["tid"]].split(" ", 2)[-1]
            group, way = sent.split(": ") if ": " in sent else ("", sent)
            self.assertEqual(received, f"{group}: {other_end[way]}" if group else other_end[way])
            self.assertNotEqual(start["pid"], ends[i]["pid"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
