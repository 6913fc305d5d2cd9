"""An hour of endless audio: does memory, time or quality drift? Mini talks one after the other, with silences between.

One session translates the stream in steps of a second. Prints one JSON line:
- `rss_growth`: resident memory of the second half over that of the first (means); `step_growth`: the same for the time
  of a step (medians);
- `most`: the largest retained audio (s), text (tokens) and memory (frames) in each half;
- `bleu`: BLEU of every ten minutes, on the text assigned to the reference segments that begin in them.
"""

import json
import resource
import statistics
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import torch

from espnet_ext import SimulSession, load_model
from espnet_ext.audio.reader import SAMPLE_RATE, Recording, read_recordings
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.evaluation.quality import quality
from espnet_ext.evaluation.segmentation import Segment, assign, by_talk, joined, read_segments
from espnet_ext.progress import progress

RECIPE = Path(__file__).parents[1] / "egs2" / "mustc_st_block"
SILENCES_S = (1.0, 5.0, 20.0, 2.0)
PART_S = 600


def get_parser() -> ArgumentParser:
    """The command's options."""
    parser = ArgumentParser(prog="benchmarks.long_form", description=__doc__)
    parser.add_argument("--st_train_config", default=str(RECIPE / "exp/st_block40.en-de/config.yaml"))
    parser.add_argument("--st_model_file", default=str(RECIPE / "exp/st_block40.en-de/model.pth"))
    parser.add_argument("--data", type=Path, default=RECIPE / "data" / "tst-COMMON.en-de", help="and DATA_talks")
    parser.add_argument("--tgt_lang", default="de")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--text_history", default="punctuation")
    parser.add_argument("--align_att_layer", type=int, help="unset: what check_attention has found")
    parser.add_argument("--align_att_f", type=int, default=4)
    parser.add_argument("--max_audio_s", type=float, default=15)
    parser.add_argument("--threads", type=int, default=1)
    return parser


def stream(
    recordings: Sequence[Recording], segments: dict[str, list[Segment]], seconds: float
) -> tuple[list[np.ndarray], list[Segment]]:
    """Talks and silences of at least `seconds` in all, and the reference segments at their places in the stream."""
    pieces, placed, at = [], [], 0
    for recording, silence in zip(cycle(recordings), cycle(SILENCES_S), strict=False):
        for segment in segments[recording.key]:
            begin = 1000 * at / SAMPLE_RATE
            placed.append(replace(segment, start=begin + segment.start, end=begin + segment.end))
        pieces += [recording.read(), np.zeros(int(silence * SAMPLE_RATE), np.float32)]
        at += len(pieces[-2]) + len(pieces[-1])
        if at >= seconds * SAMPLE_RATE:
            return pieces, placed
    raise AssertionError("a cycle has no end")


def cuts(pieces: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """The stream, a second at a time."""
    samples = np.concatenate(pieces)
    return (samples[begin : begin + SAMPLE_RATE] for begin in range(0, len(samples), SAMPLE_RATE))


def resident_mb() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def halves(values: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """The first half without its beginning, in which caches grow, and the second."""
    middle = len(values) // 2
    return values[middle // 5 : middle], values[middle:]


def bleu_of_parts(session: SimulSession, segments: Sequence[Segment], tgt_lang: str) -> list[float]:
    """BLEU of every ten minutes of the stream."""
    units = iter(session.units)
    lines = [joined(list(islice(units, count)), tgt_lang) for count in assign(session.units, segments, tgt_lang)]
    parts: dict[int, list[tuple[str, str]]] = {}
    for segment, line in zip(segments, lines, strict=True):
        parts.setdefault(int(segment.start / 1000 / PART_S), []).append((line, segment.reference))
    return [round(quality(*zip(*part, strict=True), tgt_lang)["BLEU"], 1) for part in parts.values()]


def measure(args: Namespace) -> dict[str, object]:
    """Translate the stream."""
    model = load_model(args.st_train_config, args.st_model_file)
    names = ("tgt_lang", "text_history", "align_att_f", "align_att_layer", "max_audio_s")
    options = {name: getattr(args, name) for name in names}
    session = SimulSession(model, long_form=True, policy="align_att", **options)
    segments = by_talk(read_segments(args.data / "segments", args.data / f"text.tc.{args.tgt_lang}"))
    recordings = read_recordings(Path(f"{args.data}_talks") / "wav.scp")
    pieces, placed = stream(recordings, segments, 60 * args.minutes)
    seconds = list(cuts(pieces))
    rss, kept = [], []
    for samples in progress(seconds, len(seconds), "translating"):
        session.push(samples)
        rss.append(resident_mb())
        kept.append((len(session.encoder.features) / 100, len(session.search.committed_tokens), len(session.peaks)))
    session.finish()
    first, second = halves(rss)
    early, late = halves([step.compute_ms for step in session.steps])
    most = [[max(column) for column in zip(*half, strict=True)] for half in halves(kept)]
    return {
        "minutes": round(len(seconds) / 60, 1),
        "rss_growth": round(statistics.fmean(second) / statistics.fmean(first), 4),
        "step_growth": round(statistics.median(late) / statistics.median(early), 3),
        "step_ms": round(statistics.median(late), 1),
        "most": most,
        "bleu": bleu_of_parts(session, placed, args.tgt_lang),
        "words": len(session.units),
    }


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    args = get_parser().parse_args(argv)
    torch.set_num_threads(args.threads)
    print(json.dumps(measure(args)))


if __name__ == "__main__":
    run(main)
