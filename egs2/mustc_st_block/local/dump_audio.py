"""Cut the segments of a data directory into one mono 16 kHz audio file each; can be killed and goes on where it was."""

import io
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr
from espnet_jobs import die_with
from kaldi_dir import Segment, read_segments, read_texts, validate, write_speakers, write_table
from step import Step, say

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.files import atomic_write, read_table
from espnet_ext.lock import locked

SAMPLE_RATE = 16000


@dataclass(frozen=True)
class Talk:
    """The segments to cut from one recording: (utterance, segment, speed)."""

    wav: str
    parts: list[tuple[str, Segment, float]]
    audio_dir: Path
    audio_format: str


def to_mono_16k(samples: np.ndarray, rate: int, speed: float) -> np.ndarray:
    """Mean of the channels of (samples, channels), resampled to 16 kHz and played `speed` times as fast."""
    mono = samples.mean(axis=1)
    return mono if rate * speed == SAMPLE_RATE else soxr.resample(mono, rate * speed, SAMPLE_RATE)


def cut_talk(talk: Talk) -> tuple[int, dict[str, tuple[Path, int]]]:
    """Write the files that are not there yet; returns the number written, and path and samples of each utterance.

    Files appear under their name only when whole, so one that is there is believed.
    """
    written, result = 0, {}
    try:
        recording = soundfile.SoundFile(talk.wav)
    except soundfile.LibsndfileError as error:
        raise UserError(f"{talk.wav}: cannot read audio: {error}") from None
    with recording:
        for utterance, segment, speed in talk.parts:
            path = talk.audio_dir / segment.recording / f"{utterance}.{talk.audio_format}"
            if not path.exists():
                start = round(segment.start * recording.samplerate)
                recording.seek(min(start, recording.frames))
                count = round(segment.end * recording.samplerate) - start
                samples = to_mono_16k(recording.read(count, always_2d=True), recording.samplerate, speed)
                if not samples.size:
                    raise UserError(f"{utterance}: 0 samples at {segment.start} s of {talk.wav}; correct its segment")
                encoded = io.BytesIO()  # soundfile hides an error of writing
                soundfile.write(encoded, samples, SAMPLE_RATE, format=talk.audio_format, subtype="PCM_16")
                with atomic_write(path, "wb") as stream:
                    stream.write(encoded.getbuffer())
                written += 1
            result[utterance] = (path.resolve(), soundfile.info(str(path)).frames)
    return written, result


def plan(data: Path, output: Path, audio_format: str) -> list[Talk]:
    """One task a recording that has segments."""
    recordings = read_table(data / "wav.scp")
    speeds = read_table(data / "utt2speed") if (data / "utt2speed").is_file() else {}
    parts: dict[str, list[tuple[str, Segment, float]]] = {}
    for utterance, segment in read_segments(data / "segments").items():
        parts.setdefault(segment.recording, []).append((utterance, segment, float(speeds.get(utterance, 1))))
    return [Talk(recordings[r], items, output / "audio", audio_format) for r, items in parts.items()]


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="data directory with segments")
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--audio_format", choices=("flac", "wav"), default="flac")
    parser.add_argument("--nj", type=int, default=1, help="parallel jobs")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Cut all talks over `nj` processes and write the dump's tables last."""
    args = get_parser().parse_args(argv)
    data, output = args.data, args.output_dir
    count = validate(data)
    tables = [data / name for name in ("wav.scp", "segments", "utt2spk", "utt2speed", *read_texts(data))]
    step = Step(output / ".done", {"audio_format": args.audio_format}, tables)
    with locked(output):
        if not step.is_done(output):
            step.resume(output)
            dump(args, count)
            step.finish(path for path in output.iterdir() if path.is_file() and not path.name.startswith("."))


def dump(args: object, count: int) -> None:
    """Cut all talks of parsed options, `count` utterances, and write the tables."""
    data, output = args.data, args.output_dir
    for half_written in output.rglob(".*.tmp"):
        half_written.unlink()
    talks = plan(data, output, args.audio_format)
    jobs = min(args.nj, len(talks))
    if jobs < args.nj:
        say(f"{data}: {len(talks)} recordings, so {jobs} jobs instead of {args.nj}")
    files: dict[str, tuple[Path, int]] = {}
    total_written, shown = 0, 0
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(jobs, fork, die_with, (os.getpid(),)) as pool:
        try:
            for written, part in pool.map(cut_talk, talks):
                files |= part
                total_written += written
                if len(files) * 5 // count > shown:
                    shown = len(files) * 5 // count
                    say(f"{output}: {len(files)}/{count} utterances")
        except BrokenProcessPool:
            raise UserError(
                f"{output}: a job was killed by SIGKILL; run this again, with less --nj if memory is short"
            ) from None
    write_table(output / "wav.scp", {utterance: path for utterance, (path, _) in files.items()})
    write_table(output / "utt2num_samples", {utterance: samples for utterance, (_, samples) in files.items()})
    write_speakers(output, read_table(data / "utt2spk"))
    for name, texts in read_texts(data).items():
        write_table(output / name, texts)
    validate(output)
    if total_written < count:
        say(f"{output}: {count - total_written} of {count} utterances were there already")


if __name__ == "__main__":
    run(main)
