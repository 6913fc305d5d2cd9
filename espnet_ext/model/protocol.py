"""What sessions, searches and commands use of a model, whatever family it comes from."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import torch
from espnet2.legacy.nets.scorer_interface import BatchScorerInterface
from torch import Tensor


class Frontend(Protocol):
    """Samples in, feature frames out, for one stream."""

    def reset(self) -> None:
        """Forget the waveform."""

    def push(self, samples: Tensor, final: bool = False) -> Tensor:
        """Take samples `(N,)` float32 at 16 kHz; return the feature frames `(T, D)` that are now complete."""


class Encoder(Protocol):
    """Feature frames in, memory out, for one stream.

    `audio_frames` of the memory are of audio; what follows is the silence that the model expects after it.
    `encoded_frames` counts those that went through the layers.
    """

    audio_frames: int
    encoded_frames: int

    def reset(self) -> None:
        """Forget the utterance."""

    def push(self, features: Tensor, final: bool = False) -> Tensor:
        """Take feature frames `(T, D)`; return all memory frames `(T', D')` so far."""


class Vocabulary(Protocol):
    """Target tokens."""

    def __len__(self) -> int:
        """Number of tokens that the decoder scores."""

    def text(self, ids: Sequence[int]) -> str:
        """Text of token ids, without blanks at its ends and without tokens that are no text."""

    def tokens(self, text: str) -> list[int]:
        """Token ids of a text."""

    def starts_word(self, token: int) -> bool:
        """Whether a word ends before this token."""

    def words(self, ids: Sequence[int]) -> list[Sequence[int]]:
        """The tokens of each word."""

    def markers(self) -> frozenset[int]:
        """Tokens without a surface: repeating them means nothing."""


class SpeechModel(Protocol):
    """A trained encoder-decoder model. It holds weights only; every method makes something for one session.

    Attributes:
        vocabulary: the target tokens.
        eos: id of the end symbol.
        streaming: whether frames of the memory stay when it grows (block encoders); else each push makes all anew.
        block_size: encoder frames of a block; None without blocks.
        subsample: feature frames of one encoder frame.
        frame_ms: ms of one encoder frame.
        natural_chunk_ms: `chunk_ms` where none is asked for.
        attention_layer: decoder layer (from 1) for AlignAtt where none is asked for; None: heads chosen by the model.
        decoder_layers: layers whose attention can be had.
        has_ctc: whether there is a CTC, so that `ctc_length` can be asked.
        suppressed: tokens that are never put out.
        suppressed_first: tokens that are not put out first.
        max_tokens: longest output that the decoder can take, None without limit.
        max_audio_s: longest audio that the encoder can take at once, None without limit. The offline search pads to it,
            as the family's own decoding does.
        silence_s: silence that simultaneous searches encode after the audio; it takes its room of `max_audio_s`.
    """

    vocabulary: Vocabulary
    eos: int
    streaming: bool
    block_size: int | None
    subsample: int
    frame_ms: float
    natural_chunk_ms: float
    attention_layer: int | None
    has_ctc: bool
    suppressed: Sequence[int]
    suppressed_first: Sequence[int]
    max_tokens: int | None
    max_audio_s: float | None
    silence_s: float

    @property
    def device(self) -> torch.device:
        """Where the weights are."""

    @property
    def decoder_layers(self) -> int:
        """See above. Raises UserError when no attention can be had."""

    def frontend(self) -> Frontend:
        """A front end of one stream."""

    def encoder(self) -> Encoder:
        """An encoder of one stream."""

    def start(self, src_lang: str, tgt_lang: str) -> tuple[int, ...]:
        """The tokens that the decoder is given before the translation.

        Raises UserError for a language, or a translation, that the model does not have.
        """

    def attention_heads(self, layer: int | None) -> Mapping[int, Sequence[int]]:
        """Heads (layer -> heads, from 0) whose mean is the attention of `layer` (from 1); None: the model's own choice.

        Raises UserError for a layer above the decoder's.
        """

    def scorers(
        self, names: Iterable[str] = ("decoder",), attention_heads: Mapping[int, Sequence[int]] | None = None
    ) -> dict[str, BatchScorerInterface]:
        """ESPnet scorers of one session, of these names: `decoder`, `ctc`, `lm`, `length_bonus`.

        `attention_heads` asks the decoder for their cross attention.
        Raises UserError, naming the option, for what the model does not have.
        """

    def ctc_length(self, memory: Tensor) -> int:
        """Number of tokens that greedy CTC finds in memory frames `(T, D)`. Raises UserError without CTC."""
