"""Whisper models of `transformers`: speech of many languages into English text."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from espnet2.legacy.nets.scorer_interface import BatchScorerInterface
from espnet2.legacy.nets.scorers.length_bonus import LengthBonus
from safetensors import SafetensorError
from torch import Tensor
from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperTokenizer
from transformers.utils import logging as transformers_logging

from espnet_ext.audio.reader import SAMPLE_RATE
from espnet_ext.audio.whisper_frontend import LOWEST, WhisperFrontend, scale
from espnet_ext.errors import UserError
from espnet_ext.model.cached_decoder import CachedDecoder, DecoderWeights
from espnet_ext.model.encoder import FullContextEncoder
from espnet_ext.model.espnet_st import FULL_CONTEXT_CHUNK_MS
from espnet_ext.model.languages import find_language
from espnet_ext.model.packed import WHISPER_WEIGHTS, recommended_layer
from espnet_ext.model.whisper_vocabulary import WhisperVocabulary

LANGUAGE = re.compile(r"<\|([a-z]{2,3})\|>")
TARGET = "en"


class WhisperModel:
    """A multilingual Whisper model that translates (`espnet_ext.model.protocol.SpeechModel`).

    The decoder begins with `<|startoftranscript|><|de|><|translate|><|notimestamps|>` and never puts out what the
    generation config suppresses.

    Whisper is trained on windows of 30 s, shorter audio padded with silence. The offline search pads too and encodes
    what `transformers` would. Simultaneous searches crop the padding: they encode the audio and `silence_s` of silence
    after it, with the positions that these have at the start of a window, which for 5 s of audio is a quarter of the
    frames. Without any silence the decoder does not see that the audio ends, and repeats itself until the cap.
    """

    streaming = False
    block_size = None
    natural_chunk_ms = FULL_CONTEXT_CHUNK_MS
    has_ctc = False
    silence_s = 2.0

    def __init__(
        self,
        module: WhisperForConditionalGeneration,
        extractor: WhisperFeatureExtractor,
        tokenizer: WhisperTokenizer,
        precision: str = "float32",
        compiled: bool = False,
        attention_layer: int | None = None,
    ) -> None:
        self.module = module.eval()
        self.extractor = extractor
        self.attention_layer = attention_layer
        config, generation = module.config, module.generation_config
        self.vocabulary = WhisperVocabulary(tokenizer, config.vocab_size)
        special = self.vocabulary.ids
        if not getattr(generation, "is_multilingual", True) or "<|translate|>" not in special:
            raise UserError("model: an English-only Whisper model does not translate; use a multilingual one")
        if extractor.sampling_rate != SAMPLE_RATE:
            raise UserError(f"sampling_rate: {extractor.sampling_rate} Hz; only models of {SAMPLE_RATE} Hz can be used")
        self.sources = {match[1]: special[token] for token in special if (match := LANGUAGE.fullmatch(token))}
        self.eos = generation.eos_token_id
        self.suppressed = generation.suppress_tokens or ()
        self.suppressed_first = generation.begin_suppress_tokens or ()
        self.max_tokens = config.max_target_positions - len(self.start(next(iter(self.sources)), TARGET)) + 1
        self.max_audio_s = float(extractor.chunk_length)
        encoder = module.model.encoder
        self.subsample = encoder.conv1.stride[0] * encoder.conv2.stride[0]
        self.max_features = config.max_source_positions * self.subsample
        self.frame_ms = 1000 * self.subsample * extractor.hop_length / SAMPLE_RATE
        self.mel_filters = torch.from_numpy(extractor.mel_filters).float().to(self.device)
        self.decoder_weights = DecoderWeights(_as_espnets(module), precision, compiled)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.module.device

    @property
    def decoder_layers(self) -> int:
        """Layers of the decoder."""
        return len(self.decoder_weights.layers)

    def frontend(self) -> WhisperFrontend:
        """A streaming front end with the model's features, not scaled yet."""
        return WhisperFrontend(self.extractor, self.mel_filters)

    def encoder(self) -> FullContextEncoder:
        """An encoder of one stream; it scales the features by the loudest of all so far."""
        extractor, width = self.extractor, self.module.config.d_model
        count = round(self.silence_s * SAMPLE_RATE) // extractor.hop_length
        silence = self.mel_filters.new_full((count, extractor.feature_size), LOWEST)
        return FullContextEncoder(self.encode, 1, self.subsample, width, silence, self.max_features)

    def encode(self, features: Tensor) -> Tensor:
        """Memory `(T', D')` of log-mel features `(T, D)` that are not scaled; what is beyond the window is left out.

        `transformers`' encoder for any length: it refuses all but 30 s.
        """
        encoder = self.module.model.encoder
        x = scale(features[: self.max_features]).T.unsqueeze(0)
        x = F.gelu(encoder.conv2(F.gelu(encoder.conv1(x)))).transpose(1, 2)
        x = x + encoder.embed_positions.weight[: x.size(1)]
        for layer in encoder.layers:
            x = layer(x, None)
        return encoder.layer_norm(x)[0]

    def start(self, src_lang: str, tgt_lang: str) -> tuple[int, ...]:
        """`<|startoftranscript|>`, the language that is spoken, `<|translate|>`, `<|notimestamps|>`.

        Raises UserError for a language that the model does not have, and for another target than English.
        """
        find_language({TARGET: 0}, tgt_lang, "tgt_lang")
        source = find_language(self.sources, src_lang, "src_lang")
        special = self.vocabulary.ids
        return (
            self.module.generation_config.decoder_start_token_id,
            source,
            special["<|translate|>"],
            special["<|notimestamps|>"],
        )

    def attention_heads(self, layer: int | None) -> Mapping[int, Sequence[int]]:
        """All heads of the layer (from 1), or of the one that check_attention has found.

        Else the heads that the generation config names as aligned with the audio, or, where it names none, all of the
        upper half of the layers.
        Raises UserError when the decoder has no such layer.
        """
        layer = layer or self.attention_layer
        every = range(self.decoder_weights.heads)
        if layer is None:
            aligned = getattr(self.module.generation_config, "alignment_heads", None)
            if not aligned:
                return {index: every for index in range(self.decoder_layers // 2, self.decoder_layers)}
            return {index: [head for own, head in aligned if own == index] for index, _ in aligned}
        if layer > self.decoder_layers:
            raise UserError(f"align_att_layer: {layer} is above the {self.decoder_layers} decoder layers of the model")
        return {layer - 1: every}

    def scorers(
        self, names: Iterable[str] = ("decoder",), attention_heads: Mapping[int, Sequence[int]] | None = None
    ) -> dict[str, BatchScorerInterface]:
        """Scorers of one session, of these names: `decoder`, `length_bonus`.

        Raises UserError, naming the option, for CTC and a language model.
        """
        make = {
            "decoder": lambda: CachedDecoder(self.decoder_weights, attention_heads),
            "length_bonus": lambda: LengthBonus(len(self.vocabulary)),
        }
        for name in names:
            if name not in make:
                raise UserError(f"{name}_weight: not available for Whisper models; leave it out")
        return {name: make[name]() for name in names}

    def ctc_length(self, memory: Tensor) -> int:
        """Raises UserError: there is no CTC."""
        raise UserError("ctc_length: Whisper models have no CTC")


def _as_espnets(module: WhisperForConditionalGeneration) -> SimpleNamespace:
    """The decoder under the names of ESPnet's, for `DecoderWeights`: the two compute the same but for positions."""
    decoder = module.model.decoder
    layers = [
        SimpleNamespace(
            self_attn=_attention(layer.self_attn),
            src_attn=_attention(layer.encoder_attn),
            feed_forward=SimpleNamespace(w_1=layer.fc1, w_2=layer.fc2, activation=layer.activation_fn),
            norm1=layer.self_attn_layer_norm,
            norm2=layer.encoder_attn_layer_norm,
            norm3=layer.final_layer_norm,
            normalize_before=True,
        )
        for layer in decoder.layers
    ]
    # Positions are learnt; max_tokens keeps hypotheses within them.
    encoding = SimpleNamespace(pe=decoder.embed_positions.weight.detach().unsqueeze(0), xscale=1.0)
    return SimpleNamespace(
        decoders=layers,
        output_layer=module.proj_out,
        normalize_before=True,
        after_norm=decoder.layer_norm,
        embed=[decoder.embed_tokens, encoding],
    )


def _attention(attention: torch.nn.Module) -> SimpleNamespace:
    return SimpleNamespace(
        h=attention.num_heads,
        linear_q=attention.q_proj,
        linear_k=attention.k_proj,
        linear_v=attention.v_proj,
        linear_out=attention.out_proj,
    )


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Without its progress bars and reports while the block runs."""
    bar, level = transformers_logging.is_progress_bar_enabled(), transformers_logging.get_verbosity()
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity(transformers_logging.CRITICAL)
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bar:
            transformers_logging.enable_progress_bar()


def load_whisper(directory: Path, device: str, precision: str, compiled: bool) -> WhisperModel:
    """A Whisper model from the directory that `save_pretrained` of model and processor write.

    Raises UserError for files that are missing, unreadable or do not fit together.
    """
    try:
        with _quiet_transformers():
            module, report = WhisperForConditionalGeneration.from_pretrained(
                directory, dtype=torch.float32, local_files_only=True, use_safetensors=True, output_loading_info=True
            )
            extractor = WhisperFeatureExtractor.from_pretrained(directory, local_files_only=True)
            tokenizer = WhisperTokenizer.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError, json.JSONDecodeError) as error:
        raise UserError(f"{directory}: not a whole Whisper model: {str(error).splitlines()[0]}") from None
    if report["missing_keys"]:
        missing = sorted(report["missing_keys"])
        raise UserError(f"{directory}: {len(missing)} parameters have no value, such as {missing[0]}")
    if tokenizer.eos_token_id != module.generation_config.eos_token_id:
        raise UserError(f"{directory}: its tokenizer is not the model's: {tokenizer.eos_token} has another id")
    layer = recommended_layer(directory / WHISPER_WEIGHTS[0])
    return WhisperModel(module.to(device), extractor, tokenizer, precision, compiled, layer)
