"""Figures of a comparison, for a terminal and for results/reality.md."""
import itertools
import statistics


def quantile(values, q):
    values = sorted(values)
    at = q * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])


def mean_idle(beside, which):
    return statistics.mean(lane[f"{which}_idle_share"] for lane in beside["lanes"])


def pipelined(p):
    """Where ranks wait for each other between actions; DDP and FSDP communicate inside a backward, which no log tells apart."""
    return p["case"]["kind"] == "pipeline"


def most_allocated(p):
    """Of tensors on the fullest rank: what the trainer counts. (peak_memory_bytes is what CUDA's allocator would reserve.)"""
    return max(stage["peak_allocated_bytes"] for stage in p["run"]["stages"])


def figures(predictions, speed_ups):
    for p in predictions:
        p["predicted"] = statistics.median(p["predicted_by_round"])
        p["error"] = p["predicted"] / p["measured"] - 1
        p["spread"] = (p["seconds"][-1] - p["seconds"][0]) / p["measured"]
        p["idle"] = (mean_idle(p["beside"], "predicted"), mean_idle(p["beside"], "measured"))
        if p["idle_of_steps"]:
            p["idle"] = (p["idle"][0], statistics.median(p["idle_of_steps"]))
        p["memory"] = most_allocated(p) / p["peak"] - 1
        actions = p["beside"]["actions"]
        p["durations"] = [abs(a["predicted_s"] / a["measured_s"] - 1) for a in actions if a["measured_s"] > 1e-3]
        p["starts"] = [abs(a["predicted_start_s"] - a["measured_start_s"]) / p["measured"] for a in actions]
    errors = [abs(p["error"]) for p in predictions]
    single = [abs(a / b - 1) for p in predictions for a, b in zip(p["predicted_by_round"], p["by_round"])]
    first = [p["predicted_by_round"][0] / p["measured"] - 1 for p in predictions]
    pairs = [(a, b) for a, b in itertools.combinations(predictions, 2)]
    right = sum((a["predicted"] < b["predicted"]) == (a["measured"] < b["measured"]) for a, b in pairs)
    by_name = {p["case"]["name"]: p for p in predictions}
    ups = []
    for base, other in speed_ups:
        if base not in by_name or other not in by_name:
            continue
        a, b = by_name[base], by_name[other]
        ratio = [(a[k] / a["samples"]) / (b[k] / b["samples"]) for k in ("predicted", "measured")]
        rounds = sorted((x / a["samples"]) / (y / b["samples"]) for x, y in zip(a["by_round"], b["by_round"]))
        ups.append((base, other, *ratio, rounds[0], rounds[-1]))
    return dict(median=quantile(errors, 0.5), p90=quantile(errors, 0.9), single_median=quantile(single, 0.5),
                single_p90=quantile(single, 0.9), first_median=quantile(map(abs, first), 0.5),
                first_p90=quantile(map(abs, first), 0.9), order=right / len(pairs), ups=ups,
                spread=statistics.median(p["spread"] for p in predictions),
                idle=max([abs(p["idle"][0] - p["idle"][1]) for p in predictions if pipelined(p)], default=0),
                memory=statistics.median(abs(p["memory"]) for p in predictions),
                durations=statistics.median(d for p in predictions for d in p["durations"]),
                starts=statistics.median(s for p in predictions for s in p["starts"]))


def idle_cells(p):
    if not pipelined(p):
        return ["", ""]
    low, high = p["idle_of_steps"][0], p["idle_of_steps"][-1]
    return [f"{100 * p['idle'][0]:.1f}", f"{100 * p['idle'][1]:.1f} ({100 * low:.1f} to {100 * high:.1f})"]


def rows(predictions):
    for p in predictions:
        yield [p["case"]["name"], f"{p['predicted']:.3f}", f"{p['measured']:.3f}", f"{100 * p['error']:+.1f} %",
               f"{100 * p['spread']:.0f} %", *idle_cells(p),
               f"{100 * statistics.median(p['durations']):.1f} %" if p["durations"] else "",
               f"{100 * statistics.median(p['starts']):.1f} %" if p["starts"] else "",
               f"{most_allocated(p) / 2**20:.0f}", f"{p['peak'] / 2**20:.0f}"]


HEAD = ["case", "predicted s", "measured s", "error", "spread", "idle % predicted", "measured", "durations",
        "starts", "memory MiB predicted", "measured"]


def summary(f):
    yield (f"step time: median |error| {100 * f['median']:.1f} %, p90 {100 * f['p90']:.1f} %; of measured steps of one case the "
           f"slowest is {100 * f['spread']:.0f} % above the quickest (median over cases)")
    yield (f"of single rounds, each against its own prediction: median |error| {100 * f['single_median']:.1f} %, p90 "
           f"{100 * f['single_p90']:.1f} %; all rounds against the first prediction: {100 * f['first_median']:.1f} %, p90 "
           f"{100 * f['first_p90']:.1f} %")
    yield f"order of pairs by step time: {100 * f['order']:.1f} % right"
    yield f"idle shares of pipelines: at most {100 * f['idle']:.1f} points apart"
    yield f"actions: median |error| of durations {100 * f['durations']:.1f} %, of starts {100 * f['starts']:.1f} % of the step"
    yield f"peak memory: median |error| {100 * f['memory']:.1f} %"
    for base, other, predicted, measured, low, high in f["ups"]:
        yield (f"speed-up of \"{other}\" over \"{base}\": predicted {predicted:.3f}, measured {measured:.3f} "
               f"({low:.3f} to {high:.3f} in single rounds), {100 * (predicted / measured - 1):+.1f} %")
    for name, like, (seconds, other), ratios in f.get("only_measured", []):
        yield (f"not predicted: \"{name}\" took {seconds:.3f} s, \"{like}\" {other:.3f} s: {other / seconds:.3f} times as quick "
               f"({ratios[0]:.3f} to {ratios[-1]:.3f} in single rounds)")


def text(predictions, f):
    table = [HEAD] + list(rows(predictions))
    widths = [max(len(r[i]) for r in table) for i in range(len(HEAD))]
    lines = ["  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths))) for r in table]
    return "\n".join(lines + [""] + list(summary(f)))


def markdown(predictions, f, fit):
    with open(__file__.replace("page.py", "page.template")) as template:
        words = template.read()
    table = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    table += ["| " + " | ".join(r) + " |" for r in rows(predictions)]
    again = "" if f["now"] == f["program"] else f", predicted again from the same profiles by {f['now']}"
    return words.format(cases=len(predictions), program=f["program"] + again, minutes=f"{f['minutes']:.0f}", rounds=f["rounds"],
                        steps=f["steps"], table="\n".join(table), summary="\n".join(f"- {line}" for line in summary(f)),
                        fit=fit.strip())
