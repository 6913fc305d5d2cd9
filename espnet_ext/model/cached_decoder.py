"""A Transformer decoder step that computes each key and value once.

ESPnet's `batch_score` caches layer outputs and projects the prefix and the memory again for every hypothesis at every
step. Here the memory is projected once, when its frames arrive, and shared by all hypotheses; the keys and values of
the prefixes live in one pool of slots, a slot a token, and a hypothesis is the slot of its last token. Which slots a
hypothesis may attend to, its ancestors, is a row of a mask, so reordering the beam copies no cache. Several sessions of
one model can be scored in one pass over the weights.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from espnet2.asr.decoder.transformer_decoder import TransformerDecoder
from espnet2.legacy.nets.pytorch_backend.transformer.attention import MultiHeadedAttention
from espnet2.legacy.nets.pytorch_backend.transformer.embedding import PositionalEncoding
from espnet2.legacy.nets.scorer_interface import BatchScorerInterface
from torch import Tensor

from espnet_ext.model.weights import layer_norm, linear

SLOTS = 64  # capacity the pool starts with; it doubles when full
FRAMES = 128  # the same for memory frames
NO_PARENT = -1  # the mask's last row, which no slot ever takes
READ_AHEAD_FROM = 32 * 1024  # elements of a layer's memory from which reading it ahead pays
ROWS = 6  # hypotheses that the products with weights are laid out for; any number works


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


class _Layer:
    """What one decoder layer computes `before`, `between` and `after` its two attentions.

    Projections of the same input are stacked into one product.
    """

    def __init__(self, layer: torch.nn.Module, precision: str, compiled: bool) -> None:
        stacked = partial(linear, rows=ROWS, precision=precision, packed=not compiled)
        own, cross, feed_forward = layer.self_attn, layer.src_attn, layer.feed_forward
        self.normalize_before = layer.normalize_before
        self.norms = [layer_norm(norm) for norm in (layer.norm1, layer.norm2, layer.norm3)]
        self.qkv = stacked(own.linear_q, own.linear_k, own.linear_v)
        self.own_out = stacked(own.linear_out)
        self.query = stacked(cross.linear_q)
        self.memory_kv = stacked(cross.linear_k, cross.linear_v)
        self.cross_out = stacked(cross.linear_out)
        self.inner, self.outer = stacked(feed_forward.w_1), stacked(feed_forward.w_2)
        self.activation = torch.relu if type(feed_forward.activation) is torch.nn.ReLU else feed_forward.activation
        if compiled:
            self.before, self.between, self.after = (
                torch.compile(part, dynamic=True) for part in (self.before, self.between, self.after)
            )

    def before(self, x: Tensor) -> Tensor:
        """Queries, keys and values of the self attention `(N, 3 D)`, from the layer's input `(N, D)`."""
        return self.qkv(self.norms[0](x) if self.normalize_before else x)

    def between(self, x: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
        """What goes on after the self attention `own`, and the queries to the memory, `(N, D)` each."""
        norm1, norm2, _ = self.norms
        x = x + self.own_out(own)
        x = x if self.normalize_before else norm1(x)
        return x, self.query(norm2(x) if self.normalize_before else x)

    def after(self, x: Tensor, cross: Tensor) -> Tensor:
        """The layer's output `(N, D)`."""
        _, norm2, norm3 = self.norms
        x = x + self.cross_out(cross)
        x = x if self.normalize_before else norm2(x)
        x = x + self.outer(self.activation(self.inner(norm3(x) if self.normalize_before else x)))
        return x if self.normalize_before else norm3(x)


class DecoderWeights:
    """What all sessions of one model share. Built once from ESPnet's decoder, or one that has its attributes.

    `precision` is that of the products with weights: `float32`, `bfloat16` or `int8` (dynamic quantisation, CPU only).
    `compiled` runs what is between the attentions through `torch.compile`.
    """

    @torch.inference_mode()
    def __init__(self, decoder: TransformerDecoder, precision: str = "float32", compiled: bool = False) -> None:
        self.layers = [_Layer(layer, precision, compiled) for layer in decoder.decoders]
        if compiled:  # each layer is a variant of the same code, and so is a beam of one
            torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, 4 * len(self.layers))
        self.output = linear(decoder.output_layer, rows=ROWS, precision=precision)
        self.normalize_before = decoder.normalize_before
        self.after_norm = layer_norm(decoder.after_norm) if decoder.normalize_before else None
        self.heads = decoder.decoders[0].self_attn.h
        self.encoding = decoder.embed[1]
        self.table = decoder.embed[0].weight * self.encoding.xscale

    def embed(self, tokens: Tensor, positions: list[int]) -> Tensor:
        """Embedded tokens `(N, D)`, each at its own position (0 is `sos`)."""
        longest, encoding = max(positions) + 1, self.encoding
        if encoding.pe.size(1) < longest:
            encoding.extend_pe(encoding.pe.new_zeros(1, 2 * longest))
        # A beam stands at one position: looking up a list of them would cost more than all else here.
        at = longest - 1 if positions.count(positions[0]) == len(positions) else positions
        return self.table.index_select(0, tokens) + encoding.pe[0, at]


class _Slot:
    """The place of one token's keys and values in the pool; `index` moves when the pool is compacted."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class CachedDecoder(BatchScorerInterface):
    """ESPnet's batch scorer interface over cached keys and values, for the hypotheses of one session.

    The state of a prefix is the slot of its last token but one, as ESPnet's states cover what was fed so far.
    `xs` must always be the same memory, grown at its end; `batch_init_state` starts a new one.

    With `attention_heads` (layer -> heads, both from 0), `attention` holds after each call the cross attention of these
    heads in the step that made the scores: softmax weights `(N, T)`, mean over the heads.
    """

    def __init__(self, weights: DecoderWeights, attention_heads: Mapping[int, Sequence[int]] | None = None) -> None:
        self.weights = weights
        self.attention_heads = attention_heads or {}
        self.attention: Tensor | None = None
        self.batch_init_state(None)

    def batch_init_state(self, x: Tensor | None) -> None:
        """Forget memory and prefixes."""
        self.slots: list[_Slot] = []
        self.depth: list[int] = []
        self.mask = np.full((SLOTS, SLOTS), -np.inf, dtype=np.float32)
        self.frames = 0
        # Keys of a layer, its values, keys of the next layer and so on.
        self.prefix_cache = self._empty(2 * len(self.weights.layers), SLOTS)
        self.memory_cache = [self._empty(2, FRAMES) for _ in self.weights.layers]  # apart, as they grow large
        self.memory: list[Tensor] = []  # the filled part of `memory_cache`
        self.memory_parts: list[tuple[Tensor, Tensor]] = []  # its keys and values
        self.reads_ahead = False

    def _empty(self, count: int, capacity: int) -> Tensor:
        """Room for keys or values `(count, 1, H, capacity, D / H)`."""
        heads, width = self.weights.heads, self.weights.table.size(1)
        return self.weights.table.new_empty(count, 1, heads, capacity, width // heads)

    @torch.inference_mode()
    def batch_score(self, ys: Tensor, states: list[_Slot | None], xs: Tensor) -> tuple[Tensor, list[_Slot]]:
        """Log probabilities `(N, V)` of the token after each prefix `ys` `(N, L)`, and the states to go on from.

        A prefix whose state is None is fed whole, in the same pass.
        """
        return self.score_together([(self, ys, states, xs)])[0]

    @torch.inference_mode()
    def score_prefix(self, prefix: Tensor, memory: Tensor) -> tuple[Tensor, list[_Slot]]:
        """Log probabilities `(L, V)` of the token after the first 1 to L tokens of `prefix` `(L,)`, and the states.

        Both as `batch_score` would have returned them one by one, in one pass.
        """
        self._extend_memory(memory)
        slots: list[_Slot] = []
        for _ in prefix:
            slots += self._add([slots[-1].index if slots else None])
        feed = self._make_feed(prefix, slots, slots, None)
        return torch.log_softmax(self.weights.output(_forward(self.weights, [feed])), dim=-1), slots

    @staticmethod
    def score_together(
        calls: Sequence[tuple["CachedDecoder", Tensor, list[_Slot | None], Tensor]],
    ) -> list[tuple[Tensor, list[_Slot]]]:
        """`batch_score` of several sessions of one model (decoder, ys, states, xs) in one pass over the weights.

        Without gradients: call it under `torch.inference_mode`.
        """
        weights = calls[0][0].weights
        feeds = [decoder._feed(ys, states, xs) for decoder, ys, states, xs in calls]
        scores = torch.log_softmax(weights.output(_forward(weights, feeds)), dim=-1)
        parts = scores.split([len(feed.states) for feed in feeds])
        return [(part, feed.states) for part, feed in zip(parts, feeds, strict=True)]

    @torch.inference_mode()
    def retain(self, states: list[_Slot | None]) -> None:
        """Keep the slots of these states and of their ancestors; the others are free again."""
        live = [state.index for state in states if state is not None]
        used = len(self.slots)
        keep = np.flatnonzero((self.mask[live, :used] == 0).any(axis=0)) if live else np.zeros(0, dtype=int)
        moved = keep[keep != np.arange(len(keep))]
        if len(moved):
            source = torch.from_numpy(moved).to(self.prefix_cache.device)
            target = self.prefix_cache.narrow(3, len(keep) - len(moved), len(moved))
            target.copy_(self.prefix_cache.index_select(3, source))
            self.mask[: len(keep), : len(keep)] = self.mask[np.ix_(keep, keep)]
        self.mask[: len(keep), len(keep) : used] = -np.inf
        self.slots = [self.slots[i] for i in keep]
        self.depth = [self.depth[i] for i in keep]
        for index, slot in enumerate(self.slots):
            slot.index = index

    def _add(self, parents: list[int | None]) -> list[_Slot]:
        first = len(self.slots)
        end = first + len(parents)
        if end >= len(self.mask):
            self._grow(2 * end)
        rows = [NO_PARENT if parent is None else parent for parent in parents]
        self.mask[first:end] = self.mask.take(rows, axis=0)
        for index in range(first, end):
            self.mask[index, index] = 0
        self.depth += [0 if parent is None else self.depth[parent] + 1 for parent in parents]
        new = [_Slot(index) for index in range(first, end)]
        self.slots += new
        return new

    def _grow(self, capacity: int) -> None:
        used = len(self.slots)
        mask = np.full((capacity, capacity), -np.inf, dtype=np.float32)
        mask[:used, :used] = self.mask[:used, :used]
        self.mask = mask
        self.prefix_cache = _enlarge(self.prefix_cache, used, capacity)

    def _extend_memory(self, memory: Tensor) -> None:
        """Project the frames of `memory` `(T, D)` that are new."""
        frames = memory.size(0)
        if frames <= self.frames:
            return
        if frames > self.memory_cache[0].size(3):
            self.memory_cache = [_enlarge(cache, self.frames, 2 * frames) for cache in self.memory_cache]
        new = memory[self.frames :]
        for layer, cache in zip(self.weights.layers, self.memory_cache, strict=True):
            projected = layer.memory_kv(new).view(frames - self.frames, 2, self.weights.heads, -1)
            cache[:, 0, :, self.frames : frames] = projected.permute(1, 2, 0, 3)
        self.frames = frames
        self.memory = [cache.narrow(3, 0, frames) for cache in self.memory_cache]
        self.memory_parts = [layer.unbind() for layer in self.memory]
        self.reads_ahead = memory.is_cpu and self.memory[0].numel() >= READ_AHEAD_FROM

    def _feed(self, ys: Tensor, states: list[_Slot | None], xs: Tensor) -> "_Feed":
        """Give the tokens that are new in `ys` their slots, and the memory its new frames."""
        self._extend_memory(xs[0])
        if all(state is not None for state in states):
            slots = self._add([state.index for state in states])
            return self._make_feed(ys[:, -1], slots, slots, None)
        fed = [prefix if state is None else prefix[-1:] for prefix, state in zip(ys, states, strict=True)]
        slots, last = [], []
        for prefix, state in zip(fed, states, strict=True):
            for _ in prefix:
                state = self._add([None if state is None else state.index])[0]
                slots.append(state)
            last.append(len(slots) - 1)
        return self._make_feed(torch.cat(fed), slots, [slots[i] for i in last], last)

    def _make_feed(self, tokens: Tensor, slots: list[_Slot], states: list[_Slot], last: list[int] | None) -> "_Feed":
        first, end = slots[0].index, len(self.slots)
        return _Feed(
            decoder=self,
            tokens=tokens,
            depths=self.depth[first:],
            mask=torch.from_numpy(self.mask[first:end, :end]).to(tokens.device),
            new=self.prefix_cache.narrow(3, first, end - first).split(2),
            prefixes=self.prefix_cache.narrow(3, 0, end).unbind(),
            states=states,
            last=last,
        )


@dataclass(slots=True)
class _Feed:
    """What one session puts into a pass: tokens for the slots at the pool's end, and where its answers are.

    `mask` is added to the attention scores `(new slots, slots)`; `new` are the places of the new slots, a layer each
    `(2, 1, H, new slots, D / H)`; `prefixes` are all slots' keys and values of a layer in turn `(1, H, slots, D / H)`;
    `last` are the rows that answer, None for all.
    """

    decoder: CachedDecoder
    tokens: Tensor
    depths: list[int]
    mask: Tensor
    new: Sequence[Tensor]
    prefixes: Sequence[Tensor]
    states: list[_Slot]
    last: list[int] | None

    def own(self, layer: int, qkv: Tensor) -> Tensor:
        """Self attention `(N, D)` over the slots; keys and values of `qkv` `(3, 1, H, N, D / H)` join them."""
        self.new[layer].copy_(qkv[1:])
        return _attend(qkv[0], self.prefixes[2 * layer], self.prefixes[2 * layer + 1], self.mask)

    def cross(self, layer: int, query: Tensor) -> Tensor:
        """Attention `(N, D)` of queries `(1, H, N, D / H)` over the memory."""
        memory, (keys, values) = self.decoder.memory[layer], self.decoder.memory_parts[layer]
        if self.decoder.reads_ahead:
            memory.sum()  # in order, which brings it to the processor's cache faster than attention's own reading
        if layer in self.decoder.attention_heads:
            self._note_attention(layer, query[0], keys[0])
        return _attend(query, keys, values, None)

    def _note_attention(self, layer: int, query: Tensor, keys: Tensor) -> None:
        """Add the layer's share to the mean over all heads that were asked for."""
        wanted = self.decoder.attention_heads
        if self.last is not None:
            query = query[:, self.last]
        heads = list(wanted[layer])
        share = _weights(query[heads], keys[heads]).sum(dim=0) / sum(map(len, wanted.values()))
        first = layer == min(wanted)
        self.decoder.attention = share if first else self.decoder.attention + share


def _forward(weights: DecoderWeights, feeds: list[_Feed]) -> Tensor:
    """Hidden vectors after the last layer norm of every row that answers, the feeds' rows one after the other.

    The layers run over the rows of all feeds at once; only attention is each feed's own.
    """
    tokens = feeds[0].tokens if len(feeds) == 1 else torch.cat([feed.tokens for feed in feeds])
    x = weights.embed(tokens, [depth for feed in feeds for depth in feed.depths])
    rows = [len(feed.depths) for feed in feeds]
    count, heads = sum(rows), weights.heads
    for number, layer in enumerate(weights.layers):
        qkv = layer.before(x).view(1, count, 3, heads, -1).permute(2, 0, 3, 1, 4)
        x, query = layer.between(x, _each(feeds, rows, _Feed.own, number, qkv))
        query = query.view(1, count, heads, -1).transpose(1, 2)
        x = layer.after(x, _each(feeds, rows, _Feed.cross, number, query))
    if any(feed.last is not None for feed in feeds):
        x = torch.cat(
            [part if feed.last is None else part[feed.last] for feed, part in zip(feeds, x.split(rows), strict=True)]
        )
    return weights.after_norm(x) if weights.normalize_before else x


def _each(
    feeds: list[_Feed], rows: list[int], attention: Callable[[_Feed, int, Tensor], Tensor], layer: int, heads: Tensor
) -> Tensor:
    """One of the attentions for every feed with its own rows of `heads` `(.., H, N, D / H)`; all rows, `(N, D)`."""
    if len(feeds) == 1:
        return attention(feeds[0], layer, heads)
    return torch.cat([attention(feed, layer, part) for feed, part in zip(feeds, heads.split(rows, -2), strict=True)])


def _attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Attention `(N, D)` of queries `(1, H, N, D / H)` over keys and values `(1, H, S, D / H)`, heads joined."""
    return F.scaled_dot_product_attention(query, keys, values, mask).transpose(1, 2).reshape(query.size(2), -1)


def _weights(query: Tensor, keys: Tensor) -> Tensor:
    """Attention weights `(H, N, T)` of queries `(H, N, D / H)` over keys `(H, T, D / H)`."""
    return (query @ keys.transpose(1, 2) / query.size(2) ** 0.5).softmax(dim=-1)


def _enlarge(cache: Tensor, used: int, capacity: int) -> Tensor:
    larger = cache.new_empty(*cache.shape[:3], capacity, cache.size(4))
    larger[..., :used, :] = cache[..., :used, :]
    return larger
