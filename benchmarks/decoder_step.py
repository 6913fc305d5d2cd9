"""One decoder step of the whole beam, at the paper's size: the cached decoder beside ESPnet's own `batch_score`.

Same process, threads, weights and inputs; the sides alternate; medians over prefix lengths. Prints one JSON line:
`ratio_T` is ESPnet's time over ours at T memory frames, `limit_ratio` ours over the bare matrix products and attention
of a step (`limit_ms`, the fastest of three ways to multiply) at 250 frames.
"""

import json
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from espnet2.asr.decoder.transformer_decoder import TransformerDecoder

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.model.cached_decoder import CachedDecoder, DecoderWeights

VOCABULARY, WIDTH, HEADS, UNITS, LAYERS = 4000, 256, 4, 2048, 6
FRAMES = (100, 250, 750)


def get_parser() -> ArgumentParser:
    """The command's options."""
    parser = ArgumentParser(prog="benchmarks.decoder_step", description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--beam_size", type=int, default=6)
    parser.add_argument("--longest", type=int, default=60, help="prefix lengths 1 to this")
    parser.add_argument("--repeats", type=int, default=3)
    return parser


def paper_decoder() -> TransformerDecoder:
    """The decoder of the paper's models, with random weights."""
    torch.manual_seed(0)
    return TransformerDecoder(
        VOCABULARY, WIDTH, attention_heads=HEADS, linear_units=UNITS, num_blocks=LAYERS
    ).eval()  # fmt: skip


def milliseconds(call: Callable[[], object]) -> tuple[float, object]:
    begin = time.perf_counter()
    result = call()
    return 1000 * (time.perf_counter() - begin), result


def compare(decoder: TransformerDecoder, frames: int, beam: int, longest: int, repeats: int) -> tuple[float, float]:
    """Median ms of a step over prefixes of 1 to `longest` tokens: ours, ESPnet's."""
    weights = DecoderWeights(decoder)
    memory = torch.randn(frames, WIDTH).expand(beam, frames, WIDTH)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        cached = CachedDecoder(weights)
        ours, theirs = [None] * beam, [None] * beam
        prefixes = torch.full((beam, 1), VOCABULARY - 1)
        for _ in range(longest):
            spent, (_, ours) = milliseconds(lambda: cached.batch_score(prefixes, ours, memory))  # noqa: B023
            times[0].append(spent)
            spent, (_, theirs) = milliseconds(lambda: decoder.batch_score(prefixes, theirs, memory))  # noqa: B023
            times[1].append(spent)
            chosen = torch.randint(0, beam, (beam,))
            prefixes = torch.cat([prefixes[chosen], torch.randint(2, VOCABULARY - 1, (beam, 1))], dim=1)
            ours, theirs = [ours[i] for i in chosen], [theirs[i] for i in chosen]
            cached.retain(ours)
    return statistics.median(times[0]), statistics.median(times[1])


def limit(frames: int, beam: int, prefix: int) -> float:
    """Median ms of the products and attentions that no implementation of the step can do without."""
    shapes = [
        (WIDTH, 3 * WIDTH),
        (WIDTH, WIDTH),
        (WIDTH, WIDTH),
        (WIDTH, WIDTH),
        (WIDTH, UNITS),
        (UNITS, WIDTH),
    ] * LAYERS
    shapes.append((WIDTH, VOCABULARY))
    inputs = [torch.randn(beam, rows) for rows, _ in shapes]
    weights = [torch.randn(columns, rows) for rows, columns in shapes]
    biases = [torch.randn(columns) for _, columns in shapes]
    transposed = [weight.T.contiguous() for weight in weights]
    packed = [torch.ops.mkldnn._reorder_linear_weight(weight, beam) for weight in weights]
    queries = torch.randn(1, HEADS, beam, WIDTH // HEADS)
    memories = [torch.randn(2, 1, HEADS, length, WIDTH // HEADS) for length in (prefix, frames)]

    def attend() -> None:
        for _ in range(LAYERS):
            for keys, values in memories:
                F.scaled_dot_product_attention(queries, keys, values)

    ways: list[Callable[[], object]] = [
        lambda: [F.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)],
        lambda: [torch.addmm(b, x, w) for x, w, b in zip(inputs, transposed, biases, strict=True)],
        lambda: [
            torch.ops.mkldnn._linear_pointwise(x, w, b, "none", [], "")
            for x, w, b in zip(inputs, packed, biases, strict=True)
        ],
    ]
    medians = [statistics.median(milliseconds(way)[0] for _ in range(60)) for way in ways]
    return min(medians) + statistics.median(milliseconds(attend)[0] for _ in range(60))


@torch.inference_mode()
def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    args = get_parser().parse_args(argv)
    torch.set_num_threads(args.threads)
    decoder = paper_decoder()
    compare(decoder, FRAMES[0], args.beam_size, 5, 1)  # warm-up
    own, espnet = {}, {}
    for frames in FRAMES:
        own[frames], espnet[frames] = compare(decoder, frames, args.beam_size, args.longest, args.repeats)
    bare = limit(FRAMES[1], args.beam_size, args.longest // 2)
    report = {f"ratio_{frames}": round(espnet[frames] / own[frames], 2) for frames in FRAMES}
    report |= {
        "own_ms": {str(frames): round(own[frames], 2) for frames in FRAMES},
        "espnet_ms": {str(frames): round(espnet[frames], 2) for frames in FRAMES},
        "limit_ms": round(bare, 2),
        "limit_ratio": round(own[FRAMES[1]] / bare, 2),
        "threads": args.threads,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    run(main)
