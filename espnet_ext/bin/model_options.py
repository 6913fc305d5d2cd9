"""The options by which every decoding command names a model and its audio."""

import argparse
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from espnet_ext.audio.reader import Recording, read_recordings
from espnet_ext.cli import str2bool
from espnet_ext.config import PRECISIONS
from espnet_ext.errors import UserError
from espnet_ext.files import read_lines

if TYPE_CHECKING:  # torch and ESPnet take seconds to import: only once the options have been found good
    from espnet_ext.model import SpeechModel


MODEL_FILES = ("st_train_config", "st_model_file", "lm_train_config", "lm_file")


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """The options that name a model and say how it runs."""
    group = parser.add_argument_group("model")
    group.add_argument("--model", help="packed model (.zip), a model's directory, or owner/name[@revision] on the hub")
    group.add_argument("--st_train_config", help="instead of --model: config.yaml of the trained model")
    group.add_argument("--st_model_file", help="and its weights, model.pth")
    group.add_argument(
        "--lm_train_config", help="config.yaml of a language model over the same tokens, for --lm_weight"
    )
    group.add_argument("--lm_file", help="its weights")
    group.add_argument(
        "--precision", default="float32", choices=PRECISIONS, help="of the decoder; int8 on the CPU only"
    )
    group.add_argument(
        "--compile", type=str2bool, default=False, help="torch.compile the decoder; the first steps take a minute"
    )
    group.add_argument("--ngpu", type=int, default=0, choices=(0, 1), help="1: decode on the GPU")


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """The options that name the audio of a check."""
    group = parser.add_argument_group("input")
    group.add_argument("--wav_scp", required=True, help="the audio")
    group.add_argument("--segments", help="Kaldi segments: use these parts of the recordings")
    group.add_argument("--key_file", help="use only the keys in this list")


def set_up_logging() -> None:
    """Log lines on stderr."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s: %(message)s", force=True)


@contextmanager
def named_model(args: argparse.Namespace) -> Iterator[None]:
    """While the block runs, `st_train_config` and `st_model_file` are there whatever options name the model.

    Raises UserError when the options name no model or two.
    """
    pair = (args.st_train_config, args.st_model_file)
    if args.model is None:
        if None in pair:
            raise UserError("name the model: --model, or both of --st_train_config and --st_model_file")
        yield
    elif pair != (None, None):
        raise UserError("model: give --model, or --st_train_config and --st_model_file, not both")
    else:
        from espnet_ext.model.packed import model_files

        with model_files(args.model) as (args.st_train_config, args.st_model_file):
            yield


def load_model_from_args(args: argparse.Namespace) -> "SpeechModel":
    """The model that the options name, inside `named_model`, on one thread unless OMP_NUM_THREADS says otherwise.

    A beam step is made of small products: on several threads it is slower, and jobs beside it starve.

    Raises UserError when the model cannot be loaded or the GPU is absent.
    """
    import torch

    from espnet_ext.model import load_model

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    if args.ngpu and not torch.cuda.is_available():
        raise UserError("ngpu: no GPU is available here; use --ngpu 0")
    level = logging.root.level
    logging.root.setLevel(logging.WARNING)  # ESPnet reports every default of every layer
    try:
        return load_model(
            args.st_train_config,
            args.st_model_file,
            "cuda" if args.ngpu else "cpu",
            args.lm_train_config,
            args.lm_file,
            args.precision,
            args.compile,
        )
    finally:
        logging.root.setLevel(level)


def select_recordings(wav_scp: str, segments: str | None, key_file: str | None) -> list[Recording]:
    """The recordings of the input lists, in input order; only the keys of `key_file` when it is given.

    Raises UserError for a key that the input does not hold.
    """
    recordings = read_recordings(wav_scp, segments)
    if key_file is None:
        return recordings
    wanted = {line.split()[0] for line in read_lines(key_file) if line.strip()}
    unknown = sorted(wanted - {recording.key for recording in recordings})
    if unknown:
        raise UserError(f"{key_file}: key {unknown[0]!r} is not in {segments or wav_scp}")
    chosen = [recording for recording in recordings if recording.key in wanted]
    if not chosen:
        raise UserError(f"{key_file}: no key in it")
    return chosen


def check_file(path: str | Path | None, option: str) -> None:
    """Raise UserError unless the file exists; None passes."""
    if path is not None and Path(path).is_dir():
        raise UserError(f"{path}: is a directory, a file is expected ({option})")
    if path is not None and not Path(path).is_file():
        raise UserError(f"{path}: no such file ({option})")
