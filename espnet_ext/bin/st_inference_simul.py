"""Simultaneous decoding of a test set: `instances.log`, `text` and `stats.json` in the output directory."""

import argparse
import dataclasses
import importlib.metadata
import json
import logging
import platform
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from espnet_ext.audio.reader import SAMPLE_RATE, Recording, digest
from espnet_ext.bin.model_options import (
    MODEL_FILES,
    add_model_options,
    check_file,
    load_model_from_args,
    named_model,
    select_recordings,
    set_up_logging,
)
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.config import DecodeConfig, add_options, config_from_args
from espnet_ext.errors import UserError
from espnet_ext.files import atomic_write, check_output, file_hash, read_table
from espnet_ext.lock import locked
from espnet_ext.log.instances import LOG_VERSION, Instance, InstanceWriter, totals, write_text
from espnet_ext.log.units import clean_text
from espnet_ext.policy.own import load_own
from espnet_ext.progress import progress

if TYPE_CHECKING:
    from espnet_ext.session import SimulSession


def get_parser() -> ArgumentParser:
    """The command's options."""
    parser = ArgumentParser(prog="st_inference_simul", description=__doc__)
    add_model_options(parser)
    group = parser.add_argument_group("input and output")
    group.add_argument(
        "--data_path_and_name_and_type", required=True, metavar="WAV_SCP,speech,sound", help="the audio, as in ESPnet"
    )
    group.add_argument("--segments", help="Kaldi segments: translate these parts of the recordings")
    group.add_argument("--key_file", help="translate only the keys in this list")
    group.add_argument("--ref", help="reference translations (Kaldi text), written into the log")
    group.add_argument("--output_dir", required=True, help="where to write; a run that was interrupted goes on here")
    add_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Decode. Raises UserError for bad input."""
    args = get_parser().parse_args(argv)
    with named_model(args), locked(args.output_dir):
        return decode(args)


def decode(args: argparse.Namespace) -> int:
    """Decode with parsed options, inside `named_model` and with the output directory locked."""
    set_up_logging()
    config = config_from_args(args)
    policy = load_own(config.policy)
    recordings = select_recordings(_wav_scp(args.data_path_and_name_and_type), args.segments, args.key_file)
    references = _read_references(args.ref, recordings, config.tgt_lang)
    for name in MODEL_FILES:
        check_file(getattr(args, name), name)
    output = Path(args.output_dir)
    lists = (_wav_scp(args.data_path_and_name_and_type), args.segments, args.key_file, args.ref)
    check_output(output / "text", "output_dir", lists)
    settings = _settings(config, args, recordings)
    begun = _is_begun(output, settings)
    from espnet_ext.session import SimulSession

    session = SimulSession(load_model_from_args(args), config, policy)  # may refuse an option: nothing is written yet
    if not begun:
        with atomic_write(output / "config.yaml") as stream:
            yaml.safe_dump(settings, stream, sort_keys=False)
    with InstanceWriter(output / "instances.log") as log:
        _check_order(log, recordings)
        if len(log.done) < len(recordings):
            if log.done:
                logging.info("%s: %d of %d are there, going on", output, len(log.done), len(recordings))
            _decode(session, recordings, references, log)
        instances = list(log.done.values())
    write_text(output / "text", instances)
    stats = _stats(instances, session, args) | {"system": config.system, "variant": _variant(config, args)}
    with atomic_write(output / "stats.json") as stream:
        json.dump(stats, stream, indent=1)
    logging.info(
        "%d utterances, %.1f s of audio in %.1f s (rtf %.3f), %d decoder forwards: %s",
        len(instances), stats["audio_s"], stats["wall_s"], stats["rtf"], stats["decoder_forwards"], output,
    )  # fmt: skip
    return 0


def _wav_scp(triplet: str) -> str:
    path, name, kind = (*triplet.split(","), "", "")[:3]
    if (name, kind) not in (("speech", "sound"), ("speech", "kaldi_ark")) or triplet.count(",") != 2:
        raise UserError(f"data_path_and_name_and_type: expected WAV_SCP,speech,sound, got {triplet!r}")
    return path


def _read_references(path: str | None, recordings: list[Recording], tgt_lang: str) -> dict[str, str]:
    """References by id, cleaned so that every scorer that reads the log counts the same units."""
    if path is None:
        return {}
    references = read_table(path, allow_empty=True)
    missing = [recording.key for recording in recordings if recording.key not in references]
    if missing:
        raise UserError(f"{path}: no reference for {missing[0]!r} ({len(missing)} of {len(recordings)} are missing)")
    return {key: clean_text(text, tgt_lang) for key, text in references.items()}


def _settings(config: DecodeConfig, args: argparse.Namespace, recordings: list[Recording]) -> dict[str, object]:
    """What two runs into one directory must have in common."""
    return dataclasses.asdict(config) | {
        **{name: file_hash(path) for name in MODEL_FILES if (path := getattr(args, name)) is not None},
        "precision": args.precision,
        "compile": args.compile,
        "input": digest(recordings),
    }


def _is_begun(output: Path, settings: dict[str, object]) -> bool:
    """Whether the directory holds a run, which then has the same settings. Raises UserError for another one."""
    path = output / "config.yaml"
    if path.exists():
        found = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        for key, value in settings.items():
            if found.get(key) != value:
                raise UserError(
                    f"{path}: {key} is {found.get(key)!r} there and {value!r} now; "
                    "choose another --output_dir or remove this one"
                )
    elif (output / "instances.log").exists():
        raise UserError(f"{output}: an instances.log without its config.yaml; choose another --output_dir")
    return path.exists()


def _check_order(log: InstanceWriter, recordings: list[Recording]) -> None:
    for utt_id, recording in zip(log.done, recordings, strict=False):
        if utt_id != recording.key:
            raise UserError(f"{log.path}: holds {utt_id!r} where {recording.key!r} is next; remove the directory")


def _decode(
    session: "SimulSession", recordings: list[Recording], references: dict[str, str], log: InstanceWriter
) -> None:
    for recording in progress(_remaining(recordings, log), len(recordings) - len(log.done), "decoding"):
        session.reset(recording.key)
        for samples in recording.blocks():
            session.push(samples)
        session.finish()
        log.write(
            Instance(
                index=len(log.done),
                utt_id=recording.key,
                prediction=session.text,
                delays=session.delays,
                elapsed=session.elapsed,
                source=[recording.source, f"{SAMPLE_RATE} Hz"],
                source_length=session.source_ms,
                steps=session.steps,
                reference=references.get(recording.key),
                revisions=session.revisions if session.config.search == "bwbs" else None,
            )
        )


def _remaining(recordings: list[Recording], log: InstanceWriter) -> Iterator[Recording]:
    return (recording for recording in recordings if recording.key not in log.done)


def _stats(instances: list[Instance], session: "SimulSession", args: argparse.Namespace) -> dict[str, object]:
    """Sums over the log's lines, so that an interrupted run reports all of its work, and what tells decodes apart."""
    config = session.config
    return {
        "model_dir": args.model or str(Path(args.st_model_file).parent),
        "block_size": session.model.block_size,
        "search": config.search,
        "policy": config.policy,
        "policy_args": config.policy_args,
        "chunk_ms": config.chunk_ms,
        "beam_size": config.beam_size,
        "tgt_lang": config.tgt_lang,
        "test_set": Path(_wav_scp(args.data_path_and_name_and_type)).parent.name,
        **totals(instances),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "log_version": LOG_VERSION,
        "commit": _commit(),
        "versions": _versions(),
    }


def _variant(config: DecodeConfig, args: argparse.Namespace) -> dict[str, object]:
    """What was changed beside search, policy and what the policy is tuned by."""
    unusual = {"precision": args.precision != "float32", "compile": args.compile}
    return config.variant | {name: getattr(args, name) for name, changed in unusual.items() if changed}


def _commit() -> str | None:
    """The commit of the checkout that this code runs from; None outside one."""
    here = Path(__file__).resolve().parent
    result = subprocess.run(
        ["git", "-C", str(here), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )  # fmt: skip
    return result.stdout.strip() or None


def _versions() -> dict[str, str]:
    names = ("espnet", "torch", "sacrebleu", "numpy", *(["transformers"] if "transformers" in sys.modules else []))
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in names}


if __name__ == "__main__":
    run(main)
