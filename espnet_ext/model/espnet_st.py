"""ESPnet's ST models: the parts of one that a session runs."""

import logging
from collections.abc import Iterable, Mapping, Sequence

import torch
from espnet2.legacy.nets.scorer_interface import BatchScorerInterface
from espnet2.legacy.nets.scorers.ctc import CTCPrefixScorer
from espnet2.legacy.nets.scorers.length_bonus import LengthBonus
from espnet2.train.abs_espnet_model import AbsESPnetModel

from espnet_ext.audio.frontend import StreamingFrontend, check_frontend
from espnet_ext.audio.reader import SAMPLE_RATE
from espnet_ext.errors import UserError
from espnet_ext.model.cached_decoder import CachedDecoder, DecoderWeights, is_supported
from espnet_ext.model.encoder import (
    BLOCK_ENCODERS,
    FULL_CONTEXT_ENCODERS,
    BlockEncoder,
    FullContextEncoder,
    subsampling,
)
from espnet_ext.model.encoder_layers import make_layers
from espnet_ext.model.vocabulary import Vocabulary

FULL_CONTEXT_CHUNK_MS = 280.0
DEFAULT_ATTENTION_LAYER = 4  # the papers'


class SpeechTranslationModel:
    """A trained ST model with a contextual block or a full-context encoder (`espnet_ext.model.protocol.SpeechModel`).

    Raises UserError, naming the config key, for a model that cannot run on a stream.
    """

    suppressed: Sequence[int] = ()
    suppressed_first: Sequence[int] = ()
    max_tokens = None
    max_audio_s: float | None = None
    silence_s = 0.0
    after_audio: Mapping[str, object] = {}  # options of FullContextEncoder: the silence that follows

    def __init__(
        self,
        model: AbsESPnetModel,
        vocabulary: Vocabulary,
        config: dict | None = None,
        precision: str = "float32",
        language_model: BatchScorerInterface | None = None,
        compiled: bool = False,
        attention_layer: int | None = None,
    ) -> None:
        self.module = model.eval()
        self.vocabulary = vocabulary
        self.config = config or {}
        self.language_model = language_model
        self.attention_layer = attention_layer or DEFAULT_ATTENTION_LAYER
        self.sos, self.eos = model.sos, model.eos
        self.streaming = isinstance(model.encoder, BLOCK_ENCODERS)
        if self.streaming and model.encoder.block_size <= 0:
            raise UserError("encoder_conf: block_size: must be above 0 for a block encoder to run on a stream")
        if not self.streaming and not isinstance(model.encoder, FULL_CONTEXT_ENCODERS):
            known = ", ".join(encoder.__name__ for encoder in (*BLOCK_ENCODERS, *FULL_CONTEXT_ENCODERS))
            raise UserError(f"encoder: {type(model.encoder).__name__} is not one of {known}")
        for part in ("preencoder", "hier_encoder", "postencoder"):
            if getattr(model, part, None) is not None:
                raise UserError(f"{part}: {type(getattr(model, part)).__name__} cannot run on a stream")
        if getattr(model.encoder, "interctc_use_conditioning", False):
            raise UserError("encoder_conf: interctc_use_conditioning: not available on a stream")
        check_frontend(model.frontend, model.normalize)
        self.block_size = None
        if self.streaming:
            self.block_size = model.encoder.block_size
            self.hop_size = model.encoder.hop_size
            self.look_ahead = model.encoder.look_ahead
            self.encoder_layers = make_layers(model.encoder)
        _, self.subsample = subsampling(model.encoder.embed)
        self.frame_ms = 1000 * self.subsample * model.frontend.stft.hop_length / SAMPLE_RATE
        self.decoder_weights = None
        if is_supported(model.decoder):
            self.decoder_weights = DecoderWeights(model.decoder, precision, compiled)
        for option, unusual in (("precision", precision != "float32"), ("compile", compiled)):
            if self.decoder_weights is None and unusual:
                raise UserError(f"{option}: not available for this {type(model.decoder).__name__}; leave it out")
        if self.decoder_weights is None:
            logging.warning(
                "%s has options that the cached decoder does not know: ESPnet's own, slower call is used",
                type(model.decoder).__name__,
            )

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.module.parameters()).device

    @property
    def has_ctc(self) -> bool:
        """Whether the model was trained with CTC over the target's tokens."""
        return hasattr(self.module, "st_ctc")

    @property
    def natural_chunk_ms(self) -> float:
        """`chunk_ms` where none is asked for: the hop of a block encoder, 280 for a full-context one."""
        return self.hop_size * self.frame_ms if self.streaming else FULL_CONTEXT_CHUNK_MS

    @property
    def decoder_layers(self) -> int:
        """Layers of the decoder whose attention can be had. Raises UserError when there are none."""
        if self.decoder_weights is None:
            raise UserError(
                f"decoder: no attention can be had of this {type(self.module.decoder).__name__}; use another policy"
            )
        return len(self.decoder_weights.layers)

    def frontend(self) -> StreamingFrontend:
        """A streaming front end with the model's features and normalisation."""
        return StreamingFrontend(self.module.frontend, self.module.normalize)

    def encoder(self) -> BlockEncoder | FullContextEncoder:
        """An encoder of one stream, with the model's own geometry."""
        if self.streaming:
            return BlockEncoder(self.module.encoder, self.encoder_layers)
        field, stride = subsampling(self.module.encoder.embed)
        width = self.module.encoder.output_size()
        return FullContextEncoder(self._encode, field, stride, width, **self.after_audio)

    def _encode(self, features: torch.Tensor) -> torch.Tensor:
        """Memory `(T', D')` of the features `(T, D)` of a whole utterance."""
        lengths = torch.tensor([len(features)], device=features.device)
        memory, *_ = self.module.encoder(features.unsqueeze(0), lengths)
        return (memory[0] if isinstance(memory, tuple) else memory)[0]

    def start(self, src_lang: str, tgt_lang: str) -> tuple[int, ...]:
        """`sos`: an ST model has one pair of languages, which nothing in it names."""
        return (self.sos,)

    def attention_heads(self, layer: int | None) -> Mapping[int, Sequence[int]]:
        """All heads of the layer (from 1), or of the one that check_attention has found, else the papers' fourth.

        Raises UserError when the decoder has no such layer or shows no attention.
        """
        layer = layer or self.attention_layer
        if layer > self.decoder_layers:
            raise UserError(
                f"align_att_layer: {layer} is above the {self.decoder_layers} decoder layers of the model; "
                "check_attention finds the one to use"
            )
        return {layer - 1: range(self.decoder_weights.heads)}

    def scorers(
        self, names: Iterable[str] = ("decoder",), attention_heads: Mapping[int, Sequence[int]] | None = None
    ) -> dict[str, BatchScorerInterface]:
        """ESPnet scorers of one session, of these names: `decoder`, `ctc`, `lm`, `length_bonus`.

        `attention_heads` asks the decoder for their cross attention.
        Raises UserError, naming the option, when the model has no CTC or language model to give.
        """
        make = {
            "decoder": lambda: self._decoder(attention_heads),
            "ctc": lambda: CTCPrefixScorer(ctc=self._ctc("ctc_weight"), eos=self.eos),
            "lm": self._language_model,
            "length_bonus": lambda: LengthBonus(len(self.vocabulary)),
        }
        return {name: make[name]() for name in names}

    @torch.inference_mode()
    def ctc_length(self, memory: torch.Tensor) -> int:
        """Number of tokens that greedy CTC finds in memory frames `(T, D)`."""
        best = self._ctc("ctc_length").argmax(memory.unsqueeze(0))[0].unique_consecutive()
        return int((best != 0).sum())

    def _decoder(self, attention_heads: Mapping[int, Sequence[int]] | None) -> BatchScorerInterface:
        if self.decoder_weights is None:
            return self.module.decoder
        return CachedDecoder(self.decoder_weights, attention_heads)

    def _language_model(self) -> BatchScorerInterface:
        if self.language_model is None:
            raise UserError("lm_weight: there is no language model; name one with --lm_train_config and --lm_file")
        return self.language_model

    def _ctc(self, option: str) -> torch.nn.Module:
        if not self.has_ctc:
            raise UserError(f"{option}: the model was trained without ST-CTC")
        return self.module.st_ctc
