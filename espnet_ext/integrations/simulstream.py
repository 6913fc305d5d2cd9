"""A simulstream speech processor: `type: espnet_ext.integrations.simulstream.EspnetProcessor` runs our sessions.

Its yaml file has the options of `st_inference_simul` that name a model and a decode; chunks are the session's steps.
simulstream's log then has the texts and delays of ours. simulstream's scorers take the same file as their
`--eval-config` when it has their `detokenizer_type: simuleval` and `latency_unit: word` (`char` for zh and ja).
"""

import difflib
from argparse import Namespace
from types import SimpleNamespace

import numpy as np
from simulstream.server.speech_processors import SpeechProcessor
from simulstream.server.speech_processors.incremental_output import IncrementalOutput

from espnet_ext.audio.reader import SAMPLE_RATE
from espnet_ext.bin.model_options import add_model_options, load_model_from_args, named_model
from espnet_ext.cli import ArgumentParser
from espnet_ext.config import DecodeConfig, make_config, option_names
from espnet_ext.errors import UserError
from espnet_ext.log.units import join_units, uses_characters
from espnet_ext.model import SpeechModel
from espnet_ext.session import SimulSession, Update


class EspnetProcessor(SpeechProcessor):
    """One session for stream after stream. All processors of a server share the model; nothing is ever deleted.

    Args:
        config: simulstream's reading of the yaml file.

    Raises UserError, naming the key, for one that is unknown, of the wrong type or does not fit the model.
    """

    model: SpeechModel | None = None
    model_options: Namespace | None = None

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__(config)
        self.session = SimulSession(self.model, _decode_config(config))

    @classmethod
    def load_model(cls, config: SimpleNamespace) -> None:
        """Load the model that the file names, unless it is the one that is there."""
        _decode_config(config)  # may refuse an option: nothing is loaded yet
        options = _model_options(config)
        if options == cls.model_options:
            return
        loaded = Namespace(**vars(options))
        with named_model(loaded):
            cls.model = load_model_from_args(loaded)
        cls.model_options = options

    @property
    def speech_chunk_size(self) -> float:
        """Seconds of a step of the session."""
        return round(self.session.chunk_ms * SAMPLE_RATE / 1000) / SAMPLE_RATE

    def process_chunk(self, waveform: np.ndarray) -> IncrementalOutput:
        """Take float32 samples `(N,)` at 16 kHz; the output is what they release."""
        return self._output(self.session.push(np.asarray(waveform, dtype=np.float32)))

    def end_of_stream(self) -> IncrementalOutput:
        """Release the rest."""
        return self._output(self.session.finish())

    def set_source_language(self, language: str) -> None:
        """A model has the source language that it was trained on."""

    def set_target_language(self, language: str) -> None:
        """Raises UserError for another language than the configured one."""
        if language != self.session.config.tgt_lang:
            raise UserError(f"target_lang: this model translates into {self.session.config.tgt_lang}, not {language}")

    def tokens_to_string(self, tokens: list[str]) -> str:
        """The text of the last units of the stream, with the blank that parts them from those before."""
        text = join_units(tokens, self.session.config.tgt_lang)
        begins = len(tokens) == len(self.session.units) or uses_characters(self.session.config.tgt_lang)
        return text if begins or not tokens else f" {text}"

    def clear(self) -> None:
        """Be ready for the next stream, whatever became of this one."""
        self.session.reset()

    def _output(self, update: Update) -> IncrementalOutput:
        return IncrementalOutput(list(update.units), self.tokens_to_string(update.units), [], "")


def _decode_config(config: SimpleNamespace) -> DecodeConfig:
    """The decode that the file asks for; every key of the file is checked."""
    values = dict(vars(config))
    values.pop("type", None)
    names = option_names()
    decode = make_config({key: value for key, value in values.items() if key in names})
    scoring = {
        "detokenizer_type": "simuleval",
        "latency_unit": "char" if uses_characters(decode.tgt_lang) else "word",
    }
    known = [*names, *vars(_model_defaults()), *scoring]
    for key, value in values.items():
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            raise UserError(f"{key}: unknown option" + (f", did you mean {near[0]}?" if near else ""))
        if key in scoring and value != scoring[key]:
            raise UserError(f"{key}: {value!r}; with tgt_lang {decode.tgt_lang} it must be {scoring[key]}")
    return decode


def _model_defaults() -> Namespace:
    parser = ArgumentParser(prog="simulstream")
    add_model_options(parser)
    return parser.parse_args([])


def _model_options(config: SimpleNamespace) -> Namespace:
    """The options that name the model and say how it runs."""
    options = _model_defaults()
    for key, default in vars(options).items():
        value = getattr(config, key, default)
        wanted = str if default is None else type(default)
        if value != default and type(value) is not wanted:
            raise UserError(f"{key}: expected {wanted.__name__}, got {value!r}")
        setattr(options, key, value)
    return options
