"""The trained model: a ViT (optional) in front of a GPT, as a list of layers that stages are cut from.

Layers are those of sim/world/model.hpp, in its order: encoder embedding, blocks, projector; LLM embedding, blocks,
head. Everything is plain PyTorch in fp32 on [tokens, width]: no biases but the patches', LayerNorm, GELU (exact),
scaled_dot_product_attention, an untied head, cross entropy over all tokens.

A micro-batch has sequences of its own lengths; attention runs once for each group of equal ones.
"""
import dataclasses

import torch
import torch.utils.checkpoint
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass
class Batch:
    """What the model sees of a micro-batch: (length, count) of LLM sequences, and tiles of the encoder."""

    groups: list
    tiles: int = 0

    @property
    def tokens(self):
        return sum(length * count for length, count in self.groups)


class Attend(torch.autograd.Function):
    """Attention of [tokens, 3 * width] within each of several sequences, as one varlen kernel has it: a flash kernel
    for each group of equal lengths, results in one tensor, gradients of q, k and v in one."""

    @staticmethod
    def parts(groups):
        start = 0
        for length, count in groups:
            yield slice(start, start + length * count), length, count
            start += length * count

    @staticmethod
    def split(x, count, length, heads):
        return [t.view(count, length, heads, -1).transpose(1, 2) for t in x.chunk(3, 1)]

    @staticmethod
    def forward(ctx, qkv, groups, heads, causal):
        outs, sums = [], []
        for rows, length, count in Attend.parts(groups):
            q, k, v = Attend.split(qkv[rows], count, length, heads)
            out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal)
            outs.append(out.transpose(1, 2).reshape(count * length, -1))
            sums.append(lse)
        out = outs[0] if len(outs) == 1 else torch.cat(outs)
        ctx.save_for_backward(qkv, out, *sums)
        ctx.groups, ctx.heads, ctx.causal = groups, heads, causal
        return out

    @staticmethod
    def backward(ctx, gradient):
        qkv, out, *sums = ctx.saved_tensors
        result = torch.empty_like(qkv)
        for (rows, length, count), lse in zip(Attend.parts(ctx.groups), sums):
            q, k, v = Attend.split(qkv[rows], count, length, ctx.heads)
            whole = [t[rows].view(count, length, ctx.heads, -1).transpose(1, 2) for t in (gradient, out)]
            made = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
                whole[0], q, k, v, whole[1], lse, 0.0, ctx.causal)
            torch.cat([t.transpose(1, 2).reshape(count * length, -1) for t in made], 1, out=result[rows])
        return result, None, None, None


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x, groups):
        return self.out(Attend.apply(self.qkv(x), groups, self.heads, self.causal))


class Block(nn.Module):
    def __init__(self, width, heads, mlp, causal):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.up = nn.Linear(width, mlp, bias=False)
        self.down = nn.Linear(mlp, width, bias=False)
        self.recompute = False

    def body(self, x, groups):
        x = x + self.attention(self.norm1(x), groups)
        return x + self.down(F.gelu(self.up(self.norm2(x))))

    def forward(self, x, groups):
        if not self.recompute or not torch.is_grad_enabled():
            return self.body(x, groups)
        return torch.utils.checkpoint.checkpoint(self.body, x, groups, use_reentrant=False)


class VitEmbedding(nn.Module):
    """Patches of every tile, a class token in front, learned positions."""

    def __init__(self, vit):
        super().__init__()
        width, self.tokens = vit["hidden_size"], vit["tokens_per_tile"]
        self.patches = nn.Linear(vit["patch_values"], width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(self.tokens, width))

    def forward(self, pixels, batch):
        x = self.patches(pixels) + self.bias
        x = x.view(batch.tiles, self.tokens - 1, -1)
        x = torch.cat([self.cls.expand(batch.tiles, 1, -1), x], 1) + self.positions
        return x.view(batch.tiles * self.tokens, -1)


class VitBlock(Block):
    def __init__(self, vit):
        super().__init__(vit["hidden_size"], vit["num_attention_heads"], vit["intermediate_size"], False)
        self.tokens = vit["tokens_per_tile"]

    def forward(self, x, batch):
        return super().forward(x, [(self.tokens, batch.tiles)])


class Projector(nn.Module):
    """Drops the class token, joins 2 x 2 patches (pixel shuffle), norm, two linear layers."""

    def __init__(self, vit, width):
        super().__init__()
        self.tokens, self.side = vit["tokens_per_tile"], vit["patches_per_side"]
        joined = 4 * vit["hidden_size"]
        self.norm = nn.LayerNorm(joined)
        self.first = nn.Linear(joined, width, bias=False)
        self.second = nn.Linear(width, width, bias=False)

    def forward(self, x, batch):
        half = self.side // 2
        x = x.view(batch.tiles, self.tokens, -1)[:, 1:]
        x = x.reshape(batch.tiles, half, 2, half, 2, x.shape[-1]).permute(0, 1, 3, 2, 4, 5)
        x = x.reshape(batch.tiles * half * half, -1)
        return self.second(F.gelu(self.first(self.norm(x))))


class GptEmbedding(nn.Module):
    def __init__(self, llm):
        super().__init__()
        self.words = nn.Embedding(llm["vocab_size"], llm["hidden_size"])
        self.positions = nn.Embedding(llm["max_position_embeddings"], llm["hidden_size"])

    def forward(self, image, batch):
        x = self.words(batch.ids)
        if image is not None:
            x = x.index_copy(0, batch.image_at, image)
        return x + self.positions(batch.where)


class GptBlock(Block):
    def __init__(self, llm):
        super().__init__(llm["hidden_size"], llm["num_attention_heads"], llm["intermediate_size"], True)

    def forward(self, x, batch):
        return super().forward(x, batch.groups)


class Head(nn.Module):
    def __init__(self, llm):
        super().__init__()
        self.norm = nn.LayerNorm(llm["hidden_size"])
        self.logits = nn.Linear(llm["hidden_size"], llm["vocab_size"], bias=False)

    def forward(self, x, batch):
        return self.logits(self.norm(x))


def layers_of(spec):
    """Names of layers in order: what a cut counts."""
    out = []
    if "vit" in spec:
        out += ["vit.embedding"] + ["vit.block"] * spec["vit"]["num_hidden_layers"] + ["projector"]
    return out + ["llm.embedding"] + ["llm.block"] * spec["llm"]["num_hidden_layers"] + ["head"]


def make_layer(name, spec):
    llm, vit = spec["llm"], spec.get("vit")
    layer = {
        "vit.embedding": lambda: VitEmbedding(vit),
        "vit.block": lambda: VitBlock(vit),
        "projector": lambda: Projector(vit, llm["hidden_size"]),
        "llm.embedding": lambda: GptEmbedding(llm),
        "llm.block": lambda: GptBlock(llm),
        "head": lambda: Head(llm),
    }[name]()
    if name.startswith("vit.") and not vit.get("trained", True):
        layer.requires_grad_(False)
    return layer


class Stage(nn.Module):
    """Layers [first, last) of the model; forward(received tensor, batch)."""

    def __init__(self, spec, first, last):
        super().__init__()
        self.names = layers_of(spec)[first:last]
        self.layers = nn.ModuleList([make_layer(n, spec) for n in self.names])
        if spec.get("recompute") == "full":
            for layer in self.layers:
                layer.recompute = True
        self.first = first == 0

    def forward(self, x=None, batch=None):
        if self.first:
            x = batch.pixels
        for layer in self.layers:
            x = layer(x, batch)
        return x


def boundary_width(spec, last):
    """(tokens of a batch, width) of what leaves layer last - 1."""
    name = layers_of(spec)[last - 1]
    if name in ("vit.embedding", "vit.block"):
        vit = spec["vit"]
        return lambda batch: (batch.tiles * vit["tokens_per_tile"], vit["hidden_size"])
    if name == "projector":
        vit = spec["vit"]
        return lambda batch: (batch.tiles * (vit["patches_per_side"] // 2) ** 2, spec["llm"]["hidden_size"])
    return lambda batch: (batch.tokens, spec["llm"]["hidden_size"])


def has_gradient(spec, layer):
    """Whether what enters this layer depends on a trained parameter."""
    frozen = "vit" in spec and not spec["vit"].get("trained", True)
    return layer > (1 + spec["vit"]["num_hidden_layers"] if frozen else 0)


def make_batch(spec, groups, tiles=0, generator=None):
    """Random data for sequences (length, count) of the LLM and so many tiles."""
    batch = Batch([tuple(g) for g in groups], tiles)
    vocabulary = spec["llm"]["vocab_size"]
    batch.ids = torch.randint(vocabulary, (batch.tokens,), generator=generator)
    batch.targets = torch.randint(vocabulary, (batch.tokens,), generator=generator)
    batch.where = torch.cat([torch.arange(length).repeat(count) for length, count in batch.groups])
    batch.pixels = None
    if "vit" in spec:
        vit = spec["vit"]
        patches = vit["tokens_per_tile"] - 1
        batch.pixels = torch.randn(tiles * patches, vit["patch_values"], generator=generator)
        batch.image_at = torch.arange(tiles * (vit["patches_per_side"] // 2) ** 2)
    return batch


def loss_of(logits, batch):
    return F.cross_entropy(logits, batch.targets)
