"""How many speakers at once can the server follow? N clients speak in real time, over sockets, to one server.

Server and clients share the process and its cores; N doubles until the server falls behind. Prints one JSON line:
`mini` for a trained model on the recordings of `--wav_scp`, `paper` for one of the paper's size with random weights
whose decoder is scripted to three tokens a second. Each has, for every N, `p50_ms` and `p95_ms` of the lag of updates:
the time from the end of the step's audio, as it would be spoken, to the update at the client. `carried` is the largest
N whose p95 is below a step (`step_ms`).
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from benchmarks.end_to_end import RECIPE, TOKENS_PER_SECOND, script, write_paper_model
from espnet_ext import load_model
from espnet_ext.audio.reader import SAMPLE_RATE, read_recordings
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.config import DecodeConfig, make_config
from espnet_ext.live.limits import Limits
from espnet_ext.live.server import Server
from espnet_ext.model import SpeechTranslationModel
from espnet_ext.model.cached_decoder import CachedDecoder

PIECE = SAMPLE_RATE // 10


def get_parser() -> ArgumentParser:
    """The command's options."""
    parser = ArgumentParser(prog="benchmarks.live_load", description=__doc__)
    parser.add_argument("--model", default=str(RECIPE / "exp/st_block40.en-de"))
    parser.add_argument("--wav_scp", default=str(RECIPE / "dump/dev.en-de/wav.scp"))
    parser.add_argument("--seconds", type=float, default=15, help="that each client speaks")
    parser.add_argument("--most", type=int, default=64, help="clients")
    parser.add_argument("--hold_n", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1)
    return parser


class ScriptedDecoder(CachedDecoder):
    """A cached decoder, its work done as usual, its scores replaced by the script."""

    eos: int
    frames_per_token: float

    @staticmethod
    def score_together(calls: Sequence[tuple]) -> list[tuple[torch.Tensor, list]]:
        """As that of `CachedDecoder`."""
        scored = zip(calls, CachedDecoder.score_together(calls), strict=True)
        return [
            (script(scores, ys, xs, decoder.eos, decoder.frames_per_token), states)
            for (decoder, ys, _, xs), (scores, states) in scored
        ]


def paper_model() -> SpeechTranslationModel:
    """The paper's block 40 model with a scripted decoder."""
    with TemporaryDirectory() as directory:
        model = load_model(**write_paper_model(Path(directory)))
    ScriptedDecoder.eos = model.eos
    ScriptedDecoder.frames_per_token = 1000 / model.frame_ms / TOKENS_PER_SECOND
    model._decoder = lambda layer: ScriptedDecoder(model.decoder_weights, layer)
    return model


async def speak(http: ClientSession, address: str, samples: np.ndarray, wait_s: float) -> list[float]:
    """Stream samples as they would be spoken, after a wait; lags of the updates in ms."""
    clock = asyncio.get_running_loop().time
    lags = []
    await asyncio.sleep(wait_s)
    async with http.ws_connect(address) as socket:
        await socket.send_json({"extended": True})
        begin = clock()

        async def send() -> None:
            for first in range(0, len(samples), PIECE):
                piece = samples[first : first + PIECE]
                await asyncio.sleep(begin + (first + len(piece)) / SAMPLE_RATE - clock())
                await socket.send_bytes(piece.tobytes())
            await socket.send_json({"end_of_stream": True})

        sending = asyncio.create_task(send())
        while "end_of_processing" not in (message := await socket.receive_json()):
            if message.get("words"):
                lags.append(1000 * (clock() - begin) - message["audio_ms"])
        await sending
    return lags


async def measure(
    model: SpeechTranslationModel, config: DecodeConfig, audio: list[np.ndarray], clients: int
) -> list[float]:
    """Lags in ms of all updates of so many clients, who begin one after the other within a step."""
    server = TestServer(Server(model, config, Limits(max_sessions=clients)).app())
    step_s = model.natural_chunk_ms / 1000
    async with server, ClientSession() as http:
        address = str(server.make_url("/"))
        spoken = [audio[number % len(audio)] for number in range(clients)]
        waits = [number * step_s / clients for number in range(clients)]
        return sum(await asyncio.gather(*(speak(http, address, *pair) for pair in zip(spoken, waits, strict=True))), [])


def load(model: SpeechTranslationModel, hold_n: int, audio: list[np.ndarray], most: int) -> dict[str, object]:
    """The report of one model."""
    config = make_config({"policy": "hold_n", "hold_n": hold_n, "max_ngram_repeats": 1000})
    report: dict[str, object] = {"step_ms": model.natural_chunk_ms, "carried": 0, "p50_ms": {}, "p95_ms": {}}
    clients = 1
    while clients <= most:
        lags = asyncio.run(measure(model, config, audio, clients))
        for percent in (50, 95):
            report[f"p{percent}_ms"][str(clients)] = round(float(np.percentile(lags, percent)), 1)
        if report["p95_ms"][str(clients)] > model.natural_chunk_ms:
            break
        report["carried"] = clients
        clients *= 2
    return report


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    args = get_parser().parse_args(argv)
    torch.set_num_threads(args.threads)
    count = round(args.seconds * SAMPLE_RATE)
    recordings = [recording.read() for recording in read_recordings(args.wav_scp)[:8]]
    speech = [np.resize(samples, count) for samples in recordings]
    noise = [0.1 * np.random.default_rng(seed).normal(size=count) for seed in range(8)]
    report = {
        "mini": load(load_model(args.model), args.hold_n, [to_pcm(samples) for samples in speech], args.most),
        "paper": load(paper_model(), args.hold_n, [to_pcm(samples) for samples in noise], args.most),
    }
    print(json.dumps(report | {"threads": args.threads, "seconds": args.seconds}))


def to_pcm(samples: np.ndarray) -> np.ndarray:
    """16-bit samples."""
    return np.round(samples * 2**15).clip(-(2**15), 2**15 - 1).astype("<i2")


if __name__ == "__main__":
    run(main)
