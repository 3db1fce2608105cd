"""What is trained: two models, and the ways to train them. Every case is predicted before it is run.

A case: model, ranks and how they share the work ("kind" as in worker.py), micro-batches of equal sequences (length,
count) or a data set, and the strategy that cuts the model. Cuts count transformer blocks per model stage.
"""
import random

GPT = {"llm": dict(num_hidden_layers=8, hidden_size=512, num_attention_heads=8, intermediate_size=2048,
                   vocab_size=4096, max_position_embeddings=1024)}
VL = {"llm": dict(num_hidden_layers=6, hidden_size=384, num_attention_heads=6, intermediate_size=1536,
                  vocab_size=4096, max_position_embeddings=1024),
      "vit": dict(num_hidden_layers=12, hidden_size=256, num_attention_heads=4, intermediate_size=1024,
                  tokens_per_tile=65, patches_per_side=8, patch_values=192, image_size=64, patch_size=8)}
TILE = 16  # LLM tokens of a tile: 8 x 8 patches, joined two by two


def samples(count=16, seed=7):
    """(tiles, tokens) of a data set: mostly small pictures, some of many tiles; texts of any length."""
    draw = random.Random(seed)
    out = []
    for _ in range(count):
        tiles = draw.choice([1, 1, 1, 2, 2, 4, 6, 8])
        out.append((tiles, tiles * TILE + int(16 * 2 ** draw.uniform(0, 4))))
    return out


def gpt(name, length, count, micro_batches, kind="pipeline", **more):
    return dict(name=name, model=GPT, kind=kind, length=length, count=count, micro_batches=micro_batches, **more)


def vl(name, kind="pipeline", **more):
    return dict(name=name, model=VL, kind=kind, data=True, micro_batch_size=more.pop("micro_batch_size", 2), **more)


CASES = [
    gpt("gpt, one rank", 128, 2, 2, "single"),
    gpt("gpt, one rank, long", 512, 1, 1, "single"),
    gpt("gpt, one rank, recompute", 128, 2, 2, "single", recompute="full"),
    gpt("gpt, pp 2, m 2", 128, 2, 2, cut=[4, 4]),
    gpt("gpt, pp 2, m 4", 128, 2, 4, cut=[4, 4]),
    gpt("gpt, pp 2, m 8", 128, 1, 8, cut=[4, 4]),
    gpt("gpt, pp 2, m 16", 128, 1, 16, cut=[4, 4]),
    gpt("gpt, pp 2, m 4, long", 512, 1, 4, cut=[4, 4]),
    gpt("gpt, pp 2, m 8, short", 64, 1, 8, cut=[4, 4]),
    gpt("gpt, pp 2, m 4, cut 3 5", 128, 2, 4, cut=[3, 5]),
    gpt("gpt, pp 2, m 4, cut 5 3", 128, 2, 4, cut=[5, 3]),
    gpt("gpt, pp 2, m 8, cut 6 2", 128, 1, 8, cut=[6, 2]),
    gpt("gpt, pp 2, interleaved, m 4", 128, 2, 4, cut=[2, 2, 2, 2], chunks=2),
    gpt("gpt, pp 2, interleaved, m 8", 128, 1, 8, cut=[2, 2, 2, 2], chunks=2),
    gpt("gpt, pp 2, m 4, recompute", 128, 2, 4, cut=[4, 4], recompute="full"),
    gpt("gpt, pp 2, m 8, recompute", 128, 1, 8, cut=[4, 4], recompute="full"),
    gpt("gpt, ddp 2, m 1", 128, 2, 1, "ddp"),
    gpt("gpt, ddp 2, m 4", 128, 2, 4, "ddp"),
    gpt("gpt, fsdp 2, m 1", 128, 4, 1, "fsdp"),
    gpt("gpt, fsdp 2, m 2", 128, 2, 2, "fsdp"),
    vl("vl, one rank", "single"),
    vl("vl, pp 2, by parameters, random", strategy=dict(name="baseline", partition="parameters")),
    vl("vl, pp 2, by parameters, random, recompute", strategy=dict(name="baseline", partition="parameters"),
       recompute="full"),
    vl("vl, pp 2, by parameters, packs", strategy=dict(name="baseline", partition="parameters"), packs=True),
    vl("vl, pp 2, OmniBal's cut, random", strategy=dict(name="omnibal", data=False, memory=False)),
    vl("vl, pp 2, OmniBal", strategy=dict(name="omnibal", memory=False), packs=True),
    vl("vl, pp 2, frozen ViT, by parameters", strategy=dict(name="baseline", partition="parameters"), frozen=True),
    vl("vl, pp 2, frozen ViT, OmniBal", strategy=dict(name="omnibal", memory=False), packs=True, frozen=True),
    vl("vl, ddp 2", "ddp"),
]
SPEED_UPS = [("vl, pp 2, by parameters, random", "vl, pp 2, by parameters, packs"),
             ("vl, pp 2, by parameters, random", "vl, pp 2, OmniBal's cut, random"),
             ("vl, pp 2, by parameters, random", "vl, pp 2, OmniBal"),
             ("vl, pp 2, frozen ViT, by parameters", "vl, pp 2, frozen ViT, OmniBal")]
# Trained as well, with the job of another case: the simulator refuses this schedule by name.
ONLY_MEASURED = [("gpt, pp 2, zero bubble, m 4", "gpt, pp 2, interleaved, m 4", "zero-bubble"),
                 ("gpt, pp 2, zero bubble, m 8", "gpt, pp 2, interleaved, m 8", "zero-bubble")]
PICTURE = "vl, pp 2, OmniBal"

# What is profiled on a single rank: layers of both models at sizes around those of the cases, not the cases themselves.
PROFILES = [
    dict(name="gpt", spec=GPT, batches=[[(64, 1)], [(96, 1)], [(128, 1)], [(128, 2)], [(160, 2)], [(512, 1)], [(192, 4)]]),
    dict(name="vl", spec=VL, batches=[[(32, 1)], [(48, 2)], [(80, 1)], [(128, 1)], [(192, 1)], [(320, 1)], [(256, 2)],
                                      [(120, 3)], [(384, 1)], [(24, 1)]],
         tiles=[1, 2, 3, 4, 6, 8, 10, 12, 16, 1]),
]
GLOO_SIZES = [1 << 12, 1 << 16, 1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 22, 1 << 24, 1 << 26, 1 << 27]
