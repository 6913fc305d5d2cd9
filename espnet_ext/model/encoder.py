"""Encoders on a stream: features in, encoder memory out, released as the model releases it.

Both kinds have `push` and `reset`, and count the frames that went through their layers in `encoded_frames`.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from espnet2.asr.encoder.branchformer_encoder import BranchformerEncoder
from espnet2.asr.encoder.conformer_encoder import ConformerEncoder
from espnet2.asr.encoder.contextual_block_conformer_encoder import ContextualBlockConformerEncoder
from espnet2.asr.encoder.contextual_block_transformer_encoder import ContextualBlockTransformerEncoder
from espnet2.asr.encoder.e_branchformer_encoder import EBranchformerEncoder
from espnet2.asr.encoder.transformer_encoder import TransformerEncoder
from torch import Tensor

from espnet_ext.model.encoder_layers import EspnetLayers

BLOCK_ENCODERS = (ContextualBlockTransformerEncoder, ContextualBlockConformerEncoder)
FULL_CONTEXT_ENCODERS = (TransformerEncoder, ConformerEncoder, BranchformerEncoder, EBranchformerEncoder)

_STRIDED = (torch.nn.Conv1d, torch.nn.Conv2d)


class BlockEncoder:
    """ESPnet's contextual block encoder fed feature by feature, frame for frame and on the schedule of `forward_infer`.

    Its geometry comes from the trained module itself. `layers` are the module's, shared by the sessions of a model.
    """

    def __init__(self, encoder: torch.nn.Module, layers: EspnetLayers) -> None:
        self.encoder = encoder
        self.layers = layers
        self.subsample = encoder.subsample
        self.field, _ = subsampling(encoder.embed)
        self.block, self.hop = encoder.block_size, encoder.hop_size
        self.overlap = self.block - self.hop
        self.past = self.overlap - encoder.look_ahead  # frames of a block that the one before has released
        self.reset()

    def reset(self) -> None:
        """Forget the utterance; positions start again at 0."""
        self.features: Tensor | None = None  # not subsampled yet
        self.frames: Tensor | None = None  # subsampled, from the first one that the next block holds
        self.blocks = 0
        self.average: Tensor | None = None  # context vector of the last block, as it enters the layers
        self.contexts: Tensor | None = None  # the same after each layer
        self.memory = torch.zeros(0, self.encoder.output_size())
        self.encoded_frames = 0

    @property
    def audio_frames(self) -> int:
        """Frames of the memory."""
        return len(self.memory)

    @torch.inference_mode()
    def push(self, features: Tensor, final: bool = False) -> Tensor:
        """Take feature frames `(T, D)` and return all memory frames `(T', D')` released so far.

        `final` releases the rest. Fewer feature frames in all than the subsampling needs for one frame (7 for
        `conv2d`) have no memory.
        """
        self.features = features if self.features is None else torch.cat([self.features, features])
        self._subsample(final)
        if self.frames is not None:
            new = self._release(final)
            if len(new):
                self.memory = torch.cat([self.memory.to(new), new])
        return self.memory

    def _subsample(self, final: bool) -> None:
        """Move features to frames; until the end ESPnet keeps back those of the last two frames."""
        count = len(self.features)
        if not final:
            count = (count // self.subsample - 1) * self.subsample
        if count < (self.field if final else 2 * self.subsample):
            return
        new = self.layers.subsample(self.features[:count])
        self.features = self.features[len(new) * self.subsample :]
        self.frames = new if self.frames is None else torch.cat([self.frames, new])

    def _release(self, final: bool) -> Tensor:
        """Encode the blocks that are complete, with `final` also the one that is not, and return their new frames."""
        ready = len(self.frames) - self.overlap
        if len(self.frames) <= self.block and not final:
            return self.frames[:0]
        if len(self.frames) <= self.block and not self.blocks:
            self.encoded_frames += len(self.frames)
            return self.layers.encode_short(self.encoder.pos_enc(self.frames.unsqueeze(0))[0])
        count = math.ceil(ready / self.hop) if final else ready // self.hop
        frames = self.frames[: count * self.hop + self.overlap]
        self.frames = self.frames[count * self.hop :]
        begin = self.past if self.blocks else 0
        end = len(frames) if final else self.past + count * self.hop
        encoded = self._encode(frames, count)
        released = encoded[:, self.past : self.past + self.hop].flatten(0, 1)
        return torch.cat([encoded[0, : self.past], released, encoded[-1, self.past + self.hop :]])[begin:end]

    def _encode(self, frames: Tensor, count: int) -> Tensor:
        """The next `count` blocks `(count, block_size, D)` of these frames; what the last one lacks is zeros."""
        pos_enc = self.encoder.pos_enc
        lacking = (0, 0, 0, count * self.hop + self.overlap - len(frames))
        averages = F.pad(frames, lacking).unfold(0, self.block, self.hop).mean(-1)
        averages[-1] *= self.block / (self.block - lacking[-1])
        if self.encoder.ctx_pos_enc:
            averages = pos_enc(averages.unsqueeze(0), self.blocks)[0]
        placed = F.pad(pos_enc(frames.unsqueeze(0), self.blocks * self.hop)[0], lacking)
        windows = placed.unfold(0, self.block, self.hop).transpose(1, 2)
        before = torch.cat([averages[:1] if self.average is None else self.average, averages[:-1]])
        blocks = torch.cat([before.unsqueeze(1), windows, averages.unsqueeze(1)], dim=1)
        encoded, self.contexts = self.layers(blocks, self.contexts)
        self.encoded_frames += count * self.block
        self.average = averages[-1:]
        self.blocks += count
        return encoded[:, 1:-1]


class FullContextEncoder:
    """An encoder that sees the whole utterance: all audio so far is encoded anew at every push (IBWBS paper, 3.3).

    Args:
        encode: features `(T, D)` of the utterance so far -> memory `(T', D')`.
        field: feature frames that one memory frame is made of.
        stride: feature frames from one memory frame to the next.
        width: D'.
        silence: features `(T, D)` that are encoded after those of the audio, for a model that never saw audio end
            without them; fewer where a window of `most` feature frames is full.
    """

    def __init__(
        self,
        encode: Callable[[Tensor], Tensor],
        field: int,
        stride: int,
        width: int,
        silence: Tensor | None = None,
        most: int = 0,
    ) -> None:
        self.encode = encode
        self.field = field
        self.stride = stride
        self.width = width
        self.silence = silence
        self.most = most
        self.reset()

    def reset(self) -> None:
        """Forget the utterance."""
        self.features: Tensor | None = None
        self.memory = torch.zeros(0, self.width)
        self.audio_frames = 0
        self.encoded_frames = 0

    @torch.inference_mode()
    def push(self, features: Tensor, final: bool = False) -> Tensor:
        """Take feature frames `(T, D)` and return memory frames `(T', D')` of all features so far, all of them new.

        Fewer feature frames than the subsampling needs for one frame have no memory.
        """
        self.features = features if self.features is None else torch.cat([self.features, features])
        if len(features) and len(self.features) >= self.field:
            if self.silence is None:
                self.memory = self.encode(self.features)
                self.audio_frames = len(self.memory)
            else:
                silence = self.silence[: max(0, self.most - len(self.features))]
                self.memory = self.encode(torch.cat([self.features, silence]))
                self.audio_frames = min(len(self.features) // self.stride, len(self.memory))
            self.encoded_frames += len(self.memory)
        return self.memory


class EncoderWindow:
    """An encoder over the last part of an endless stream: what is dropped is forgotten, the rest encoded anew.

    The first frame left counts as the first of an utterance, so positions stay within the window's length.
    """

    def __init__(self, encoder: BlockEncoder | FullContextEncoder, stride: int) -> None:
        self.encoder = encoder
        self.stride = stride
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.encoder.reset()
        self.features: Tensor | None = None
        self.restarted = False
        self.encoded_before = 0

    @property
    def audio_frames(self) -> int:
        """Frames of audio in the window's memory."""
        return self.encoder.audio_frames

    @property
    def encoded_frames(self) -> int:
        """Frames that went through the encoder's layers, those of earlier windows included."""
        return self.encoded_before + self.encoder.encoded_frames

    def push(self, features: Tensor, final: bool = False) -> Tensor:
        """Take feature frames `(T, D)` and return the memory `(T', D')` of the window."""
        self.features = features if self.features is None else torch.cat([self.features, features])
        new = self.features if self.restarted else features
        self.restarted = False
        return self.encoder.push(new, final)

    def drop(self, frames: int) -> None:
        """Let the window begin `frames` encoder frames later."""
        self.features = self.features[frames * self.stride :]
        self.encoded_before += self.encoder.encoded_frames
        self.encoder.reset()
        self.restarted = True


def subsampling(embed: torch.nn.Module | None) -> tuple[int, int]:
    """Feature frames that one encoder frame is made of, and feature frames from one encoder frame to the next."""
    field = stride = 1
    convolutions = [m for m in embed.modules() if isinstance(m, _STRIDED)] if embed is not None else []
    for convolution in reversed(convolutions):
        field = (field - 1) * convolution.stride[0] + convolution.kernel_size[0]
        stride *= convolution.stride[0]
    return field, stride
