"""Whole utterances, audio to text, `bwbs` on both sides: our session beside ESPnet's `Speech2TextStreaming`.

Same process, threads, weights and audio; the two sides alternate; medians of the runs. Prints one JSON line:
- `ratio_mini`: ESPnet's time over ours on a trained model (`--st_train_config`, `--st_model_file`, `--wav_scp`);
- `ratio_30s`: the same on a model of the paper's size with random weights and 30 s of audio, both decoders scripted to
  three tokens a second so that both sides do the same work; `ratio_30s_search` for the search alone;
- `frontend_ms_per_s`, `encoder_ms_per_s`, `session_kb_per_minute` and `load_s`, from disk, of the paper-size model on
  our side.
"""

import json
import statistics
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import yaml
from espnet2.bin.st_inference_streaming import Speech2TextStreaming
from espnet2.legacy.nets.batch_beam_search_online import BatchBeamSearchOnline
from espnet2.legacy.nets.scorer_interface import BatchScorerInterface
from espnet2.tasks.st import STTask

from espnet_ext import SimulSession, load_model
from espnet_ext.audio.reader import SAMPLE_RATE, read_recordings
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.model import SpeechTranslationModel
from espnet_ext.search import Candidate
from espnet_ext.search.base import Search
from espnet_ext.search.beam_step import Expansions

RECIPE = Path(__file__).parents[1] / "egs2" / "mustc_st_block"
TOKENS_PER_SECOND = 3
VOCABULARY = 4000


def script(scores: torch.Tensor, ys: torch.Tensor, xs: torch.Tensor, eos: int, frames_per_token: float) -> torch.Tensor:
    """Scores `(hyps, vocabulary)` in the place of a decoder's: token after token, as the audio allows."""
    position = ys.size(1) - 1
    allowed = xs.size(1) / frames_per_token
    scores = scores * 1e-3 - 10
    scores[:, eos] = -1000.0
    scores[:, 2 + position % (VOCABULARY - 10) if position < allowed else eos] = -0.1
    return scores


class Scripted(BatchScorerInterface):
    """Runs a decoder and then puts a script in the place of its scores."""

    def __init__(self, decoder: BatchScorerInterface, eos: int, frames_per_second: float) -> None:
        self.decoder = decoder
        self.eos = eos
        self.frames_per_token = frames_per_second / TOKENS_PER_SECOND

    def batch_init_state(self, x: torch.Tensor) -> object:
        return self.decoder.batch_init_state(x)

    def batch_score(self, ys: torch.Tensor, states: list, xs: torch.Tensor) -> tuple[torch.Tensor, list]:
        scores, states = self.decoder.batch_score(ys, states, xs)
        return script(scores, ys, xs, self.eos, self.frames_per_token), states

    def retain(self, states: list) -> None:
        if hasattr(self.decoder, "retain"):
            self.decoder.retain(states)


def get_parser() -> ArgumentParser:
    """The command's options."""
    parser = ArgumentParser(prog="benchmarks.end_to_end", description=__doc__)
    parser.add_argument("--st_train_config", default=str(RECIPE / "exp/st_block40.en-de/config.yaml"))
    parser.add_argument("--st_model_file", default=str(RECIPE / "exp/st_block40.en-de/model.pth"))
    parser.add_argument("--wav_scp", default=str(RECIPE / "dump/dev.en-de/wav.scp"))
    parser.add_argument("--utterances", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    return parser


def seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def espnet_translate(streaming: Speech2TextStreaming, samples: np.ndarray, chunk: int) -> None:
    """Push a whole utterance in chunks; the last one is final."""
    streaming.reset()
    cuts = [samples[begin : begin + chunk] for begin in range(0, len(samples), chunk)]
    for number, cut in enumerate(cuts, start=1):
        streaming(torch.from_numpy(cut), is_final=number == len(cuts))


def our_translate(session: SimulSession, samples: np.ndarray) -> None:
    """The same on our side; the session cuts by itself."""
    session.reset()
    session.push(samples)
    session.finish()


def compare(
    streaming: Speech2TextStreaming, session: SimulSession, audio: list[np.ndarray], runs: int
) -> tuple[float, float]:
    """Median seconds over all the audio: ESPnet's, ours."""
    chunk = round(session.chunk_ms * SAMPLE_RATE / 1000)
    theirs, ours = [], []
    for _ in range(runs):
        theirs.append(seconds(lambda: [espnet_translate(streaming, samples, chunk) for samples in audio]))
        ours.append(seconds(lambda: [our_translate(session, samples) for samples in audio]))
    return statistics.median(theirs), statistics.median(ours)


def espnet_streaming(model: SpeechTranslationModel, decoder: BatchScorerInterface) -> Speech2TextStreaming:
    """ESPnet's class around a model that is in memory already, its search given the encoder's true geometry."""
    streaming = Speech2TextStreaming.__new__(Speech2TextStreaming)
    streaming.beam_search = BatchBeamSearchOnline(
        scorers={"decoder": decoder},
        weights={"decoder": 1.0},
        beam_size=6,
        vocab_size=len(model.vocabulary),
        sos=model.sos,
        eos=model.eos,
        block_size=model.block_size,
        hop_size=model.hop_size,
        look_ahead=model.look_ahead,
    )
    stft = model.module.frontend.stft
    streaming.st_model, streaming.st_train_args = model.module, Namespace(**model.config)
    streaming.converter, streaming.tokenizer = model.vocabulary.converter, None
    streaming.hugging_face_model = None
    streaming.maxlenratio = streaming.minlenratio = 0.0
    streaming.device, streaming.dtype, streaming.nbest = "cpu", "float32", 1
    streaming.n_fft, streaming.hop_length, streaming.win_length = stft.n_fft, stft.hop_length, stft.win_length
    streaming.reset()
    return streaming


def write_paper_model(directory: Path) -> dict[str, Path]:
    """Write the paper's block 40 model with random weights; what `load_model` takes."""
    conf = yaml.safe_load((RECIPE / "conf/train_st_block40.yaml").read_text(encoding="utf-8"))
    tokens = ["<blank>", "<unk>", *(f"w{i}" for i in range(VOCABULARY - 3)), "<sos/eos>"]
    config = STTask.get_default_config() | conf
    config |= {"token_list": tokens, "src_token_list": tokens, "token_type": "word", "normalize": None, "specaug": None}
    torch.manual_seed(0)
    files = {"st_train_config": directory / "config.yaml", "st_model_file": directory / "model.pth"}
    files["st_train_config"].write_text(yaml.safe_dump(config), encoding="utf-8")
    torch.save(STTask.build_model(Namespace(**config)).state_dict(), files["st_model_file"])
    return files


def timed(owner: object, name: str) -> list[float]:
    """Replace a method by one that also notes its seconds in the returned list."""
    spent: list[float] = []
    method = getattr(owner, name)

    def call(*args: object, **kwargs: object) -> object:
        begin = time.perf_counter()
        result = method(*args, **kwargs)
        spent.append(time.perf_counter() - begin)
        return result

    setattr(owner, name, call)
    return spent


def timed_search(search: Search) -> list[float]:
    """The same for `search.search`, whose steps are computed while it waits for them."""
    spent: list[float] = []
    method = search.search

    def call(*args: object) -> Expansions[Candidate | None]:
        begin = time.perf_counter()
        result = yield from method(*args)
        spent.append(time.perf_counter() - begin)
        return result

    search.search = call
    return spent


def state_bytes(session: SimulSession) -> int:
    """Bytes that a session's caches hold."""
    decoder = session.beam_step.decoder.decoder
    tensors = [decoder.prefix_cache, *decoder.memory_cache, session.encoder.memory]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors) + decoder.mask.nbytes


@torch.no_grad()
def measure_paper_size(runs: int) -> dict[str, float]:
    """30 s of audio on the paper-size model."""
    with TemporaryDirectory() as directory:
        files = write_paper_model(Path(directory))
        load_s = time.perf_counter()
        model = load_model(**files)
        load_s = time.perf_counter() - load_s
    rate = 1000 / model.frame_ms
    session = SimulSession(model, search="bwbs", max_ngram_repeats=VOCABULARY)
    decoder = Scripted(session.beam_step.decoder, model.eos, rate)
    session.beam_step.decoder = decoder
    streaming = espnet_streaming(model, Scripted(model.module.decoder, model.eos, rate))
    audio = [(0.1 * np.random.default_rng(0).normal(size=30 * SAMPLE_RATE)).astype(np.float32)]
    theirs_search, ours_search = timed(streaming.beam_search, "forward"), timed_search(session.search)
    frontend, encoder = timed(session.frontend, "push"), timed(session.encoder, "push")
    theirs, ours = compare(streaming, session, audio, runs)
    audio_s = 30 * runs
    return {
        "ratio_30s": round(theirs / ours, 2),
        "ratio_30s_search": round(sum(theirs_search) / sum(ours_search), 2),
        "espnet_30s": round(theirs, 2),
        "own_30s": round(ours, 2),
        "frontend_ms_per_s": round(1000 * sum(frontend) / audio_s, 2),
        "encoder_ms_per_s": round(1000 * sum(encoder) / audio_s, 2),
        "session_kb_per_minute": round(2 * state_bytes(session) / 1024),
        "load_s": round(load_s, 2),
    }


@torch.no_grad()
def measure_mini(args: Namespace) -> dict[str, float]:
    """Real utterances on a trained model."""
    model = load_model(args.st_train_config, args.st_model_file)
    audio = [recording.read() for recording in read_recordings(args.wav_scp)[: args.utterances]]
    session = SimulSession(model, search="bwbs")
    theirs, ours = compare(espnet_streaming(model, model.module.decoder), session, audio, args.runs)
    return {"ratio_mini": round(theirs / ours, 2), "espnet_mini": round(theirs, 2), "own_mini": round(ours, 2)}


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    args = get_parser().parse_args(argv)
    torch.set_num_threads(args.threads)
    report = measure_mini(args) | measure_paper_size(args.runs)
    print(json.dumps(report | {"threads": args.threads, "chunk": "encoder hop"}))


if __name__ == "__main__":
    run(main)
