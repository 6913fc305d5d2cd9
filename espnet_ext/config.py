"""Every decoding option in one place: a dataclass that the session, the commands and the yaml files share."""

import argparse
import dataclasses
import difflib
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from espnet_ext.cli import str2bool
from espnet_ext.errors import UserError
from espnet_ext.policy.own import is_own

PRECISIONS = ("float32", "bfloat16", "int8")  # of the decoder's products with weights

SEARCHES = ("offline", "standard", "bwbs", "bwbs_incremental", "ibwbs")
POLICIES = ("all", "hold_n", "local_agreement", "align_att", "wait_k", "ctc_wait")
TEXT_HISTORIES = ("fixed_words", "punctuation")
AUDIO_HISTORIES = ("attention", "fixed_duration")
DECODER_STATES = ("keep", "recompute")
SEEN = ("exact", "prefix", "off")

LONG_FORM_CHUNK_MS = 1000.0
POLICY_OPTIONS = {
    "all": (),
    "hold_n": ("hold_n",),
    "local_agreement": ("la_n", "la_every"),
    "align_att": ("align_att_f", "align_att_layer", "drop_last_frame", "standardize"),
    "wait_k": ("wait_k", "wait_interval"),
    "ctc_wait": ("ctc_wait",),
}
LOWEST = {
    "beam_size": 1,
    "max_ngram_repeats": 1,
    "hold_n": 0,
    "la_n": 2,
    "la_every": 1,
    "align_att_f": 0,
    "align_att_layer": 1,
    "wait_k": 0,
    "wait_interval": 1,
    "ctc_wait": 0,
    "n_words": 1,
    "text_cap": 1,
}


def _option(default: object, help: str, choices: tuple[str, ...] | None = None) -> object:
    return field(default=default, metadata={"help": help, "choices": choices})


@dataclass(frozen=True)
class DecodeConfig:
    """Options of a decode, under the commands' names. Raises UserError naming the key of a value that cannot be."""

    search: str = _option("ibwbs", "offline = the whole utterance, one final standard search", SEARCHES)
    policy: str = _option("all", "what part of the candidate is stable; MODULE:CLASS is one of yours", POLICIES)
    src_lang: str = _option("en", "language that is spoken, for models of several")
    tgt_lang: str = _option("de", "target language; the latency unit is the character for zh and ja, else the word")
    chunk_ms: float | None = _option(
        None, "ms of audio between searches; unset: the encoder's hop, 280 for full context, 1000 for long_form"
    )
    beam_size: int = _option(6, "hypotheses kept")
    maxlenratio: float = _option(1.0, "new tokens allowed per encoder frame, at least 8 in a search")
    ctc_weight: float = _option(0.0, "weight of ST-CTC prefix scores; the decoder has the rest")
    lm_weight: float = _option(0.0, "weight of the language model's scores, added to the others'")
    repetition: bool | None = _option(
        None, "a repeated token stops a hypothesis (bwbs: the search); unset: with block encoders only"
    )
    reliability: bool = _option(True, "ibwbs: a score not above the best stopped one stops a hypothesis")
    seen: str = _option("exact", "ibwbs: sequences stopped before that may pass the second time", SEEN)
    end_detect: bool | None = _option(
        None, "ESPnet's end detection ends a last search; unset: of bwbs, not of standard"
    )
    length_norm: bool = _option(True, "ibwbs: choose by score / length")
    length_bonus: float = _option(
        0.0, "added to the score per token (ESPnet's penalty): bwbs; ibwbs without length_norm"
    )
    max_ngram_repeats: int = _option(3, "copies in a row of one n-gram (n = 1 to 4) that may be put out")
    decoder_states: str = _option("keep", "of the committed prefix: as computed, or anew each search", DECODER_STATES)
    hold_n: int = _option(6, "hold_n: tokens withheld")
    la_n: int = _option(2, "local_agreement: searches that must agree")
    la_every: int = _option(1, "local_agreement: search at every m-th step only")
    align_att_f: int = _option(4, "align_att: last frames a stable token may not attend to")
    align_att_layer: int | None = _option(
        None,
        "align_att: decoder layer of the attention, from 1; unset: as check_attention found, else the model's",
    )
    drop_last_frame: bool = _option(True, "align_att: leave out the last frame, as the authors' code does")
    standardize: bool = _option(False, "align_att: standardise each frame's attention over the new tokens")
    wait_k: int = _option(3, "wait_k: source intervals that the target stays behind")
    wait_interval: int = _option(8, "wait_k: encoder frames in an interval")
    ctc_wait: int = _option(2, "ctc_wait: tokens that the target stays behind greedy CTC")
    long_form: bool = _option(False, "StreamAtt: keep only the history that the rest of an endless stream needs")
    text_history: str = _option("fixed_words", "long_form: text that is kept", TEXT_HISTORIES)
    n_words: int = _option(20, "long_form: words of fixed_words, and of 280 ms each of fixed_duration")
    text_cap: int = _option(128, "long_form: tokens that the text history may have")
    audio_history: str = _option("attention", "long_form: audio that is kept", AUDIO_HISTORIES)
    max_audio_s: float = _option(30.0, "long_form: audio that is encoded at most; not above the longest in training")

    def __post_init__(self) -> None:
        for option in dataclasses.fields(self):
            value = getattr(self, option.name)
            choices = option.metadata["choices"]
            if choices and value not in choices and not (option.name == "policy" and is_own(str(value))):
                raise UserError(f"{option.name}: {value!r} is not one of {', '.join(choices)}")
            _check_type(option, value)
        for name, lowest in LOWEST.items():
            if getattr(self, name) is not None and getattr(self, name) < lowest:
                raise UserError(f"{name}: must be at least {lowest}, not {getattr(self, name)}")
        if self.chunk_ms is not None and not 1 <= self.chunk_ms < float("inf"):
            raise UserError(f"chunk_ms: must be at least 1 ms, not {self.chunk_ms}")
        if not 0 <= self.ctc_weight < 1:
            raise UserError(f"ctc_weight: must lie in [0, 1), not {self.ctc_weight}")
        if not 0 <= self.maxlenratio < float("inf"):
            raise UserError(f"maxlenratio: must be 0 or more, not {self.maxlenratio}")
        if self.search in ("offline", "bwbs") and self.policy != "all":
            raise UserError(f"policy: {self.search} commits nothing before the end; use --policy all")
        for name in ("lm_weight", "length_bonus"):
            if not abs(getattr(self, name)) < float("inf"):
                raise UserError(f"{name}: must be finite, not {getattr(self, name)}")
        if self.length_bonus and self.search in ("offline", "standard"):
            raise UserError(f"length_bonus: {self.search} chooses by score / length; a bonus has no effect there")
        if self.length_bonus and self.search == "ibwbs" and self.length_norm:
            raise UserError("length_bonus: has no effect with length_norm true; add --length_norm false")
        if self.long_form and (self.search not in ("ibwbs", "standard") or self.policy != "align_att"):
            raise UserError("long_form: needs --policy align_att and --search ibwbs or standard")
        if not 0 < self.max_audio_s < float("inf"):
            raise UserError(f"max_audio_s: must be above 0, not {self.max_audio_s}")
        if self.long_form and (self.chunk_ms or LONG_FORM_CHUNK_MS) >= 1000 * self.max_audio_s:
            raise UserError(f"max_audio_s: {self.max_audio_s} s must be longer than a step of chunk_ms")
        if self.end_detect is not None and self.search == "ibwbs":
            raise UserError("end_detect: ibwbs ends by its own rules; leave it out")

    def filled(self, streaming: bool, natural_chunk_ms: float, attention_layer: int | None) -> "DecodeConfig":
        """The config with what is unset decided by the model: whether its encoder streams, its `chunk_ms` and layer."""
        return dataclasses.replace(
            self,
            align_att_layer=self.align_att_layer or attention_layer,
            chunk_ms=self.chunk_ms or (LONG_FORM_CHUNK_MS if self.long_form else natural_chunk_ms),
            repetition=streaming if self.repetition is None else self.repetition,
        )

    @property
    def system(self) -> str:
        """A name for directories: the search, its policy and what the policy is tuned by, and the variant."""
        value = "".join(str(getattr(self, name)) for name in self._policy_options[:1])
        value = "" if self.policy == "all" else f"_{self.policy.replace(':', '.')}{value}"
        return "_".join([self.search + value, *(f"{name}_{option}".lower() for name, option in self.variant.items())])

    @property
    def variant(self) -> dict[str, object]:
        """Options that are not at their default, beside the search, its policy and what the policy is tuned by."""
        named = {"search", "policy", "src_lang", "tgt_lang", self.tuned_by}
        options = [option for option in dataclasses.fields(self) if option.name not in named]
        values = {option.name: getattr(self, option.name) for option in options}
        return {option.name: values[option.name] for option in options if values[option.name] != option.default}

    @property
    def policy_args(self) -> dict[str, object]:
        """The options that tell this decode from others of the same search and policy, for reports."""
        names = self._policy_options
        if self.search == "ibwbs":
            names += ("reliability", "repetition", "seen")
        return {name: getattr(self, name) for name in names}

    @property
    def tuned_by(self) -> str | None:
        """The option that sets the policy's balance of latency and quality, if it has one."""
        return next(iter(self._policy_options), None)

    @property
    def _policy_options(self) -> tuple[str, ...]:
        return POLICY_OPTIONS.get(self.policy, ())  # a policy from outside has none here


def _check_type(option: dataclasses.Field, value: object) -> None:
    wanted = _kind(option)
    if value is None and wanted is not option.type:
        return
    whole_number_of_float = wanted is float and type(value) is int
    if type(value) is not wanted and not whole_number_of_float:
        raise UserError(f"{option.name}: expected {wanted.__name__}, got {value!r}")


def _kind(option: dataclasses.Field) -> type:
    """The type of an option's values, None aside."""
    return getattr(option.type, "__args__", (option.type,))[0]


def option_names() -> list[str]:
    """Names of all options of a decode."""
    return [option.name for option in dataclasses.fields(DecodeConfig)]


def make_config(values: Mapping[str, object]) -> DecodeConfig:
    """A config from option names and values. Raises UserError for an unknown key, with the nearest known one."""
    known = option_names()
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f", did you mean {near[0]}?" if near else f"; known: {', '.join(known)}"
            raise UserError(f"{key}: unknown option{hint}")
    return DecodeConfig(**values)


def read_config(path: str | Path) -> dict[str, object]:
    """Option values of a yaml file. Raises UserError when it is missing or not a mapping."""
    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file (config)") from None
    except (yaml.YAMLError, UnicodeDecodeError, IsADirectoryError) as error:
        raise UserError(f"{path}: not a yaml file: {error}") from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: must hold 'option: value' lines")
    return values


def add_options(parser: argparse.ArgumentParser, leave_out: Container[str] = ()) -> None:
    """Give a parser the options of `DecodeConfig` and `--config`; what is not given is absent from its result."""
    group = parser.add_argument_group("search and policy")
    group.add_argument("--config", help="yaml file of these options; the command line overrides it")
    for option in dataclasses.fields(DecodeConfig):
        if option.name in leave_out:
            continue
        group.add_argument(
            f"--{option.name}",
            type=str2bool if _kind(option) is bool else _kind(option),
            choices=None if option.name == "policy" else option.metadata["choices"],
            metavar=f"{{{','.join(POLICIES)},MODULE:CLASS}}" if option.name == "policy" else None,
            default=argparse.SUPPRESS,
            help=f"{option.metadata['help']} (default: {option.default})",
        )


def config_from_args(args: argparse.Namespace, default_policy: str | None = None) -> DecodeConfig:
    """The config of parsed arguments: the yaml file's values under the command line's.

    `default_policy` is taken where no file, search or policy is asked for.
    """
    given = {key: value for key, value in vars(args).items() if key in option_names()}
    if default_policy is not None and args.config is None and not {"search", "policy"} & given.keys():
        given["policy"] = default_policy
    if args.config is None:
        return make_config(given)
    values = read_config(args.config) | given
    try:
        return make_config(values)
    except UserError as error:
        raise UserError(f"{args.config}: {error}" if str(error).split(":")[0] not in given else str(error)) from None
