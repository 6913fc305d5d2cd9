"""The layers of a contextual block encoder over blocks whose inputs are complete, shared by all sessions of a model.

A block is `block_size` frames between two context vectors: in front the one handed over by the block before, at the end
its own, which after each layer is handed over to the next block (Tsunoo et al., 2019; IBWBS paper, section 2).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from espnet2.asr.encoder.contextual_block_transformer_encoder import ContextualBlockTransformerEncoder
from espnet2.legacy.nets.pytorch_backend.transformer.attention import MultiHeadedAttention
from espnet2.legacy.nets.pytorch_backend.transformer.multi_layer_conv import Conv1dLinear
from espnet2.legacy.nets.pytorch_backend.transformer.positionwise_feed_forward import PositionwiseFeedForward
from espnet2.legacy.nets.pytorch_backend.transformer.subsampling_without_posenc import Conv2dSubsamplingWOPosEnc
from torch import Tensor

from espnet_ext.model.weights import convolution_relu, layer_norm, linear, product


class EspnetLayers:
    """ESPnet's own layers, of any contextual block encoder."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        self.embed = encoder.embed
        self.encoders = encoder.encoders
        self.after_norm = encoder.after_norm if encoder.normalize_before else torch.nn.Identity()

    def subsample(self, features: Tensor) -> Tensor:
        """Frames `(T', D)` of features `(T, F)`, without positions."""
        if self.embed is None:
            return features
        if isinstance(self.embed, torch.nn.Sequential):
            return self.embed(features)
        return self.embed(features.unsqueeze(0), None)[0][0]

    def __call__(self, blocks: Tensor, contexts: Tensor | None) -> tuple[Tensor, Tensor]:
        """Encode consecutive blocks `(N, block_size + 2, D)`.

        `contexts` `(layers, D)` are what the block before has handed over, None for the first block of an utterance.
        Returns the encoded blocks and the contexts for the block after.
        """
        rows = blocks.size(1)
        mask = blocks.new_zeros(1, len(blocks), rows, rows)
        mask[:, :, 1:, :-1] = 1  # the context in front is no query, the block's own no key
        past = None if contexts is None else contexts.unsqueeze(0)
        encoded, _, _, _, handed_over, _, _ = self.encoders(blocks.unsqueeze(0), mask, True, past)
        return self.after_norm(encoded[0]), handed_over[0]

    def encode_short(self, frames: Tensor) -> Tensor:
        """Encode an utterance `(T, D)` of at most one block, which has no context vectors."""
        encoded = self.encoders(frames.view(1, 1, *frames.shape), None, True, None, None, True)[0]
        return self.after_norm(encoded[0, 0])


class BlockLayers(EspnetLayers):
    """The same for ESPnet's plain Transformer layers, without masks, with fewer and larger products."""

    @torch.inference_mode()
    def __init__(self, encoder: ContextualBlockTransformerEncoder) -> None:
        super().__init__(encoder)
        rows = encoder.block_size + 2
        self.layers = [_Layer(layer, rows) for layer in encoder.encoders]
        if type(encoder.embed) is Conv2dSubsamplingWOPosEnc:
            self.subsample = _subsampling(encoder.embed, encoder.hop_size)

    def __call__(self, blocks: Tensor, contexts: Tensor | None) -> tuple[Tensor, Tensor]:
        handed_over = []
        for number, layer in enumerate(self.layers):
            blocks = layer(blocks)
            first = blocks[:1, -1] if contexts is None else contexts[number : number + 1]
            handed_over.append(blocks[-1, -1])
            torch.cat([first, blocks[:-1, -1]], out=blocks[:, 0])
        return self.after_norm(blocks), torch.stack(handed_over)


class _Layer:
    """One layer `(N, S, D) -> (N, S, D)`: self attention and feed forward, each with its residual and layer norm."""

    def __init__(self, layer: torch.nn.Module, rows: int) -> None:
        attention = layer.self_attn
        self.norm1, self.norm2 = layer_norm(layer.norm1), layer_norm(layer.norm2)
        self.qkv = linear(attention.linear_q, attention.linear_k, attention.linear_v, rows=rows)
        self.out = linear(attention.linear_out, rows=rows)
        self.feed_forward = _feed_forward(layer.feed_forward, rows)
        self.heads = attention.h
        self.normalize_before = layer.normalize_before

    def __call__(self, x: Tensor) -> Tensor:
        before = self.normalize_before
        x = x + self._attend(self.norm1(x) if before else x)
        x = x if before else self.norm1(x)
        x = x + self.feed_forward(self.norm2(x) if before else x)
        return x if before else self.norm2(x)

    def _attend(self, x: Tensor) -> Tensor:
        """The context vector in front asks for nothing, and nothing looks at the block's own at the end."""
        count, rows, _ = x.shape
        queries, keys, values = self.qkv(x).view(count, rows, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(queries[:, :, 1:], keys[:, :, :-1], values[:, :, :-1])
        return self.out(F.pad(attended.transpose(1, 2).flatten(2), (0, 0, 1, 0)))


def _feed_forward(module: torch.nn.Module, rows: int) -> Callable[[Tensor], Tensor]:
    """A feed-forward layer `(N, S, D) -> (N, S, D)`. A convolution is a product of its windows, faster at this size."""
    if type(module) is PositionwiseFeedForward:
        inner, outer, activation = linear(module.w_1, rows=rows), linear(module.w_2, rows=rows), module.activation
        return lambda x: outer(activation(inner(x)))
    if type(module) is Conv1dLinear:
        width, pad = module.w_1.kernel_size[0], module.w_1.padding[0]
        inner = product(module.w_1.weight.detach().transpose(1, 2).flatten(1), module.w_1.bias.detach(), rows)
        outer = linear(module.w_2, rows=rows)

        def convolve(x: Tensor) -> Tensor:
            windows = F.pad(x, (0, 0, pad, pad)).unfold(1, width, 1).transpose(2, 3).flatten(2)  # a view
            return outer(inner(windows).relu_())

        return convolve
    return module


def _subsampling(module: Conv2dSubsamplingWOPosEnc, rows: int) -> Callable[[Tensor], Tensor]:
    """Convolutions `(T, F) -> (T', D)`; the last product takes frequencies by channels, as oneDNN returns them."""
    convolutions = [convolution_relu(conv) for conv in module.conv if isinstance(conv, torch.nn.Conv2d)]
    weight = module.out.weight.detach().unflatten(1, (module.conv[-2].out_channels, -1)).transpose(1, 2).flatten(1)
    out = product(weight, module.out.bias.detach(), rows)

    def subsample(features: Tensor) -> Tensor:
        x = features[None, None]
        for convolution in convolutions:
            x = convolution(x)
        return out(x[0].permute(1, 2, 0).flatten(1))

    return subsample


def make_layers(encoder: torch.nn.Module) -> EspnetLayers:
    """The fastest layers that compute what this encoder does."""
    plain = type(encoder) is ContextualBlockTransformerEncoder and all(
        not layer.concat_after
        and type(layer.self_attn) is MultiHeadedAttention
        and isinstance(layer.self_attn.q_norm, torch.nn.Identity)
        for layer in encoder.encoders
    )
    return BlockLayers(encoder) if plain else EspnetLayers(encoder)
