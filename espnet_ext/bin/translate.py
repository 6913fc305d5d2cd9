"""Translate files, a pipe or the microphone, and print the translation as it grows."""

import argparse
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from rich.console import Console

from espnet_ext.audio.live import MICROPHONE, STDIN, check_source, known_length_s, open_source
from espnet_ext.audio.pauses import Pauses
from espnet_ext.audio.reader import SAMPLE_RATE
from espnet_ext.bin.model_options import (
    MODEL_FILES,
    add_model_options,
    check_file,
    load_model_from_args,
    named_model,
)
from espnet_ext.cli import ArgumentParser, UntilInterrupted, run, str2bool
from espnet_ext.config import DecodeConfig, add_options, config_from_args
from espnet_ext.errors import UserError
from espnet_ext.files import atomic_write, check_output
from espnet_ext.policy.own import load_own
from espnet_ext.views import JsonLines, LogLines, PlainLines, Subtitles, TerminalLines, View

if TYPE_CHECKING:
    from espnet_ext.session import SimulSession, Update

LONG_S = 30.0  # few models are trained on longer segments
ADVICE = "--pauses true, or --long_form true --policy align_att,"


def get_parser() -> ArgumentParser:
    """The command's options."""
    parser = ArgumentParser(prog="translate", usage="%(prog)s [options] FILE|-|mic ...", description=__doc__)
    parser.add_argument(
        "input", nargs="+", metavar="FILE|-|mic", help="audio files of any rate, - for standard input, mic to record"
    )
    add_model_options(parser)
    group = parser.add_argument_group("input and output")
    group.add_argument(
        "--raw", action="store_true", help="the input has no header: 16-bit little-endian mono at 16 kHz"
    )
    group.add_argument("--realtime", action="store_true", help="take files no faster than they are spoken")
    group.add_argument(
        "--pauses",
        type=str2bool,
        help="end a sentence at each pause and forget it (default: the microphone only, and not with --long_form)",
    )
    group.add_argument("--json", action="store_true", help="print a JSON line a step instead of text")
    group.add_argument("--srt", metavar="FILE|-", help="write subtitles, timed by when the words were released")
    add_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Translate. Raises UserError for bad input."""
    args = get_parser().parse_args(argv)
    config = config_from_args(args, default_policy="hold_n")
    policy = load_own(config.policy)
    _check(args, config)
    log = LogLines()
    logging.basicConfig(handlers=[log])
    waiting = Console(stderr=True).status("loading the model") if sys.stderr.isatty() else nullcontext()
    with waiting, named_model(args):
        files = {name: getattr(args, name) for name in MODEL_FILES}
        for name, path in files.items():
            check_file(path, name)
        if args.srt not in (None, "-"):
            check_output(args.srt, "srt", [*args.input, args.model, args.config, *files.values()])
        from espnet_ext.session import SimulSession

        session = SimulSession(load_model_from_args(args), config, policy)
    with atomic_write(args.srt) if args.srt not in (None, "-") else nullcontext(sys.stdout) as subtitles:
        for number, name in enumerate(args.input):
            if number and sys.stdout.isatty():
                print()
            if not _translate(session, name, args, subtitles, log):
                return 0 if name == MICROPHONE else 130
    return 0


def _check(args: argparse.Namespace, config: DecodeConfig) -> None:
    if args.input.count(STDIN) > 1:
        raise UserError("-: standard input is there once; name it once")
    for name in args.input:
        check_source(name, args.raw)
    if args.srt is not None and len(args.input) > 1:
        raise UserError("srt: one input at a time has subtitles; give one")
    if args.srt is not None and config.search in ("offline", "bwbs"):
        raise UserError(f"srt: {config.search} releases everything at the end, which gives no times; use ibwbs")
    if args.srt is not None and Path(args.srt).is_dir():
        raise UserError(f"srt: {args.srt} is a directory; name a file")
    if args.srt == "-" and args.json:
        raise UserError("srt: standard output has the JSON lines; give a file or leave out --json")


def _translate(session: "SimulSession", name: str, args: argparse.Namespace, subtitles: IO[str], log: LogLines) -> bool:
    """Translate one input; returns whether it ran to its end. After ctrl-C what has been heard is translated."""
    session.reset(name)
    views = _views(name, args, subtitles)
    log.text = views[0] if isinstance(views[0], PlainLines) else None
    pieces = open_source(name, session.chunk_ms / 1000, args.raw)
    if args.realtime and name != MICROPHONE:
        pieces = _paced(pieces)
    if name == MICROPHONE and sys.stderr.isatty():
        print("listening; ctrl-C ends", file=sys.stderr)
    pieces = UntilInterrupted(pieces)
    length_s = 0.0 if args.raw else known_length_s(name)
    split = name == MICROPHONE and not session.config.long_form if args.pauses is None else args.pauses
    pauses = Pauses()
    warned = session.config.long_form or split
    try:
        for samples in pieces:
            length_s = max(length_s, (session.source_ms + session.chunk_ms) / 1000)
            if length_s > LONG_S and not warned:
                logging.warning("%s: longer than %.0f s: %s is advisable", name, LONG_S, ADVICE)
                warned = True
            *sentences, rest = pauses.split(samples) if split else [samples]
            for sentence in sentences:
                _show(views, session, session.push(sentence))
                _show(views, session, session.flush())
            _show(views, session, session.push(rest))
        _show(views, session, session.finish())
    finally:
        for view in views:
            view.end()
    return not pieces.interrupted


def _show(views: Sequence[View], session: "SimulSession", update: "Update") -> None:
    for view in views:
        view.update(session, update)


def _views(name: str, args: argparse.Namespace, subtitles: IO[str]) -> list[View]:
    if args.srt == "-":
        return [Subtitles(subtitles)]
    if args.json:
        text = JsonLines(sys.stdout, name)
    else:
        text = TerminalLines(Console()) if sys.stdout.isatty() else PlainLines(sys.stdout)
    return [text] if args.srt is None else [text, Subtitles(subtitles)]


def _paced(pieces: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """The pieces, none before its last sample would have been spoken."""
    begun = time.monotonic()
    samples = 0
    for piece in pieces:
        samples += len(piece)
        time.sleep(max(0.0, begun + samples / SAMPLE_RATE - time.monotonic()))
        yield piece


if __name__ == "__main__":
    run(main)
