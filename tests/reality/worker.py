"""One rank: trains cases with torch.distributed.pipelining, DDP or FSDP2 on gloo, and says what they took.

  worker.py RANK RANKS STORE JOBS OUT

JOBS is a list of jobs in JSON, each a case of cases.py as written out by reality.py:
  {"name", "spec", "kind": "single" | "pipeline" | "ddp" | "fsdp" | "profile" | "profiler" | "gloo", "cut": [first layer of each stage, ..., layers],
   "chunks": stages per rank, "batches": [replica][{"groups": [[length, count]], "tiles"}], "steps", "trace": file}
Every rank runs every job, one after the other; ranks that have no part in one wait. OUT gets a line per job: for each
step its seconds (from a barrier to when the last rank has updated its parameters), and of the last step the spans of
actions ("PP:0F1": stage 0, forward, micro-batch 1, as the profiler names them), on a clock that ranks share.
"""
import dataclasses
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
from torch.distributed.pipelining.schedules import ScheduleInterleavedZeroBubble
from torch.nn.parallel import DistributedDataParallel

import model

HEAP_BYTES = 2 << 30
SCHEDULES = {"1f1b": Schedule1F1B, "interleaved": ScheduleInterleaved1F1B, "zero-bubble": ScheduleInterleavedZeroBubble}


class Spans:
    """Actions of a step; CLOCK_MONOTONIC is the same for all processes of a machine."""

    def __init__(self):
        self.list = []

    def run(self, name, function, *args, **kwargs):
        start = time.monotonic()
        try:
            return function(*args, **kwargs)
        finally:
            self.list.append((name, start, time.monotonic()))


class TimedStage(PipelineStage):
    """A stage whose actions are timed and whose micro-batches may differ in size.

    PyTorch's stages expect one size; here every micro-batch has the sizes of its own batch.
    """

    def __init__(self, spans, batches, sizes, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.spans, self.batches, self.sizes = spans, batches, sizes

    def _validate_stage_tensors(self, desc, expected, actual):
        pass

    def _sized(self, infos, sizes):
        for index, batch in enumerate(self.batches):
            for info in infos[index]:
                if info.tensor_meta is not None and not info.is_root_arg:
                    like = torch.empty(sizes(batch), device="meta")
                    info.tensor_meta = dataclasses.replace(info.tensor_meta, shape=like.shape, stride=like.stride())

    def _setup_forward_recv_info(self, count, has_backward):
        super()._setup_forward_recv_info(count, has_backward)
        if not self.is_first:
            self._sized(self.args_recv_info, self.sizes[0])

    def _setup_backward_recv_info(self, count):
        super()._setup_backward_recv_info(count)
        if not self.is_last:
            self._sized(self.grad_recv_info, self.sizes[1])

    def forward_one_chunk(self, chunk, *args, **kwargs):
        return self.spans.run(f"PP:{self.stage_index}F{chunk}", super().forward_one_chunk, chunk, *args, **kwargs)

    def backward_one_chunk(self, chunk, *args, **kwargs):
        full = kwargs.get("full_backward", True)
        name = f"PP:{self.stage_index}{'B' if full else 'I'}{chunk}"
        return self.spans.run(name, super().backward_one_chunk, chunk, *args, **kwargs)

    def backward_weight_one_chunk(self, chunk, *args, **kwargs):
        return self.spans.run(f"PP:{self.stage_index}W{chunk}", super().backward_weight_one_chunk, chunk, *args, **kwargs)


def optimizer_of(modules):
    trained = [p for m in modules for p in m.parameters() if p.requires_grad]
    return torch.optim.AdamW(trained or [torch.zeros(1)], lr=1e-4, fused=True)  # of a frozen stage: nothing


class Pipeline:
    def __init__(self, job, rank, ranks, spans):
        spec, cut, chunks = job["spec"], job["cut"], job.get("chunks", 1)
        self.batches = [model.make_batch(spec, b["groups"], b["tiles"]) for b in job["batches"][0]]
        self.last = len(cut) - 2
        self.stages, self.modules = [], []
        for chunk in range(chunks):
            index = chunk * ranks + rank
            module = model.Stage(spec, cut[index], cut[index + 1])
            sizes = [None if index == 0 else model.boundary_width(spec, cut[index]),
                     None if index == self.last else model.boundary_width(spec, cut[index + 1])]
            first = self.batches[0]
            received = torch.empty(sizes[0](first) if sizes[0] else (1,),
                                   requires_grad=model.has_gradient(spec, cut[index]))
            made = torch.empty(sizes[1](first) if sizes[1] else (first.tokens, spec["llm"]["vocab_size"]),
                               requires_grad=model.has_gradient(spec, cut[index + 1]))
            self.modules.append(module)
            self.stages.append(TimedStage(spans, self.batches, sizes, module, index, len(cut) - 1, torch.device("cpu"),
                                          input_args=(received,), output_args=(made,)))
        make = SCHEDULES[job.get("schedule", "1f1b" if chunks == 1 else "interleaved")]
        one = make in (Schedule1F1B,)
        self.schedule = make(self.stages[0] if one else self.stages, len(self.batches),
                             loss_fn=lambda out, batch: model.loss_of(out, batch), scale_grads=False)
        self.rank, self.ranks = rank, ranks

    def step(self):
        arguments = [((torch.zeros(1),) if self.rank == 0 else ()) for _ in self.batches]
        last = self.rank == self.last % self.ranks
        self.schedule.step(arg_mbs=arguments, kwarg_mbs=[{"batch": b} for b in self.batches],
                           target_mbs=self.batches if last else None, losses=[] if last else None,
                           return_outputs=False)  # nobody asks for the logits of all micro-batches


class Whole:
    """The whole model on every rank: alone, under DDP or FSDP2."""

    def __init__(self, job, rank, spans):
        spec = job["spec"]
        self.spans, self.kind = spans, job["kind"]
        self.batches = [model.make_batch(spec, b["groups"], b["tiles"])
                        for b in job["batches"][rank % len(job["batches"])]]
        self.inner = model.Stage(spec, 0, len(model.layers_of(spec)))
        self.modules = [self.inner]
        self.outer = self.inner
        if self.kind == "ddp":
            self.outer = DistributedDataParallel(self.inner, gradient_as_bucket_view=True)
        elif self.kind == "fsdp":
            for layer in self.inner.layers:
                fully_shard(layer)
            fully_shard(self.inner)

    def step(self):
        for index, batch in enumerate(self.batches):
            last = index == len(self.batches) - 1
            if self.kind == "ddp":
                self.outer.require_backward_grad_sync = last
            loss = model.loss_of(self.spans.run(f"PP:0F{index}", self.outer, batch=batch), batch)
            self.spans.run(f"PP:0B{index}", loss.backward)


def peak_bytes(step, held):
    """Bytes of tensors at their most: what is held between steps, and what the allocator gave out since."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step()
    most = now = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    return held + most


def held_bytes(trainer, optimizer):
    """Of tensors between steps: this rank's parameters and moments, and DDP's buckets."""
    def local(tensor):  # FSDP2's are DTensors, whose size is that of all ranks' together
        return (tensor.to_local() if hasattr(tensor, "to_local") else tensor).numel() * 4

    parameters = [p for m in trainer.modules for p in m.parameters()]
    held = sum(map(local, parameters))
    held += sum(local(t) for s in optimizer.state.values() for t in s.values() if t.dim() > 0)
    if getattr(trainer, "kind", "") == "ddp":
        held += sum(local(p) for p in parameters if p.requires_grad)
    return held


def recorded():
    """A profiler of this rank's operators with their shapes."""
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True)


def profiler_us(job, rank):
    """What the profiler adds for each operator it records: steps of a model too small to compute, with it and without."""
    spec = {"llm": dict(num_hidden_layers=8, hidden_size=64, num_attention_heads=1, intermediate_size=64, vocab_size=64,
                        max_position_embeddings=64)}
    stage = model.Stage(spec, 0, len(model.layers_of(spec)))
    batch = model.make_batch(spec, [(8, 1)])

    def step():
        for _ in range(10):
            model.loss_of(stage(batch=batch), batch).backward()

    def seconds():
        start = time.monotonic()
        step()
        return time.monotonic() - start

    step()
    plain, with_it = [], []
    for _ in range(job["repeats"]):
        plain.append(seconds())
        with recorded() as p:
            with_it.append(seconds())
        operators = sum(e.name() != "[memory]" for e in p.profiler.kineto_results.events())
    dist.barrier()
    added = min(with_it) - min(plain)
    return {"name": job["name"], "rank": rank, "us": max(0, added / operators * 1e6)}


def profile(job, rank):
    """Steps of a whole model on each rank at once; the first rank's are recorded with shapes."""
    spec = job["spec"]
    stage = model.Stage(spec, 0, len(model.layers_of(spec)))
    optimizer = optimizer_of([stage])
    batches = [model.make_batch(spec, b["groups"], b["tiles"]) for b in job["batches"][0]]

    def step():
        for batch in batches:
            model.loss_of(stage(batch=batch), batch).backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    for index in range(job["steps"]):
        dist.barrier()
        if rank > 0:
            step()
            continue
        with recorded() as p:
            step()
        p.export_chrome_trace(f"{job['trace']}.{index}.json")
    dist.barrier()
    return None


def timed(function, repeats):
    out = []
    for _ in range(repeats):
        dist.barrier()
        start = time.monotonic()
        function()
        out.append(time.monotonic() - start)
    return sorted(out)[len(out) // 2]


def optimizers():
    """AdamW over matrices of a model's size: a trace does not say how large the tensors of a list are."""
    lines = []
    for matrices in (1, 3, 10, 30, 60):
        tensors = [torch.nn.Parameter(torch.zeros(512, 1024)) for _ in range(matrices)]
        for t in tensors:
            t.grad = torch.zeros_like(t)
        optimizer = torch.optim.AdamW(tensors, lr=1e-4, fused=True)
        optimizer.step()
        values = sum(t.numel() for t in tensors)
        # Parameter and two moments read and written, the gradient read.
        lines.append({"part": "memory_bound", "op": "optimizer", "rows": 1, "row_length": values,
                      "bytes": 7 * 4 * values, "us": timed(optimizer.step, 5) * 1e6})
    return lines


def slowed_product():
    """Products while gradients are reduced: gloo's threads run on the rank's own core."""
    data = torch.zeros(1 << 22)
    a, b = torch.ones(512, 512), torch.ones(512, 2048)

    def products():
        for _ in range(20):
            torch.mm(a, b)

    def both():
        work = dist.all_reduce(data, async_op=True)
        products()
        work.wait()

    alone, reduce, together = (timed(f, 9) for f in (products, lambda: dist.all_reduce(data), both))
    lost = min(0.95, max(0.0, (together - alone) / reduce))  # of a second, for each of communication
    return {"part": "overlap", "slowdown": 1 / (1 - lost)}


def gloo(job, rank):
    """Collectives, messages and the optimizer of two ranks, as lines of raw measurements; sizes in bytes."""
    lines = []
    for size in job["sizes"]:
        whole = torch.zeros(size // 4)
        half = torch.zeros(size // 8)

        def there_and_back(tensor=whole):
            for turn in (0, 1):
                op = dist.isend if turn == rank else dist.irecv
                for work in dist.batch_isend_irecv([dist.P2POp(op, tensor, 1 - rank)]):
                    work.wait()

        repeats = max(5, min(40, (1 << 26) // size))
        for op, function in (("all_reduce", lambda: dist.all_reduce(whole)),
                             ("all_gather", lambda: dist.all_gather_into_tensor(whole, half)),
                             # As FSDP2 asks for it.
                             ("reduce_scatter", lambda: dist.reduce_scatter_tensor(half, whole, dist.ReduceOp.AVG))):
            us = timed(function, repeats) * 1e6
            lines.append({"part": "collective", "op": op, "ranks": 2, "nodes": 1, "bytes": size, "us": us})
        us = timed(there_and_back, repeats) / 2 * 1e6
        lines.append({"part": "p2p", "same_node": True, "bytes": size, "us": us})
    lines += optimizers() + [slowed_product()]
    return {"name": job["name"], "rank": rank, "lines": lines}


def run(job, rank, ranks):
    spans = Spans()
    torch.manual_seed(1)
    alone = job["kind"] == "single"
    if job["kind"] == "profile":
        return profile(job, rank)
    if job["kind"] == "gloo":
        return gloo(job, rank)
    if job["kind"] == "profiler":
        return profiler_us(job, rank)
    if alone and rank > 0:
        for _ in range(job["steps"] + 3):
            dist.barrier()
        return None
    trainer = Pipeline(job, rank, ranks, spans) if job["kind"] == "pipeline" else Whole(job, rank, spans)
    optimizer = optimizer_of(trainer.modules)

    def step():
        trainer.step()
        spans.run("optimizer", optimizer.step)
        spans.run("zero_grad", optimizer.zero_grad)

    seconds, spread = [], []
    for index in range(job["steps"] + 1):
        dist.barrier()
        spans.list.clear()
        start = time.monotonic()
        step()
        end = time.monotonic()
        if index > 0:
            seconds.append(end - start)
            spread.append({"start": start, "end": end, "spans": list(spans.list)})
    dist.barrier()
    out = {"name": job["name"], "rank": rank, "seconds": seconds, "steps": spread}
    if job.get("memory"):
        out["peak_bytes"] = peak_bytes(step, held_bytes(trainer, optimizer))
    dist.barrier()
    return out


def main():
    rank, ranks = int(sys.argv[1]), int(sys.argv[2])
    os.sched_setaffinity(0, {rank % os.cpu_count()})
    torch.set_num_threads(1)
    # Pages are touched once, not in the middle of whatever first needs them (malloc keeps what it has: reality.py).
    torch.empty(HEAP_BYTES // 4).fill_(0)
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=rank, world_size=ranks)
    with open(sys.argv[4]) as f:
        jobs = json.load(f)
    with open(f"{sys.argv[5]}.{rank}", "w") as out:
        for job in jobs:
            result = run(job, rank, ranks)
            if result:
                print(json.dumps(result), file=out, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
