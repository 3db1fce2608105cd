#!/usr/bin/env python3
"""Calibrate on this machine, predict, then really train, and compare: results/reality.md.

  reality.py MLLMSIM PYTHON OUT [--quick] [--page results/reality.md --picture results/pictures/reality.png]

MLLMSIM is the program, PYTHON one that has torch; OUT a folder for everything in between. In rounds, since the
machine's speed drifts within minutes by more than the errors of interest: profile, fit, predict every case, and only
then train every case once. A round's prediction rests on the last two profiles before it and on no trained step. The
first round settles cuts and batches.

--refit predicts every round once more from its own profiles, with the program as it is: nothing is measured.
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
        self.kept = self.out / "measured.json"
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

    def calibrate(self, turn):
        """One pass over everything that is measured for the calibration; turns are numbered through a run."""
        jobs = [dict(name="profiler", kind="profiler", repeats=8),
                dict(name="gloo", kind="gloo", sizes=all_cases.GLOO_SIZES)]
        for p in all_cases.PROFILES:
            tiles = p.get("tiles", [0] * len(p["batches"]))
            batches = [dict(groups=g, tiles=t) for g, t in zip(p["batches"], tiles)]
            jobs.append(dict(name=p["name"], kind="profile", spec=p["spec"], batches=[batches], steps=PROFILED_STEPS,
                             trace=str(self.out / f"profile.{p['name']}.{turn}")))
        results = self.workers(jobs, f"calibrate.{turn}")[0]
        found = {r["name"]: r for r in results}
        (self.out / f"raw.{turn}.json").write_text(
            json.dumps(dict(lines=found["gloo"]["lines"], profiler_us=found["profiler"]["us"])))

    def fit(self, number):
        """What is known before a round: the last two turns of the calibration."""
        turns = (number, number + 1)
        kept = [json.loads((self.out / f"raw.{turn}.json").read_text()) for turn in turns]
        raw = self.out / f"gloo.{number}.jsonl"
        raw.write_text("\n".join(json.dumps(line) for line in
                                 [{"header": {"source": "microbenchmarks of two ranks"}}] +
                                 [line for k in kept for line in k["lines"]]) + "\n")
        traces = sorted(t for turn in turns for t in self.out.glob(f"profile.*.{turn}.*.json"))
        profile = self.out / f"profile.{number}.jsonl"
        self.mllmsim("calibrate", "import", "kineto", *traces, "--source", "profile of one rank, both busy",
                     "--profiler-us", statistics.median(k["profiler_us"] for k in kept), "--out", profile)
        self.calibration = self.out / f"calibration.{number}.json"
        fit = self.mllmsim("calibrate", "fit", profile, raw, "--gpu", "cpu-core",
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

    def predict(self, case, number):
        """Everything that the trainer shall do and the page shall compare, before anything of this round is trained."""
        slug = re.sub(r"[^a-z0-9]+", "-", case["name"].lower()).strip("-")
        folder = self.out / f"round-{number}"
        folder.mkdir(exist_ok=True)
        directory = folder / slug
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

    def predict_as(self, job, case, number):
        """A later round's prediction of what the first settled: where the search now finds another cut, it is given that one."""
        made = self.predict(case, number)
        if made["job"].get("cut") != job.get("cut"):
            say(f"{case['name']}: the search now finds another cut than is trained; predicted is the one trained")
            made = dict(self.predict(dict(case, cut=blocks_per_stage(case, job["cut"])), number), case=case)
        if any(made["job"].get(key) != job.get(key) for key in ("cut", "batches")):
            sys.exit(f"{case['name']}: cannot predict what was trained; measure anew")
        return made

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

    def measure(self):
        """Rounds: profile, fit, predict every case, train every case."""
        for old in [*self.out.glob("profile.*"), *self.out.glob("raw.*"), self.kept]:
            old.unlink(missing_ok=True)
        self.calibrate(0)
        rounds = []
        for number in range(self.rounds):
            say(f"round {number + 1} of {self.rounds}: profile and predict")
            self.calibrate(number + 1)
            self.fit(number)
            predictions = self.predict_round(number, rounds[0]["predictions"] if rounds else None)
            say(f"round {number + 1} of {self.rounds}: train {len(predictions)} cases, {self.steps} steps each")
            jobs = [dict(p["job"], memory=number == 0) for p in predictions] + [
                dict(next(p for p in predictions if p["case"]["name"] == like)["job"], name=name, schedule=schedule)
                for name, like, schedule in all_cases.ONLY_MEASURED if not self.options.quick]
            rounds.append(dict(predictions=predictions, ranks=self.workers(jobs, f"train.{number}")))
        self.kept.write_text(json.dumps(dict(minutes=(time.time() - STARTED) / 60, program=program(), steps=self.steps,
                                             rounds=rounds), default=str))

    def predict_round(self, number, settled):
        if settled is None:
            return [self.predict(case, number) for case in self.cases]
        return [self.predict_as(p["job"], p["case"], number) for p in settled]

    def refit(self, rounds):
        """Every round predicted from the profiles before it, by the program as it is."""
        for number, r in enumerate(rounds):
            say(f"round {number + 1} of {len(rounds)}: fit and predict")
            self.fit(number)
            r["predictions"] = json.loads(json.dumps(self.predict_round(number, r["predictions"]), default=str))

    @staticmethod
    def steps_of(name, ranks):
        """Steps of a case in one round, and the most that a rank's tensors took."""
        found = [[r for r in rank if r["name"] == name] for rank in ranks]
        same = [f[0] for f in found if f]
        steps = [dict(seconds=max(s["end"] for s in at) - min(s["start"] for s in at), ranks=at)
                 for at in zip(*[r["steps"] for r in same])]
        return steps, max(r.get("peak_bytes", 0) for r in same)

    def collect(self, rounds):
        """Of every case what was predicted and what was measured, round by round."""
        out = []
        for index, first in enumerate(rounds[0]["predictions"]):
            each = [r["predictions"][index] for r in rounds]
            measured = [self.steps_of(first["case"]["name"], r["ranks"]) for r in rounds]
            steps = [(p, s) for p, (found, _) in zip(each, measured) for s in found]
            p = dict(case=first["case"], samples=first["samples"], peak=max(peak for _, peak in measured),
                     seconds=sorted(s["seconds"] for _, s in steps),
                     predicted_by_round=[p["run"]["iteration_s"] for p in each],
                     by_round=[statistics.median(s["seconds"] for s in found) for found, _ in measured])
            p["measured"] = statistics.median(p["seconds"])
            p["idle_of_steps"] = sorted(page.mean_idle(self.beside(made, self.write_trace("step", s)), "measured")
                                        for made, s in steps if page.pipelined(p))
            made, typical = min(steps, key=lambda s: abs(s[1]["seconds"] - p["measured"]))
            p.update(run=made["run"], directory=made["directory"], trace=self.write_trace(first["slug"], typical))
            p["beside"] = self.beside(p, p["trace"])
            out.append(p)
        return out

    def only_measured(self, rounds):
        """Medians of what the simulator refuses, beside the case that it resembles."""
        for name, like, _ in all_cases.ONLY_MEASURED:
            both = [[statistics.median(s["seconds"] for s in self.steps_of(n, r["ranks"])[0]) for r in rounds]
                    for n in (name, like)]
            yield name, like, [statistics.median(b) for b in both], sorted(b / a for a, b in zip(*both))

    def beside(self, prediction, trace):
        return json.loads(self.mllmsim("compare", prediction["directory"], "--trace", trace, "--json").stdout)

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
    if not options.again and not options.refit:
        reality.measure()
    everything = json.loads(reality.kept.read_text())
    rounds = everything["rounds"]
    if options.refit:
        reality.refit(rounds)
    predictions = reality.collect(rounds)
    figures = page.figures(predictions, all_cases.SPEED_UPS)
    figures.update(minutes=everything["minutes"], steps=everything["steps"], rounds=len(rounds), program=everything["program"],
                   now=program() if options.refit else everything["program"],
                   only_measured=[] if options.quick else list(reality.only_measured(rounds)))
    print(page.text(predictions, figures))
    if options.page:
        pathlib.Path(options.page).write_text(page.markdown(predictions, figures, (reality.out / "fit.txt").read_text()))
    if options.picture:
        shown = next((p for p in predictions if p["case"]["name"] == all_cases.PICTURE), predictions[0])
        reality.mllmsim("plot", "timeline", shown["directory"], shown["trace"], "-o", options.picture)
    say("done")


if __name__ == "__main__":
    main()
