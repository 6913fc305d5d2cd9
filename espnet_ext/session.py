"""Streaming translation of one audio stream: the place where front end, encoder, search and policy meet."""

import dataclasses
import itertools
import logging
import time
from dataclasses import dataclass

import numpy as np
import torch

from espnet_ext.audio.fixed_length import FixedLength
from espnet_ext.audio.reader import SAMPLE_RATE
from espnet_ext.config import DecodeConfig, make_config
from espnet_ext.emitter import Emitter
from espnet_ext.errors import UserError
from espnet_ext.history import WORD_MS, Attention, FixedDuration, FixedWords, History, Punctuation, Word
from espnet_ext.log.clocks import Step, finish_times
from espnet_ext.log.instances import Revision
from espnet_ext.log.units import clean_text, join_units
from espnet_ext.memory import trim_heap
from espnet_ext.model import SpeechModel
from espnet_ext.model.encoder import EncoderWindow
from espnet_ext.policy import AlignAtt, All, Context, CtcWait, HoldN, LocalAgreement, Policy, WaitK
from espnet_ext.policy.own import is_own, own_name
from espnet_ext.search import (
    BeamStep,
    BlockwiseBeamSearch,
    Candidate,
    IncrementalBlockwiseBeamSearch,
    StandardBeamSearch,
)
from espnet_ext.search.base import Search
from espnet_ext.search.beam_step import Expansions, drive

TRIM_MS = 60000.0


@dataclass(frozen=True)
class Update:
    """What a push changed: newly released whole words, the rest of the best hypothesis, the words' delay in ms.

    `units` are the words of `text` (characters for zh and ja), `delays` theirs.
    """

    text: str
    units: tuple[str, ...]
    delays: tuple[float, ...]
    unstable: str
    delay_ms: float
    final: bool


class SimulSession:
    """Simultaneous translation of a stream of 16 kHz mono samples with one of the project's searches and policies.

    All mutable state of a stream is here; any number of sessions share a model. Audio is processed in steps at
    multiples of `chunk_ms`, whatever the sizes of the pushes.

    Args:
        model: from `load_model`.
        config: options; or give them by name (`search="ibwbs", policy="hold_n", hold_n=2`).
        policy: the name of one of the project's policies, or a policy object of yours, which is this session's alone.

    Raises UserError for an option that is unknown, impossible or does not fit the model.
    """

    def __init__(
        self,
        model: SpeechModel,
        config: DecodeConfig | None = None,
        policy: str | Policy | None = None,
        **options: object,
    ) -> None:
        self.model = model
        own = None if isinstance(policy, str) else policy
        named = {} if policy is None else {"policy": policy if own is None else own_name(own)}
        config = make_config(options | named) if config is None else dataclasses.replace(config, **named)
        self.config = config.filled(model.streaming, model.natural_chunk_ms, model.attention_layer)
        self.chunk_ms = float(self.config.chunk_ms)
        self.frontend = model.frontend()
        if model.max_audio_s and not self.config.long_form:
            self.frontend = FixedLength(self.frontend, model.max_audio_s, pad=self.config.search == "offline")
        self.encoder = model.encoder()
        self.history = None
        if self.config.long_form:
            self.encoder = EncoderWindow(self.encoder, model.subsample)
            self.history = _make_history(model, self.config)
        self.policy = _make_policy(self.config) if own is None else own
        self.beam_step = _make_step(model, self.config, getattr(self.policy, "needs_attention", False))
        self.search = _make_search(model, self.config, self.beam_step)
        self.emitter = Emitter(model.vocabulary, self.config.tgt_lang)
        self.reset()

    def tune(self, /, **options: int) -> None:
        """Change what the policy is tuned by (`hold_n`, `align_att_f`, ...) from the next search on; text stays.

        Raises UserError for a value that cannot be, and for an option that the policy does not have.
        """
        for name in options:
            if name != self.config.tuned_by:
                raise UserError(f"{name}: the policy {self.config.policy} is not tuned by it")
        self.config = dataclasses.replace(self.config, **options)
        if options:
            self.policy = _make_policy(self.config)

    def reset(self, name: str = "stream") -> None:
        """Forget everything about the stream so far, finished or not; the next push starts a new one.

        `name` stands in the log's warnings about it.
        """
        self.name = name
        self.frontend.reset()
        self.encoder.reset()
        self.search.reset()
        self.policy.reset()
        self.emitter.reset()
        self.buffer = np.zeros(0, dtype=np.float32)
        self.processed = 0  # samples
        self.next_step = 1
        self.searched_frames = 0
        self.peaks: list[int] = []  # long form: the frame that each committed token attends to most
        self.trimmed_ms = 0.0  # long form: when free memory was given back last
        self.finished = False
        self.units: list[str] = []
        self.delays: list[float] = []
        self.unit_steps: list[int] = []
        self.steps: list[Step] = []
        self.revisions: list[Revision] = []
        self.unstable = ""

    def push(self, samples: np.ndarray) -> Update:
        """Take float32 mono 16 kHz samples of any number and translate every whole step that they complete.

        Raises UserError for samples of another kind, RuntimeError after `finish`.
        """
        return drive(self.start_push(samples))

    def start_push(self, samples: np.ndarray) -> Expansions[Update]:
        """`push`, checked and ready to run beside those of other sessions (`SessionPool`)."""
        if self.finished:
            raise RuntimeError("the stream is finished: call reset() to start another")
        return self._push(_check_samples(samples))

    def flush(self) -> Update:
        """End a sentence, not the stream: the final search, then everything is released and the past forgotten.

        The clock goes on. Raises RuntimeError after `finish`.
        """
        return drive(self.start_flush())

    def start_flush(self) -> Expansions[Update]:
        """`flush`, ready to run beside other sessions."""
        if self.finished:
            raise RuntimeError("the stream is finished: call reset() to start another")
        return self._flush()

    def finish(self) -> Update:
        """End the stream: the final search, then everything is released."""
        return drive(self.start_finish())

    def start_finish(self) -> Expansions[Update]:
        """`finish`, ready to run beside other sessions."""
        if self.finished:
            raise RuntimeError("the stream is finished already: call reset() to start another")
        return self._finish()

    def _push(self, samples: np.ndarray) -> Expansions[Update]:
        first = len(self.units)
        self.buffer = np.concatenate([self.buffer, samples])
        if self.config.search != "offline":
            while (end := self._step_end(self.next_step)) <= self.processed + len(self.buffer):
                self.next_step += 1
                yield from self._run_step(end - self.processed, final=False)
        return self._update(first)

    def _flush(self) -> Expansions[Update]:
        first = len(self.units)
        yield from self._run_last_step()
        while self._step_end(self.next_step) <= self.processed:
            self.next_step += 1
        for part in (self.frontend, self.encoder, self.search, self.policy, self.emitter):
            part.reset()
        self.searched_frames, self.peaks, self.unstable = 0, [], ""
        return self._update(first)

    def _finish(self) -> Expansions[Update]:
        first = len(self.units)
        yield from self._run_last_step()
        self.finished = True
        if not self.units:
            logging.warning("%s: empty translation (%.2f s of audio)", self.name, self.source_ms / 1000)
        return self._update(first)

    def _run_last_step(self) -> Expansions[None]:
        """The step that ends a sentence or the stream."""
        yield from self._run_step(len(self.buffer), final=True)
        if self.search.cut_repeats:
            limit = self.config.max_ngram_repeats
            logging.warning("%s: cut where an n-gram came more than %d times in a row", self.name, limit)
        if isinstance(self.frontend, FixedLength) and self.frontend.is_cut:
            limit = self.model.max_audio_s
            logging.warning("%s: only the first %g s are translated; longer audio needs long_form", self.name, limit)

    @property
    def text(self) -> str:
        """Everything released so far."""
        return self._join(self.units)

    @property
    def elapsed(self) -> list[float]:
        """For each unit, when it was out under the `queue` clock, in ms from the start of the stream."""
        times = finish_times(self.steps)
        return [max(times[step], delay) for step, delay in zip(self.unit_steps, self.delays, strict=True)]

    @property
    def source_ms(self) -> float:
        """Audio received, in ms."""
        return 1000 * (self.processed + len(self.buffer)) / SAMPLE_RATE

    def _step_end(self, number: int) -> int:
        """Sample at which step `number` (1-based) is due."""
        return round(number * self.chunk_ms * SAMPLE_RATE / 1000)

    def _run_step(self, count: int, final: bool) -> Expansions[None]:
        """Process the next `count` samples of the buffer: encode, search, select, release."""
        begun = time.perf_counter()
        forwards, hypotheses = self.beam_step.decoder_forwards, self.beam_step.hypothesis_steps
        encoded = self.encoder.encoded_frames
        samples, self.buffer = self.buffer[:count], self.buffer[count:]
        self.processed += count
        features = self.frontend.push(torch.from_numpy(samples), final)
        memory = self.encoder.push(features, final)
        audio_ms = 1000 * self.processed / SAMPLE_RATE
        if len(memory) and self._search_is_due(self.encoder.audio_frames, final):
            yield from self._search(memory, final, audio_ms)
        elif final:
            self._release(self.search.committed_tokens, final, audio_ms)
        compute_ms = 1000 * (time.perf_counter() - begun)
        self.steps.append(
            Step(
                audio_ms,
                compute_ms,
                self.beam_step.decoder_forwards - forwards,
                self.beam_step.hypothesis_steps - hypotheses,
                self.encoder.encoded_frames - encoded,
            )
        )

    def _search_is_due(self, frames: int, final: bool) -> bool:
        if final:
            return True
        every = self.config.la_every if self.config.policy == "local_agreement" else 1
        return frames > self.searched_frames and (len(self.steps) + 1) % every == 0

    def _search(self, memory: torch.Tensor, final: bool, audio_ms: float) -> Expansions[None]:
        frames = self.searched_frames = self.encoder.audio_frames
        candidate = yield from self.search.search(memory, final)
        if candidate is None:
            if final:
                self._release(self.search.committed_tokens, final, audio_ms)
            return
        stable = len(candidate.tokens)
        if self.history is not None:
            self._note_peaks(candidate, frames)
        if self.config.search == "bwbs":
            shown = clean_text(self.model.vocabulary.text(candidate.tokens), self.config.tgt_lang)
            self.revisions.append(Revision(audio_ms, shown))
        elif not final:
            stable = min(stable, self.policy.stable_length(self._context(candidate, memory)))
        if final or self.config.search != "bwbs":
            # What is committed stays, whatever the policy says.
            self.search.commit(candidate, max(stable, self.search.committed_length))
        self._release(self.search.committed_tokens, final, audio_ms)
        rest = self.emitter.units(candidate.tokens[self.emitter.released :])
        self.unstable = self._join(rest)
        if self.history is not None and not final:
            self._forget(self.search.committed_tokens, frames, audio_ms)

    def _note_peaks(self, candidate: Candidate, frames: int) -> None:
        """Update the attention peaks to those of the candidate's tokens, as far back as this search knows them."""
        window = frames - self.config.drop_last_frame or frames
        rows = candidate.attention(0)
        known = self.peaks[: len(candidate.tokens) - len(rows)]
        self.peaks = [*known, *(int(row[:window].argmax()) for row in rows)]

    def _forget(self, tokens: tuple[int, ...], frames: int, audio_ms: float) -> None:
        """Let go of the text and audio that the rest of the stream does not need."""
        self.peaks = self.peaks[: len(tokens)]
        words, place = [], iter(self.peaks)
        for word in self.model.vocabulary.words(tokens):
            words.append(Word(self.model.vocabulary.text(word), tuple(itertools.islice(place, len(word)))))
        if audio_ms - self.trimmed_ms >= TRIM_MS:
            self.trimmed_ms = audio_ms
            trim_heap()
        trim = self.history.trim(words, frames)
        if not trim.tokens and not trim.frames:
            return
        if trim.capped and trim.tokens:
            logging.info("%s: %.1f s: max_audio_s cuts words from the history", self.name, audio_ms / 1000)
        if trim.tokens > self.emitter.released:
            self._release(tokens[: trim.tokens], True, audio_ms)
        self.emitter.released -= trim.tokens
        self.peaks = [peak - trim.frames for peak in self.peaks[trim.tokens :]]
        self.encoder.drop(trim.frames)
        self.search.restart(tokens[trim.tokens :])
        self.policy.reset()
        self.searched_frames = 0

    def _context(self, candidate: Candidate, memory: torch.Tensor) -> Context:
        committed = self.search.committed_length
        return Context(
            tokens=candidate.tokens,
            committed=committed,
            frames=self.encoder.audio_frames,
            attention=lambda: _stack(candidate.attention(committed), len(memory)),
            ctc_length=lambda: self.model.ctc_length(memory),
        )

    def _release(self, tokens: tuple[int, ...], final: bool, audio_ms: float) -> None:
        units = self.emitter.release(tokens, final)
        self.units += units
        self.delays += [audio_ms] * len(units)
        self.unit_steps += [len(self.steps)] * len(units)

    def _update(self, first: int) -> Update:
        return Update(
            text=self._join(self.units[first:]),
            units=tuple(self.units[first:]),
            delays=tuple(self.delays[first:]),
            unstable="" if self.finished else self.unstable,
            delay_ms=1000 * self.processed / SAMPLE_RATE,
            final=self.finished,
        )

    def _join(self, units: list[str]) -> str:
        return join_units(units, self.config.tgt_lang)


def _check_samples(samples: np.ndarray) -> np.ndarray:
    samples = np.asarray(samples)
    if samples.ndim != 1 or samples.dtype != np.float32:
        raise UserError(f"samples: one dimension of float32 is needed, not {samples.dtype} of shape {samples.shape}")
    if not np.isfinite(samples).all():
        raise UserError("samples: not all finite")
    return samples


def _stack(rows: list[torch.Tensor], frames: int) -> np.ndarray:
    return torch.stack(rows).cpu().numpy() if rows else np.zeros((0, frames), dtype=np.float32)


def _make_step(model: SpeechModel, config: DecodeConfig, attention: bool) -> BeamStep:
    weights = {
        "decoder": 1.0 - config.ctc_weight,
        "ctc": config.ctc_weight,
        "lm": config.lm_weight,
        "length_bonus": config.length_bonus,
    }
    used = [name for name, weight in weights.items() if weight]
    return BeamStep(
        model.scorers(used, model.attention_heads(config.align_att_layer) if attention else None),
        weights,
        config.beam_size,
        len(model.vocabulary),
        model.start(config.src_lang, config.tgt_lang),
        model.suppressed,
        model.suppressed_first,
    )


def _make_search(model: SpeechModel, config: DecodeConfig, step: BeamStep) -> Search:
    common = dict(
        step=step,
        eos=model.eos,
        beam_size=config.beam_size,
        maxlenratio=config.maxlenratio,
        max_ngram_repeats=config.max_ngram_repeats,
        markers=model.vocabulary.markers(),
        decoder_states=config.decoder_states,
        memory_grows=model.streaming,
        max_tokens=model.max_tokens,
    )
    if config.policy == "ctc_wait" and not model.has_ctc:
        raise UserError("policy: ctc_wait needs a model with CTC; use another policy")
    if config.search in ("offline", "standard"):
        return StandardBeamSearch(**common, end_detect=bool(config.end_detect))
    if config.search != "ibwbs" and not model.streaming:
        raise UserError(f"search: {config.search} needs a block encoder; use ibwbs, standard or offline")
    if config.search in ("bwbs", "bwbs_incremental"):
        incremental = config.search == "bwbs_incremental"
        return BlockwiseBeamSearch(
            **common,
            incremental=incremental,
            repetition=config.repetition,
            end_detect=config.end_detect is not False,
        )
    return IncrementalBlockwiseBeamSearch(
        **common,
        repetition=config.repetition,
        reliability=config.reliability,
        seen=config.seen,
        length_norm=config.length_norm,
    )


def _make_history(model: SpeechModel, config: DecodeConfig) -> History:
    if model.max_audio_s and config.max_audio_s > model.max_audio_s:
        raise UserError(f"max_audio_s: {config.max_audio_s:g} is above the model's limit, {model.max_audio_s:g} s")
    longest = min(config.max_audio_s, (model.max_audio_s or float("inf")) - model.silence_s)
    if config.chunk_ms >= 1000 * longest:
        raise UserError(f"chunk_ms: {config.chunk_ms:g} ms leave no past in the {longest:g} s that the model encodes")
    text = Punctuation() if config.text_history == "punctuation" else FixedWords(config.n_words)
    audio = Attention()
    if config.audio_history == "fixed_duration":
        audio = FixedDuration(round(config.n_words * WORD_MS / model.frame_ms))
    most = int((1000 * longest - config.chunk_ms) / model.frame_ms)
    return History(text, audio, config.text_cap, most, model.block_size or 0)


def _make_policy(config: DecodeConfig) -> Policy:
    make = {
        "all": All,
        "hold_n": lambda: HoldN(config.hold_n),
        "local_agreement": lambda: LocalAgreement(config.la_n),
        "align_att": lambda: AlignAtt(config.align_att_f, config.drop_last_frame, config.standardize),
        "wait_k": lambda: WaitK(config.wait_k, config.wait_interval),
        "ctc_wait": lambda: CtcWait(config.ctc_wait),
    }
    if is_own(config.policy):
        raise UserError(f"policy: {config.policy}: give the session the object itself; only commands load it by name")
    return make[config.policy]()
