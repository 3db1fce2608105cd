#!/usr/bin/env python3
"""Calibrate on this machine, predict, then really train, and compare: results/reality.md.

  reality.py MLLMSIM PYTHON OUT [--quick] [--page results/reality.md --picture results/pictures/reality.png]

MLLMSIM is the program, PYTHON one that has torch; OUT a folder for everything in between. Nothing is adjusted between
prediction and measurement: profile, fit, predict and train in one go.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import cases as all_cases  # noqa: E402

STARTED = time.time()


def say(text):
    print(f"[{time.time() - STARTED:5.0f} s] {text}", file=sys.stderr, flush=True)


class Reality:
    def __init__(self, options):
        self.options = options
        self.out = pathlib.Path(options.out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.rounds, self.steps = (1, 2) if options.quick else (2, 2)
        self.cases = all_cases.CASES[::4] if options.quick else all_cases.CASES

    def mllmsim(self, *arguments):
        done = subprocess.run([self.options.mllmsim, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"mllmsim {' '.join(map(str, arguments))}: {done.stderr}")
        return done

    # Two processes, a core each, in front of everything else on the machine where that is allowed.
    def workers(self, jobs, name):
        jobs_file, out = self.out / f"{name}.jobs.json", self.out / f"{name}.out"
        jobs_file.write_text(json.dumps(jobs))
        store = self.out / f"{name}.store"
        store.unlink(missing_ok=True)
        # Memory that was freed is used again, as a GPU's allocator does; otherwise every large tensor is a page fault.
        environment = dict(os.environ, MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_="100000000000",
                           MALLOC_TOP_PAD_="67108864", KINETO_LOG_LEVEL="5", OMP_NUM_THREADS="1")

        def first():
            os.setsid()
            try:
                os.nice(-15)
                pathlib.Path("/proc/self/autogroup").write_text("-15")
            except OSError:
                pass

        processes = [subprocess.Popen([self.options.python, HERE / "worker.py", str(rank), "2", store, jobs_file, out],
                                      env=environment, preexec_fn=first, stderr=open(f"{out}.{rank}.err", "w"))
                     for rank in (0, 1)]
        if any([p.wait() for p in processes]):
            sys.exit(f"a worker failed: see {out}.0.err and {out}.1.err")
        return [[json.loads(line) for line in open(f"{out}.{rank}")] for rank in (0, 1)]

    def calibrate(self):
        jobs = [dict(name="gloo", kind="gloo", sizes=all_cases.GLOO_SIZES)]
        for p in all_cases.PROFILES:
            tiles = p.get("tiles", [0] * len(p["batches"]))
            batches = [dict(groups=g, tiles=t) for g, t in zip(p["batches"], tiles)]
            jobs.append(dict(name=p["name"], kind="profile", spec=p["spec"], batches=[batches], steps=3,
                             trace=str(self.out / f"profile.{p['name']}")))
        lines = self.workers(jobs, "calibrate")[0][0]["lines"]
        (self.out / "gloo.jsonl").write_text(
            "\n".join(json.dumps(line) for line in [{"header": {"source": "gloo, two ranks"}}] + lines) + "\n")
        self.fit()

    def fit(self):
        raw = self.out / "gloo.jsonl"
        traces = [self.out / f"profile.{p['name']}.{i}.json" for p in all_cases.PROFILES for i in range(3)]
        self.mllmsim("calibrate", "import", "kineto", *traces, "--source", "profile of one rank, both busy",
                     "--out", self.out / "profile.jsonl")
        self.calibration = self.out / "calibration.json"
        fit = self.mllmsim("calibrate", "fit", self.out / "profile.jsonl", raw, "--gpu", "cpu-core",
                           "--describe", "a core of this machine", "--out", self.calibration)
        (self.out / "fit.txt").write_text(fit.stderr)
        self.link = json.loads(self.calibration.read_text())["gpu"]["nvlink_gb_per_s"]

    def scenario(self, case):
        llm, vit = case["model"]["llm"], case["model"].get("vit")
        ranks = 1 if case["kind"] == "single" else 2
        pp = 2 if case["kind"] == "pipeline" else 1
        lines = ["precision = \"fp32\"", "software = \"pytorch-cpu-2026\"", f"calibration = \"{self.calibration}\"",
                 f"recompute = \"{case.get('recompute', 'none')}\"",
                 "[cluster]", "topology = \"nvlink-domain\"", "nodes = 1", f"gpus_per_node = {ranks}",
                 "gpu_memory = \"8 GiB\"", f"nvlink_bandwidth = \"{2 * self.link} GB/s\"", "gpu_speed_spread = 0"]
        blocks = ["qkv_bias = false", "linear_bias = false"]
        lines += ["[model.llm]"] + [f"{k} = {v}" for k, v in llm.items()] + blocks
        if vit:
            keys = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "image_size", "patch_size")
            lines += ["[[model.encoders]]"] + [f"{k} = {vit[k]}" for k in keys] + blocks
            lines += ["pixel_shuffle = 0.5", f"projector = [{4 * vit['hidden_size']}, {llm['hidden_size']}, {llm['hidden_size']}]",
                      "projector_bias = false", f"trained = {'false' if case.get('frozen') else 'true'}"]
        lines += ["[parallelism]", f"pipeline_model_parallel_size = {pp}",
                  f"virtual_pipeline_stages = {case.get('chunks', 1)}", f"zero_stage = {3 if case['kind'] == 'fsdp' else 0}"]
        if "data" in case:
            samples = all_cases.samples()
            lengths = self.out / "lengths.csv"
            lengths.write_text("vit_num,token_num\n" + "".join(f"{a},{b}\n" for a, b in samples))
            lines += [f"micro_batch_size = {case['micro_batch_size']}", f"global_batch_size = {len(samples)}",
                      "[data]", f"set = \"{lengths}\"", "steps = 1",
                      f"batching = \"{'isf' if case.get('packs') else 'random'}\"", "equal_batch = true"]
            if case.get("packs"):
                lines += ["pack_tiles = 9", "pack_tokens = 420"]
        else:
            dp = ranks // pp
            lines += [f"micro_batch_size = {case['count']}", f"global_batch_size = {case['count'] * case['micro_batches'] * dp}",
                      "[data]", "samples = 1000", f"tokens_per_sample = {case['length']}"]
        strategy = case.get("strategy", {"name": "fsdp"} if case["kind"] == "fsdp" else {"name": "baseline"})
        if "cut" in case:
            strategy = {"name": "baseline", "partition": "given", "layers_per_stage": case["cut"]}
        lines += ["[strategy]"] + [f"{k} = {json.dumps(v)}" for k, v in strategy.items()]
        return "\n".join(lines) + "\n"

    def predict(self, case):
        """Everything that the trainer shall do and the page shall compare, before anything is trained."""
        slug = re.sub(r"[^a-z0-9]+", "-", case["name"].lower()).strip("-")
        file, directory, batches = self.out / f"{slug}.toml", self.out / slug, self.out / f"{slug}.batches.jsonl"
        file.write_text(self.scenario(case))
        run = json.loads(self.mllmsim("run", file, "-o", directory, "--batches", batches, "--json").stdout)["runs"][0]
        replicas = {}
        for line in map(json.loads, open(batches)):
            tiles = sum(count for _, count in line["encoders"][0]) if line["encoders"] else 0
            replicas.setdefault(line["replica"], []).append(dict(groups=line["llm"], tiles=tiles, samples=line["samples"]))
        spec = dict(case["model"], recompute=case.get("recompute"))
        if case.get("frozen"):
            spec["vit"] = dict(spec["vit"], trained=False)
        job = dict(name=case["name"], kind=case["kind"], spec=spec, batches=[replicas[r] for r in sorted(replicas)],
                   chunks=case.get("chunks", 1), steps=self.steps)
        if case["kind"] == "pipeline":
            job["cut"] = self.cut(case, run)
        return dict(case=case, slug=slug, directory=directory, run=run, job=job,
                    samples=sum(b["samples"] for r in replicas.values() for b in r))

    @staticmethod
    def cut(case, run):
        if case.get("chunks", 1) > 1:  # embedding in front, head behind
            ends = [0]
            for i, blocks in enumerate(case["cut"]):
                ends.append(ends[-1] + blocks + (i == 0) + (i == len(case["cut"]) - 1))
            return ends
        ends = [0]
        for stage in run["stages"]:
            layers = 0
            for item in stage["layers"].split(", "):
                times = re.match(r"(\d+) x ", item)
                layers += int(times[1]) if times else 1
            ends.append(ends[-1] + layers)
        return ends

    def train(self, predictions):
        jobs = []
        for number in range(self.rounds):
            jobs += [dict(p["job"], memory=number == 0) for p in predictions]
        self.collect(predictions, self.workers(jobs, "train"))

    def collect(self, predictions, ranks):
        for p in predictions:
            found = [[r for r in rank if r["name"] == p["case"]["name"]] for rank in ranks]
            steps = []
            for results in zip(*[f for f in found if f]):
                for same in zip(*[r["steps"] for r in results]):
                    steps.append(dict(seconds=max(s["end"] for s in same) - min(s["start"] for s in same), ranks=same))
            p["seconds"] = sorted(s["seconds"] for s in steps)
            p["measured"] = statistics.median(p["seconds"])
            p["peak"] = max(r["peak_bytes"] for f in found for r in f if "peak_bytes" in r)
            typical = min(steps, key=lambda s: abs(s["seconds"] - p["measured"]))
            p["trace"] = self.write_trace(p["slug"], typical)
            beside = self.mllmsim("compare", p["directory"], "--trace", p["trace"], "--json").stdout
            p["beside"] = json.loads(beside)

    def predict_again(self, before):
        """With the program as it is now, from the kept profile, what was trained then."""
        after = self.predict(before["case"])
        for key in ("cut", "batches"):
            if after["job"].get(key) != before["job"].get(key):
                sys.exit(f"{before['case']['name']}: another {key} than was trained; measure anew")
        for key in ("seconds", "measured", "peak", "trace"):
            after[key] = before[key]
        after["beside"] = json.loads(self.mllmsim("compare", after["directory"], "--trace", after["trace"], "--json").stdout)
        return after

    def write_trace(self, slug, step):
        events = []
        for rank, part in enumerate(step["ranks"]):
            for name, start, end in part["spans"]:
                events.append(dict(ph="X", cat="user_annotation", name=name, pid=rank, tid=0, ts=start * 1e6,
                                   dur=(end - start) * 1e6))
        file = self.out / f"{slug}.trace.json"
        file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        return file


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mllmsim")
    parser.add_argument("python")
    parser.add_argument("out")
    parser.add_argument("--quick", action="store_true", help="every fourth case, one round")
    parser.add_argument("--again", action="store_true", help="the page of what OUT holds, nothing is measured")
    parser.add_argument("--refit", action="store_true", help="fit and predict anew from what OUT holds, nothing is measured")
    parser.add_argument("--page")
    parser.add_argument("--picture")
    options = parser.parse_args()
    reality = Reality(options)
    kept = reality.out / "measured.json"
    if not options.again and not options.refit:
        say("profile and microbenchmark")
        reality.calibrate()
        say("predict")
        predictions = [reality.predict(case) for case in reality.cases]
        say(f"train {len(predictions)} cases, {reality.rounds} rounds of {reality.steps} steps")
        reality.train(predictions)
        minutes = (time.time() - STARTED) / 60
        kept.write_text(json.dumps(dict(minutes=minutes, rounds=reality.rounds, steps=reality.steps,
                                        predictions=predictions), default=str))
    everything = json.loads(kept.read_text())
    if options.refit:
        reality.fit()
        everything["predictions"] = json.loads(
            json.dumps([reality.predict_again(p) for p in everything["predictions"]], default=str))
    predictions = everything["predictions"]
    import page
    figures = page.figures(predictions, all_cases.SPEED_UPS)
    figures.update({key: everything[key] for key in ("minutes", "rounds", "steps")})
    print(page.text(predictions, figures))
    if options.page:
        fit = (reality.out / "fit.txt").read_text()
        pathlib.Path(options.page).write_text(page.markdown(predictions, figures, fit))
    if options.picture:
        shown = next((p for p in predictions if p["case"]["name"] == all_cases.PICTURE), predictions[0])
        reality.mllmsim("plot", "timeline", shown["directory"], shown["trace"], "-o", options.picture)
    say("done")


if __name__ == "__main__":
    main()
