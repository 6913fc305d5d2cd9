"""ESPnet's ST models: loading, and the parts of one that a session runs."""

import argparse
import hashlib
import json
import logging
import pickle
from collections.abc import Iterable
from pathlib import Path
from zipfile import BadZipFile

import torch
import yaml
from espnet2.legacy.nets.scorer_interface import BatchScorerInterface
from espnet2.legacy.nets.scorers.ctc import CTCPrefixScorer
from espnet2.legacy.nets.scorers.length_bonus import LengthBonus
from espnet2.st.espnet_model import ESPnetSTModel
from espnet2.tasks.lm import LMTask
from espnet2.tasks.st import STTask

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
from espnet_ext.model.packed import model_files
from espnet_ext.model.vocabulary import Vocabulary
from espnet_ext.model.weights import PRECISIONS

FULL_CONTEXT_CHUNK_MS = 280.0
ATTENTION_FILE = "attention.json"  # what check_attention has found, beside the weights
DEFAULT_ATTENTION_LAYER = 4  # the papers'


class SpeechTranslationModel:
    """A trained ST model with a contextual block or a full-context encoder.

    Holds weights only; every method makes something for one session.

    Raises UserError, naming the config key, for a model that cannot run on a stream.
    """

    def __init__(
        self,
        model: ESPnetSTModel,
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
        check_frontend(model.frontend, model.normalize)
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
        return FullContextEncoder(self.module.encoder)

    def scorers(
        self, names: Iterable[str] = ("decoder",), attention_layer: int | None = None
    ) -> dict[str, BatchScorerInterface]:
        """ESPnet scorers of one session, of these names: `decoder`, `ctc`, `lm`, `length_bonus`.

        `attention_layer` (from 1) asks the decoder for that layer's cross attention.
        Raises UserError, naming the option, when the model has no CTC, language model or attention to give.
        """
        make = {
            "decoder": lambda: self._decoder(attention_layer),
            "ctc": lambda: CTCPrefixScorer(ctc=self._ctc("ctc_weight"), eos=self.eos),
            "lm": self._language_model,
            "length_bonus": lambda: LengthBonus(len(self.vocabulary)),
        }
        return {name: make[name]() for name in names}

    @torch.inference_mode()
    def ctc_length(self, memory: torch.Tensor) -> int:
        """Number of tokens that greedy CTC finds in memory frames `(T, D)`."""
        best = self._ctc("policy ctc_wait").argmax(memory.unsqueeze(0))[0].unique_consecutive()
        return int((best != 0).sum())

    def _decoder(self, attention_layer: int | None) -> BatchScorerInterface:
        if attention_layer is not None and attention_layer > self.decoder_layers:
            raise UserError(
                f"align_att_layer: {attention_layer} is above the {self.decoder_layers} decoder layers of the model; "
                "check_attention finds the one to use"
            )
        if self.decoder_weights is None:
            return self.module.decoder
        return CachedDecoder(self.decoder_weights, attention_layer)

    def _language_model(self) -> BatchScorerInterface:
        if self.language_model is None:
            raise UserError("lm_weight: there is no language model; name one with --lm_train_config and --lm_file")
        return self.language_model

    def _ctc(self, option: str) -> torch.nn.Module:
        if not hasattr(self.module, "st_ctc"):
            raise UserError(f"{option}: the model was trained without ST-CTC")
        return self.module.st_ctc


def load_model(
    st_train_config: str | Path,
    st_model_file: str | Path | None = None,
    device: str = "cpu",
    lm_train_config: str | Path | None = None,
    lm_file: str | Path | None = None,
    precision: str = "float32",
    compiled: bool = False,
) -> SpeechTranslationModel:
    """Load an ESPnet ST model from its training config and weights, and a language model for `lm_weight` if named.

    Without `st_model_file` the first path names both: a packed archive, the directory unpacked from it or a training
    directory (`espnet_ext.model.packed`).
    `precision` is that of the decoder's products: `float32`, `bfloat16` or `int8` (on the CPU). `compiled` runs the
    decoder through `torch.compile`, which takes about a minute in the first steps and needs a C++ compiler on the CPU.
    Files that the config names (bpemodel, stats_file) are looked for from the config's directory upwards, then from the
    working directory, so a recipe's models and packed ones load from anywhere.
    Raises UserError for missing or unreadable files, for weights that do not fit the config, and for a language model
    over other tokens.
    """
    if st_model_file is None:
        with model_files(st_train_config) as (train_config, weights):
            return load_model(train_config, weights, device, lm_train_config, lm_file, precision, compiled)
    if precision not in PRECISIONS:
        raise UserError(f"precision: {precision!r} is not one of {', '.join(PRECISIONS)}")
    if precision == "int8" and device != "cpu":
        raise UserError("precision: int8 runs on the CPU only")
    if precision == "int8" and compiled:
        raise UserError("precision: int8 cannot be compiled; leave out one of --precision and --compile")
    if (lm_train_config is None) != (lm_file is None):
        raise UserError("lm_train_config and lm_file: one is of no use without the other")
    config = _read_config(st_train_config, "st_train_config", ("encoder", "decoder"))
    base = Path(st_train_config).resolve().parent
    bpemodel = config.get("bpemodel")
    if bpemodel is not None:
        bpemodel = _find(bpemodel, base, f"{st_train_config}: bpemodel")
    normalize_conf = config.get("normalize_conf") or {}
    if normalize_conf.get("stats_file"):
        stats = _find(normalize_conf["stats_file"], base, f"{st_train_config}: normalize_conf.stats_file")
        config["normalize_conf"] = normalize_conf | {"stats_file": str(stats)}
    # The weights are about to be loaded; where training took its first ones from no longer matters.
    config |= {"init_param": [], "init": None}
    module = STTask.build_model(argparse.Namespace(**config))
    _load_weights(module, st_model_file, st_train_config)
    vocabulary = Vocabulary(config["token_list"], config["token_type"], bpemodel)
    language_model = None
    if lm_train_config is not None:
        language_model = _load_language_model(lm_train_config, lm_file, config["token_list"]).to(device)
    layer = _recommended_layer(Path(st_model_file).with_name(ATTENTION_FILE))
    return SpeechTranslationModel(module.to(device), vocabulary, config, precision, language_model, compiled, layer)


def _recommended_layer(path: Path) -> int | None:
    """The layer that check_attention has written, if it has found one."""
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))["recommended_layer"]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise UserError(f"{path}: not written by check_attention; remove it") from None


def _load_language_model(train_config: str | Path, file: str | Path, tokens: list[str]) -> torch.nn.Module:
    config = _read_config(train_config, "lm_train_config", ("lm",))
    if config["token_list"] != tokens:
        raise UserError(f"{train_config}: its token_list is not that of the translation model")
    module = LMTask.build_model(argparse.Namespace(**config | {"init": None, "init_param": []}))
    _load_weights(module, file, train_config)
    return module.lm.eval()


def file_hash(path: str | Path) -> str:
    """SHA-256 of a file, which names a model in logs."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read_config(path: str | Path, option: str, keys: tuple[str, ...]) -> dict:
    try:
        config = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file ({option})") from None
    except (yaml.YAMLError, UnicodeDecodeError, IsADirectoryError) as error:
        raise UserError(f"{path}: not a training config: {error}") from None
    missing = [key for key in (*keys, "token_list", "token_type") if key not in (config or {})]
    if missing:
        raise UserError(f"{path}: not the config.yaml of such a model ({option}): no key {missing[0]!r}")
    return config


def _find(name: str, base: Path, where: str) -> Path:
    for directory in (base, *base.parents, Path()):
        if (directory / name).is_file():
            return directory / name
    raise UserError(f"{where}: no file {name} in or above {base}, nor here")


def _load_weights(module: torch.nn.Module, path: str | Path, config: str | Path) -> None:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"{path}: no such model file") from None
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError, BadZipFile) as error:
        raise UserError(f"{path}: not a model file: {str(error).splitlines()[0]}") from None
    own = module.state_dict()
    wrong = [key for key in own if key in state and own[key].shape != state[key].shape]
    absent = [key for key in own if key not in state]
    surplus = [key for key in state if key not in own]
    for kind, keys in (("another shape", wrong), ("no value", absent), ("no place", surplus)):
        if keys:
            raise UserError(f"{path} does not fit {config}: {len(keys)} parameters have {kind}, such as {keys[0]}")
    module.load_state_dict(state)
