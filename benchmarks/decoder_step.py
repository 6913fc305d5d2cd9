"""One decoder step of the whole beam, at the paper's size: the cached decoder beside ESPnet's own `batch_score`.

Same process, threads, weights and inputs; the sides alternate; medians over prefix lengths. Prints one JSON line:
- `ratio_T`: ESPnet's time over ours (`espnet_ms`, `own_ms`) at T memory frames, step by step in turn;
- `alone_ms`: our step as one session makes it, without others' steps, which empty the processor's caches, in between;
  `growth` of it from 100 to 750 frames, `growth_in_turn` of `own_ms`;
- `limit_ratio`: our step at 250 frames over the bare matrix products and attention of a step (`limit_ms`, the fastest
  of three ways to multiply), in turn with it.
"""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import chain

import torch
import torch.nn.functional as F
from espnet2.asr.decoder.transformer_decoder import TransformerDecoder
from espnet2.legacy.nets.scorer_interface import BatchScorerInterface
from torch import Tensor

from espnet_ext.cli import ArgumentParser, run, str2bool
from espnet_ext.config import PRECISIONS
from espnet_ext.model.cached_decoder import CachedDecoder, DecoderWeights

VOCABULARY, WIDTH, HEADS, UNITS, LAYERS = 4000, 256, 4, 2048, 6
FRAMES = (100, 250, 750)


def get_parser() -> ArgumentParser:
    """The command's options."""
    parser = ArgumentParser(prog="benchmarks.decoder_step", description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--precision", default="float32", choices=PRECISIONS, help="of our decoder's products")
    parser.add_argument("--compile", type=str2bool, default=False, help="our decoder through torch.compile")
    parser.add_argument("--beam_size", type=int, default=6)
    parser.add_argument("--longest", type=int, default=60, help="prefix lengths 1 to this")
    parser.add_argument("--repeats", type=int, default=3)
    return parser


def paper_decoder(device: str) -> TransformerDecoder:
    """The decoder of the paper's models, with random weights."""
    torch.manual_seed(0)
    decoder = TransformerDecoder(VOCABULARY, WIDTH, attention_heads=HEADS, linear_units=UNITS, num_blocks=LAYERS)
    return decoder.eval().to(device)


def by_frames(times: Sequence[float]) -> dict[str, float]:
    return {str(frames): round(ms, 2) for frames, ms in zip(FRAMES, times, strict=True)}


def milliseconds(call: Callable[[], object]) -> tuple[float, object]:
    begin = time.perf_counter()
    result = call()
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - begin), result


class Beam:
    """A beam over one memory: `step` feeds its last tokens and reorders it at random, as a search does."""

    def __init__(self, scorer: BatchScorerInterface, frames: int, size: int, device: str) -> None:
        self.scorer = scorer
        self.memory = torch.randn(frames, WIDTH, device=device).expand(size, frames, WIDTH)
        self.prefixes = torch.full((size, 1), VOCABULARY - 1, device=device)
        self.states = [None] * size

    @property
    def call(self) -> tuple[BatchScorerInterface, Tensor, list, Tensor]:
        """The scorer and what its next `batch_score` takes."""
        return self.scorer, self.prefixes, self.states, self.memory

    def step(self) -> float:
        """One step, in ms; the reordering is not counted but for `retain`."""
        spent, (_, states) = milliseconds(lambda: self.scorer.batch_score(*self.call[1:]))
        return spent + self.reorder(states)

    def reorder(self, states: list) -> float:
        """Go on with hypotheses and tokens at random; gives the ms that our scorer needs to forget the others."""
        size, device = len(states), self.prefixes.device
        chosen = torch.randint(0, size, (size,))
        tokens = torch.randint(2, VOCABULARY - 1, (size, 1), device=device)
        self.prefixes = torch.cat([self.prefixes[chosen.to(device)], tokens], dim=1)
        self.states = [states[i] for i in chosen]
        if hasattr(self.scorer, "retain"):
            return milliseconds(lambda: self.scorer.retain(self.states))[0]
        return 0.0


def in_turn(make: Callable[[], list[Callable[[], float]]], longest: int, repeats: int) -> list[float]:
    """Median ms of each of the timed calls that `make` makes anew for every repeat, called one after the other."""
    times: list[list[float]] = []
    for _ in range(repeats):
        calls = make()
        times += [[call() for call in calls] for _ in range(longest)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def session_by_session(make: Callable[[], list[Callable[[], float]]], longest: int, repeats: int) -> list[float]:
    """As `in_turn`, but each call is made `longest` times before the next one's turn."""
    times = [[[call() for _ in range(longest)] for call in make()] for _ in range(repeats)]
    return [statistics.median(chain.from_iterable(column)) for column in zip(*times, strict=True)]


def bare_steps(frames: int, beam: int, prefix: int, device: str) -> list[Callable[[], float]]:
    """Three ways to do the products that no implementation of the step can do without, and its attention; timed."""
    shapes = [
        (WIDTH, 3 * WIDTH),
        (WIDTH, WIDTH),
        (WIDTH, WIDTH),
        (WIDTH, WIDTH),
        (WIDTH, UNITS),
        (UNITS, WIDTH),
    ] * LAYERS
    shapes.append((WIDTH, VOCABULARY))
    inputs = [torch.randn(beam, rows, device=device) for rows, _ in shapes]
    weights = [torch.randn(columns, rows, device=device) for rows, columns in shapes]
    biases = [torch.randn(columns, device=device) for _, columns in shapes]
    transposed = [weight.T.contiguous() for weight in weights]
    queries = torch.randn(1, HEADS, beam, WIDTH // HEADS, device=device)
    memories = [torch.randn(2, 1, HEADS, length, WIDTH // HEADS, device=device) for length in (prefix, frames)]

    def attend() -> None:
        for _ in range(LAYERS):
            for keys, values in memories:
                F.scaled_dot_product_attention(queries, keys, values)

    ways: list[Callable[[], object]] = [
        lambda: [F.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)],
        lambda: [torch.addmm(b, x, w) for x, w, b in zip(inputs, transposed, biases, strict=True)],
    ]
    if device == "cpu":
        packed = [torch.ops.mkldnn._reorder_linear_weight(weight, beam) for weight in weights]
        ways.append(
            lambda: [
                torch.ops.mkldnn._linear_pointwise(x, w, b, "none", [], "")
                for x, w, b in zip(inputs, packed, biases, strict=True)
            ]
        )
    return [lambda way=way: milliseconds(way)[0] for way in (*ways, attend)]


@torch.inference_mode()
def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    args = get_parser().parse_args(argv)
    torch.set_num_threads(args.threads)
    decoder = paper_decoder(args.device)
    weights = DecoderWeights(decoder, args.precision, args.compile)
    size, device = args.beam_size, args.device

    def own(frames: int) -> Callable[[], float]:
        return Beam(CachedDecoder(weights), frames, size, device).step

    def both(frames: int) -> list[Callable[[], float]]:
        return [own(frames), Beam(decoder, frames, size, device).step]

    def alone() -> list[Callable[[], float]]:
        return [own(frames) for frames in FRAMES]

    def beside_the_limit() -> list[Callable[[], float]]:
        return [own(FRAMES[1]), *bare_steps(FRAMES[1], size, args.longest // 2, device)]

    in_turn(alone, 5, 1)  # warm-up
    ours, theirs = zip(*(in_turn(lambda: both(frames), args.longest, args.repeats) for frames in FRAMES), strict=True)  # noqa: B023
    alone_ms = session_by_session(alone, args.longest, args.repeats)
    own_ms, *products, attention = in_turn(beside_the_limit, args.longest, args.repeats)
    limit = min(products) + attention
    report = {f"ratio_{frames}": round(t / o, 2) for frames, o, t in zip(FRAMES, ours, theirs, strict=True)}
    report |= {
        "own_ms": by_frames(ours),
        "espnet_ms": by_frames(theirs),
        "alone_ms": by_frames(alone_ms),
        "growth": round(alone_ms[-1] / alone_ms[0], 2),
        "growth_in_turn": round(ours[-1] / ours[0], 2),
        "limit_ms": round(limit, 2),
        "limit_ratio": round(own_ms / limit, 2),
        "threads": args.threads,
        "device": args.device,
        "precision": args.precision,
        "compile": args.compile,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    run(main)
