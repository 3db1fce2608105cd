#!/usr/bin/env python3
"""Calibrate on this machine, predict, then really train, and compare: results/reality.md.

  reality.py MLLMSIM PYTHON OUT [--quick] [--page results/reality.md --picture results/pictures/reality.png]

MLLMSIM is the program, PYTHON one that has torch; OUT a folder for everything in between. In one go: profile, fit,
predict (which settles cuts and batches), and train in rounds with a further profile after each, since the machine's
speed drifts by more than the errors of interest.

--refit predicts once more from all profiles in OUT, with the program as it is: nothing is measured, and no measured
step is in it. The page then has both predictions.
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
import page  # noqa: E402

STARTED = time.time()
PROFILED_STEPS = 2


def say(text):
    print(f"[{time.time() - STARTED:5.0f} s] {text}", file=sys.stderr, flush=True)


def blocks_per_stage(case, cut):
    """Transformer blocks in each stage of a cut that counts all layers (model.py's order)."""
    llm, vit = case["model"]["llm"]["num_hidden_layers"], case["model"].get("vit", {}).get("num_hidden_layers", 0)
    first = vit + 3 if vit else 1  # behind the encoder's embedding, its blocks, the projector and the embedding
    blocks = [*range(1, vit + 1), *range(first, first + llm)]
    return [sum(a <= b < z for b in blocks) for a, z in zip(cut, cut[1:])]


def program():
    """Which state of the project this is."""
    done = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


class Reality:
    def __init__(self, options):
        self.options = options
        self.out = pathlib.Path(options.out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.rounds, self.steps = (1, 2) if options.quick else (4, 2)
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

    def calibration_jobs(self, turn):
        """One pass over everything that is measured for the calibration."""
        jobs = [dict(name="profiler", kind="profiler", repeats=8),
                dict(name="gloo", kind="gloo", sizes=all_cases.GLOO_SIZES)]
        for p in all_cases.PROFILES:
            tiles = p.get("tiles", [0] * len(p["batches"]))
            batches = [dict(groups=g, tiles=t) for g, t in zip(p["batches"], tiles)]
            jobs.append(dict(name=p["name"], kind="profile", spec=p["spec"], batches=[batches], steps=PROFILED_STEPS,
                             trace=str(self.out / f"profile.{p['name']}.{turn}")))
        return jobs

    def keep_calibration(self, results):
        """Adds what passes measured to what there is; the profiles are files already."""
        kept = self.out / "raw.json"
        raw = json.loads(kept.read_text()) if kept.exists() else dict(lines=[], profiler_us=[])
        for r in results:
            if r["name"] == "gloo":
                raw["lines"] += r["lines"]
            if r["name"] == "profiler":
                raw["profiler_us"].append(r["us"])
        kept.write_text(json.dumps(raw))

    def calibrate(self):
        for old in [*self.out.glob("profile.*.json"), *self.out.glob("raw.json")]:
            old.unlink()
        self.keep_calibration(self.workers(self.calibration_jobs(0), "calibrate")[0])
        self.fit()

    def fit(self):
        """To all that was measured so far."""
        kept = json.loads((self.out / "raw.json").read_text())
        raw = self.out / "gloo.jsonl"
        raw.write_text("\n".join(json.dumps(line) for line in
                                 [{"header": {"source": "microbenchmarks of two ranks"}}] + kept["lines"]) + "\n")
        traces = sorted(self.out.glob("profile.*.*.*.json"))
        self.mllmsim("calibrate", "import", "kineto", *traces, "--source", "profile of one rank, both busy",
                     "--profiler-us", statistics.median(kept["profiler_us"]), "--out", self.out / "profile.jsonl")
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

    def predict(self, case, folder="first"):
        """Everything that the trainer shall do and the page shall compare, before anything is trained."""
        slug = re.sub(r"[^a-z0-9]+", "-", case["name"].lower()).strip("-")
        (self.out / folder).mkdir(exist_ok=True)
        directory = self.out / folder / slug
        file, batches = directory.with_suffix(".toml"), directory.with_suffix(".batches.jsonl")
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
        """Rounds over all cases, with a pass of the calibration after each: the machine drifts."""
        jobs = []
        for number in range(self.rounds):
            jobs += [dict(p["job"], memory=number == 0) for p in predictions]
            jobs += self.calibration_jobs(number + 1)
        ranks = self.workers(jobs, "train")
        self.keep_calibration(ranks[0])
        self.collect(predictions, ranks)

    def collect(self, predictions, ranks):
        for p in predictions:
            found = [[r for r in rank if r["name"] == p["case"]["name"]] for rank in ranks]
            rounds = []
            for results in zip(*[f for f in found if f]):
                rounds.append([dict(seconds=max(s["end"] for s in same) - min(s["start"] for s in same), ranks=same)
                               for same in zip(*[r["steps"] for r in results])])
            steps = sum(rounds, [])
            p["seconds"] = sorted(s["seconds"] for s in steps)
            p["by_round"] = [statistics.median(s["seconds"] for s in r) for r in rounds]
            p["measured"] = statistics.median(p["seconds"])
            p["peak"] = max(r["peak_bytes"] for f in found for r in f if "peak_bytes" in r)
            typical = min(steps, key=lambda s: abs(s["seconds"] - p["measured"]))
            p["idle_of_steps"] = sorted(page.mean_idle(self.beside(p, self.write_trace("step", s)), "measured")
                                        for s in steps if page.pipelined(p))
            p["trace"] = self.write_trace(p["slug"], typical)
            p["beside"] = self.beside(p, p["trace"])

    def beside(self, prediction, trace):
        return json.loads(self.mllmsim("compare", prediction["directory"], "--trace", trace, "--json").stdout)

    def predict_again(self, before):
        """What was trained, predicted from all that was measured for the calibration and with the program as it is now.

        The trainer got its cut from the first prediction: where the search now finds another, it is given that one."""
        case = before["case"]
        after = self.predict(case, "again")
        if after["job"].get("cut") != before["job"].get("cut"):
            say(f"{case['name']}: the search now finds another cut than was trained; predicted is the one trained")
            after = dict(self.predict(dict(case, cut=blocks_per_stage(case, before["job"]["cut"])), "again"), case=case)
        if any(after["job"].get(key) != before["job"].get(key) for key in ("cut", "batches")):
            sys.exit(f"{case['name']}: cannot predict what was trained; measure anew")
        for key in ("seconds", "by_round", "idle_of_steps", "measured", "peak", "trace"):
            after[key] = before[key]
        after["beside"] = self.beside(after, after["trace"])
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
        say("profile and microbenchmarks")
        reality.calibrate()
        say("predict")
        predictions = [reality.predict(case) for case in reality.cases]
        say(f"train {len(predictions)} cases, {reality.rounds} rounds of {reality.steps} steps")
        reality.train(predictions)
        kept.write_text(json.dumps(dict(minutes=(time.time() - STARTED) / 60, rounds=reality.rounds, program=program(),
                                        steps=reality.steps, predictions=predictions), default=str))
    everything = json.loads(kept.read_text())
    before = None
    if options.refit:  # to all profiles, those between rounds too
        before = page.figures(everything["predictions"], all_cases.SPEED_UPS)
        say("fit and predict from all profiles")
        reality.fit()
        everything["predictions"] = json.loads(
            json.dumps([reality.predict_again(p) for p in everything["predictions"]], default=str))
    predictions = everything["predictions"]
    figures = page.figures(predictions, all_cases.SPEED_UPS)
    figures.update({key: everything.get(key, "unknown") for key in ("minutes", "rounds", "steps", "program")}, now=program())
    print(page.text(predictions, figures))
    if options.page:
        fit = (reality.out / "fit.txt").read_text()
        pathlib.Path(options.page).write_text(page.markdown(predictions, figures, fit, before))
    if options.picture:
        shown = next((p for p in predictions if p["case"]["name"] == all_cases.PICTURE), predictions[0])
        reality.mllmsim("plot", "timeline", shown["directory"], shown["trace"], "-o", options.picture)
    say("done")


if __name__ == "__main__":
    main()
