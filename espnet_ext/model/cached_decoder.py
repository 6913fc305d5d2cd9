"""A Transformer decoder step that computes each key and value once.

ESPnet's `batch_score` caches layer outputs and projects the prefix and the memory again for every hypothesis at every
step. Here the memory is projected once, when its frames arrive, and shared by all hypotheses; the keys and values of
the prefixes live in one pool of slots, a slot a token, and a hypothesis is the slot of its last token. Which slots a
hypothesis may attend to, its ancestors, is a row of a boolean matrix, so reordering the beam copies no cache.
"""

import numpy as np
import torch
import torch.nn.functional as F
from espnet2.asr.decoder.transformer_decoder import TransformerDecoder
from espnet2.legacy.nets.pytorch_backend.transformer.attention import MultiHeadedAttention
from espnet2.legacy.nets.pytorch_backend.transformer.embedding import PositionalEncoding
from espnet2.legacy.nets.scorer_interface import BatchScorerInterface
from torch import Tensor

SLOTS = 64  # capacity the pool starts with; it doubles when full
FRAMES = 128  # the same for memory frames
PACK_FROM = 128 * 1024  # elements of a weight from which oneDNN's packed product is the faster one
ROWS = 6  # hypotheses that the packed layout is made for; any number works


def is_supported(decoder: torch.nn.Module) -> bool:
    """Whether `CachedDecoder` computes this decoder: ESPnet's Transformer decoder with its plain options."""
    return (
        type(decoder) is TransformerDecoder
        and len(decoder.embed) == 2
        and isinstance(decoder.embed[0], torch.nn.Embedding)
        and type(decoder.embed[1]) is PositionalEncoding
        and decoder.output_layer is not None
        and not any(layer.concat_after for layer in decoder.decoders)
        and all(
            type(attention) is MultiHeadedAttention and isinstance(attention.q_norm, torch.nn.Identity)
            for layer in decoder.decoders
            for attention in (layer.self_attn, layer.src_attn)
        )
    )


class _Linear:
    """A linear layer over few rows, its weight repacked once for oneDNN where that is faster."""

    def __init__(self, *linears: torch.nn.Linear) -> None:
        self.weight = torch.cat([linear.weight for linear in linears]) if len(linears) > 1 else linears[0].weight
        self.bias = torch.cat([linear.bias for linear in linears]) if len(linears) > 1 else linears[0].bias
        self.packed = None
        suits = self.weight.is_cpu and self.weight.dtype == torch.float32 and torch.backends.mkldnn.is_available()
        if suits and self.weight.numel() >= PACK_FROM:
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), ROWS)

    def __call__(self, x: Tensor) -> Tensor:
        if self.packed is None:
            return F.linear(x, self.weight, self.bias)
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")


class _LayerNorm:
    """A layer norm without a module's overhead, which at this size is as long as its work."""

    def __init__(self, norm: torch.nn.LayerNorm) -> None:
        self.arguments = (norm.normalized_shape, norm.weight, norm.bias, norm.eps)

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, *self.arguments)


class _Layer:
    """What one decoder layer computes with, projections of the same input stacked into one product."""

    def __init__(self, layer: torch.nn.Module) -> None:
        own, cross = layer.self_attn, layer.src_attn
        self.norms = [_LayerNorm(norm) for norm in (layer.norm1, layer.norm2, layer.norm3)]
        self.qkv = _Linear(own.linear_q, own.linear_k, own.linear_v)
        self.own_out = _Linear(own.linear_out)
        self.query = _Linear(cross.linear_q)
        self.memory_kv = _Linear(cross.linear_k, cross.linear_v)
        self.cross_out = _Linear(cross.linear_out)
        self.inner, self.outer = _Linear(layer.feed_forward.w_1), _Linear(layer.feed_forward.w_2)
        self.activation = layer.feed_forward.activation


class DecoderWeights:
    """What all sessions of one model share. Built once from ESPnet's decoder, whose other weights it refers to."""

    @torch.inference_mode()
    def __init__(self, decoder: TransformerDecoder) -> None:
        self.decoder = decoder
        self.layers = [_Layer(layer) for layer in decoder.decoders]
        self.output = _Linear(decoder.output_layer)
        self.normalize_before = decoder.normalize_before
        self.after_norm = _LayerNorm(decoder.after_norm) if decoder.normalize_before else None
        self.heads = decoder.decoders[0].self_attn.h
        self.width = decoder.output_layer.in_features

    def embed(self, tokens: Tensor, positions: list[int]) -> Tensor:
        """Embedded tokens `(N, D)`, each at its own position (0 is `sos`)."""
        table, encoding = self.decoder.embed
        longest = max(positions) + 1
        if encoding.pe.size(1) < longest:
            encoding.extend_pe(encoding.pe.new_zeros(1, 2 * longest))
        return table(tokens) * encoding.xscale + encoding.pe[0, positions]


class _Slot:
    """The place of one token's keys and values in the pool; `index` moves when the pool is compacted."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class CachedDecoder(BatchScorerInterface):
    """ESPnet's batch scorer interface over cached keys and values, for the hypotheses of one session.

    The state of a prefix is the slot of its last token but one, as ESPnet's states cover what was fed so far.
    `xs` must always be the same memory, grown at its end; `batch_init_state` starts a new one.

    With `attention_layer` (1-based), `attention` holds after each call the cross attention of that layer in the step
    that made the scores: softmax weights `(N, T)`, mean over heads.
    """

    def __init__(self, weights: DecoderWeights, attention_layer: int | None = None) -> None:
        self.weights = weights
        self.attention_layer = attention_layer
        self.attention: Tensor | None = None
        self.batch_init_state(None)

    def batch_init_state(self, x: Tensor | None) -> None:
        """Forget memory and prefixes."""
        self.slots: list[_Slot] = []
        self.depth: list[int] = []
        self.ancestors = np.zeros((SLOTS, SLOTS), dtype=bool)
        self.frames = 0
        self.prefix_cache: list[Tensor] = []  # a layer: (2, H, slots, D / H), keys and values
        self.memory_cache: list[Tensor] = []  # a layer: (2, H, frames, D / H)
        for _ in self.weights.layers:
            self.prefix_cache.append(self._empty(SLOTS))
            self.memory_cache.append(self._empty(FRAMES))

    def _empty(self, capacity: int) -> Tensor:
        heads, width = self.weights.heads, self.weights.width
        return self.weights.output.weight.new_empty(2, heads, capacity, width // heads)

    @torch.inference_mode()
    def batch_score(self, ys: Tensor, states: list[_Slot | None], xs: Tensor) -> tuple[Tensor, list[_Slot]]:
        """Log probabilities `(N, V)` of the token after each prefix `ys` `(N, L)`, and the states to go on from.

        A prefix whose state is None is fed whole, in the same pass.
        """
        self._extend_memory(xs[0])
        if all(state is not None for state in states):
            last = list(range(len(states)))
            slots = self._add([state.index for state in states])
            tokens = ys[:, -1]
        else:
            fed = [prefix if state is None else prefix[-1:] for prefix, state in zip(ys, states, strict=True)]
            slots, last = [], []
            for prefix, state in zip(fed, states, strict=True):
                for _ in prefix:
                    state = self._add([None if state is None else state.index])[0]
                    slots.append(state)
                last.append(len(slots) - 1)
            tokens = torch.cat(fed)
        hidden = self._forward(tokens, slots, xs.size(1))
        if len(last) < len(slots):
            hidden = hidden[last]
            self.attention = None if self.attention is None else self.attention[last]
        logits = self.weights.output(hidden)
        return torch.log_softmax(logits, dim=-1), [slots[i] for i in last]

    @torch.inference_mode()
    def retain(self, states: list[_Slot | None]) -> None:
        """Keep the slots of these states and of their ancestors; the others are free again."""
        live = [state.index for state in states if state is not None]
        used = len(self.slots)
        keep = np.flatnonzero(self.ancestors[live, :used].any(axis=0)) if live else np.zeros(0, dtype=int)
        moved = keep[keep != np.arange(len(keep))]
        if len(moved):
            target = slice(len(keep) - len(moved), len(keep))
            for cache in self.prefix_cache:
                cache[:, :, target] = cache[:, :, moved]
            self.ancestors[: len(keep), : len(keep)] = self.ancestors[np.ix_(keep, keep)]
        self.ancestors[: len(keep), len(keep) : used] = False
        self.slots = [self.slots[i] for i in keep]
        self.depth = [self.depth[i] for i in keep]
        for index, slot in enumerate(self.slots):
            slot.index = index

    def _add(self, parents: list[int | None]) -> list[_Slot]:
        first = len(self.slots)
        end = first + len(parents)
        if end > len(self.ancestors):
            self._grow(2 * end)
        for index, parent in enumerate(parents, start=first):
            self.ancestors[index] = False if parent is None else self.ancestors[parent]
            self.ancestors[index, index] = True
            self.depth.append(0 if parent is None else self.depth[parent] + 1)
        new = [_Slot(index) for index in range(first, end)]
        self.slots += new
        return new

    def _grow(self, capacity: int) -> None:
        used = len(self.slots)
        ancestors = np.zeros((capacity, capacity), dtype=bool)
        ancestors[:used, :used] = self.ancestors[:used, :used]
        self.ancestors = ancestors
        self.prefix_cache = [_enlarge(cache, used, capacity) for cache in self.prefix_cache]

    def _extend_memory(self, memory: Tensor) -> None:
        """Project the frames of `memory` `(T, D)` that are new."""
        if len(memory) <= self.frames:
            return
        if len(memory) > self.memory_cache[0].size(2):
            capacity = 2 * len(memory)
            self.memory_cache = [_enlarge(cache, self.frames, capacity) for cache in self.memory_cache]
        new = memory[self.frames :]
        heads = self.weights.heads
        for layer, cache in zip(self.weights.layers, self.memory_cache, strict=True):
            projected = layer.memory_kv(new).view(len(new), 2, heads, -1)
            cache[:, :, self.frames : len(memory)] = projected.permute(1, 2, 0, 3)
        self.frames = len(memory)

    def _forward(self, tokens: Tensor, slots: list[_Slot], frames: int) -> Tensor:
        """Hidden vectors `(N, D)` of new tokens, each in its slot, after the last layer norm."""
        weights = self.weights
        rows = [slot.index for slot in slots]
        used = len(self.slots)
        new = slice(rows[0], rows[-1] + 1)
        mask = torch.from_numpy(self.ancestors[new, :used]).to(tokens.device)
        x = weights.embed(tokens, [self.depth[row] for row in rows])
        count = len(rows)
        before = weights.normalize_before
        caches = zip(weights.layers, self.prefix_cache, self.memory_cache, strict=True)
        for number, (layer, prefix, memory) in enumerate(caches, start=1):
            norm1, norm2, norm3 = layer.norms
            qkv = layer.qkv(norm1(x) if before else x).view(count, 3, weights.heads, -1).permute(1, 2, 0, 3)
            prefix[:, :, new] = qkv[1:]
            x = x + layer.own_out(_attend(qkv[0], prefix[:, :, :used], mask))
            x = x if before else norm1(x)
            query = layer.query(norm2(x) if before else x).view(count, weights.heads, -1).transpose(0, 1)
            if number == self.attention_layer:
                self.attention = _mean_weights(query, memory[0, :, :frames])
            x = x + layer.cross_out(_attend(query, memory[:, :, :frames], None))
            x = x if before else norm2(x)
            x = x + layer.outer(layer.activation(layer.inner(norm3(x) if before else x)))
            x = x if before else norm3(x)
        return weights.after_norm(x) if before else x


def _attend(query: Tensor, cache: Tensor, mask: Tensor | None) -> Tensor:
    """Attention of queries `(H, N, D / H)` over cached keys and values `(2, H, S, D / H)`, heads joined: `(N, D)`."""
    keys, values = cache
    attended = F.scaled_dot_product_attention(query[None], keys[None], values[None], attn_mask=mask)
    return attended[0].transpose(0, 1).reshape(query.size(1), -1)


def _mean_weights(query: Tensor, keys: Tensor) -> Tensor:
    """Attention weights `(N, T)` of queries `(H, N, D / H)` over keys `(H, T, D / H)`, mean over heads."""
    scores = query @ keys.transpose(1, 2) / query.size(2) ** 0.5
    return scores.softmax(dim=-1).mean(dim=0)


def _enlarge(cache: Tensor, used: int, capacity: int) -> Tensor:
    larger = cache.new_empty(*cache.shape[:2], capacity, cache.size(3))
    larger[:, :, :used] = cache[:, :, :used]
    return larger
