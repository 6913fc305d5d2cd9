"""Beam steps of N sessions in one decoder call, as `SessionPool` makes them, beside the same N stepped in turn.

Decoder steps only, at the paper's size, memories of 100 to 400 frames; same process, threads and weights, the sides
alternate, medians. Prints one JSON line: ms for a step of all N sessions together and in turn, `ratio_N` between them,
and `processes_ms`, a step of all N in turn by two processes of one thread each, `ratio_processes_N` of that to ours.
"""

import json
import multiprocessing
import os
import statistics

import torch

from benchmarks.decoder_step import Beam, milliseconds, paper_decoder
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.model.cached_decoder import CachedDecoder, DecoderWeights

SESSIONS = (1, 4, 16)
LENGTH = 40  # steps, prefixes of 1 to this many tokens
FRAMES = (100, 400)


def get_parser() -> ArgumentParser:
    """The command's options."""
    parser = ArgumentParser(prog="benchmarks.session_pool", description=__doc__)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--beam_size", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    return parser


def beams(weights: DecoderWeights, count: int, size: int, device: str) -> list[Beam]:
    """Sessions whose memories lie evenly between the shortest and the longest."""
    first, last = FRAMES
    lengths = [first + (last - first) * i // max(1, count - 1) for i in range(count)]
    return [Beam(CachedDecoder(weights), length, size, device) for length in lengths]


def step_together(sessions: list[Beam]) -> float:
    """One step of all sessions in one call, in ms."""
    spent, results = milliseconds(lambda: CachedDecoder.score_together([beam.call for beam in sessions]))
    return spent + sum(beam.reorder(states) for beam, (_, states) in zip(sessions, results, strict=True))


def step_in_turn(sessions: list[Beam]) -> float:
    """One step of each session, one after the other, in ms."""
    return sum(beam.step() for beam in sessions)


def compare(weights: DecoderWeights, count: int, size: int, device: str, repeats: int) -> tuple[float, float]:
    """Median ms of a step of all sessions: together, in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        ours, others = (beams(weights, count, size, device) for _ in range(2))
        for _ in range(LENGTH):
            times[0].append(step_together(ours))
            times[1].append(step_in_turn(others))
    return statistics.median(times[0]), statistics.median(times[1])


@torch.inference_mode()
def one_process(job: tuple[int, int, int, object]) -> float:
    """Median ms of a step of `count` sessions in turn, on one thread, while another process does the same."""
    count, size, repeats, barrier = job
    torch.set_num_threads(1)
    weights = DecoderWeights(paper_decoder("cpu"))
    for beam in beams(weights, count, size, "cpu"):
        beam.step()
    barrier.wait()
    times = []
    for _ in range(repeats):
        sessions = beams(weights, count, size, "cpu")
        times += [step_in_turn(sessions) for _ in range(LENGTH)]
    return statistics.median(times)


def two_processes(count: int, size: int, repeats: int) -> float:
    """Median ms in which two processes step half of the sessions each."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(2) as pool:
        job = (count // 2, size, repeats, manager.Barrier(2))
        return max(pool.map(one_process, [job] * 2, chunksize=1))


@torch.inference_mode()
def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    args = get_parser().parse_args(argv)
    torch.set_num_threads(args.threads)
    weights = DecoderWeights(paper_decoder(args.device))
    size = args.beam_size
    compare(weights, 2, size, args.device, 1)  # warm-up
    report: dict[str, object] = {}
    for key in ("together_ms", "in_turn_ms", "processes_ms"):
        report[key] = {}
    for count in SESSIONS:
        together, in_turn = compare(weights, count, size, args.device, args.repeats)
        report["together_ms"][str(count)] = round(together, 2)
        report["in_turn_ms"][str(count)] = round(in_turn, 2)
        report[f"ratio_{count}"] = round(in_turn / together, 2)
        if count > 1 and args.device == "cpu":
            processes = two_processes(count, size, args.repeats)
            report["processes_ms"][str(count)] = round(processes, 2)
            report[f"ratio_processes_{count}"] = round(processes / together, 2)
    print(json.dumps(report | {"threads": args.threads, "device": args.device}))


if __name__ == "__main__":
    run(main)
