"""Cut the segments of a data directory into mono 16 kHz audio of their own; can be killed and goes on where it was."""

import io
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import kaldiio
import numpy as np
import soundfile
from audio_files import to_mono_16k
from kaldi_dir import Segment, read_segments, read_texts, validate, write_speakers, write_table
from parallel import in_parallel
from step import Step, say

from espnet_ext.audio.reader import SAMPLE_RATE
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.files import atomic_write, check_output, read_lines, read_table
from espnet_ext.lock import locked

ARCHIVE = "audio.ark"
INDEX = "index"  # UTTERANCE SAMPLES NAME, where NAME is a value of wav.scp without its directory


@dataclass(frozen=True)
class Talk:
    """The segments to cut from one recording, (utterance, segment, speed), into a directory of their own."""

    wav: str
    parts: list[tuple[str, Segment, float]]
    directory: Path
    audio_format: str

    def entries(self) -> list[tuple[str, str, str]] | None:
        """(utterance, value of wav.scp, samples) of a talk that is whole; None when it is not."""
        if not (self.directory / INDEX).is_file():
            return None
        lines = [line.split(" ", 2) for line in read_lines(self.directory / INDEX)]
        if not all((self.directory / name.partition(":")[0]).is_file() for _, _, name in lines):
            return None
        return [(utterance, f"{self.directory}/{name}", samples) for utterance, samples, name in lines]


def cut(talk: Talk) -> Iterator[tuple[str, np.ndarray]]:
    """Each utterance's samples, one at a time, so that memory does not depend on the length of the talk.

    Raises UserError when the recording cannot be read where a segment lies.
    """
    try:
        with soundfile.SoundFile(talk.wav) as recording:
            rate = recording.samplerate
            for utterance, segment, speed in talk.parts:
                first, last = round(segment.start * rate), round(segment.end * rate)
                if not first < last <= recording.frames:
                    seconds = recording.frames / rate
                    raise UserError(
                        f"{utterance}: {segment.start}-{segment.end} s is not in {talk.wav} of {seconds:.3f} s; "
                        "run stage 1 again"
                    )
                recording.seek(first)
                samples = recording.read(last - first, always_2d=True)
                if len(samples) < last - first or not np.isfinite(samples).all():
                    raise UserError(f"{utterance}: {talk.wav} is cut short or holds no numbers there; repair the file")
                samples = to_mono_16k(samples, rate, speed)
                if not len(samples):
                    raise UserError(f"{utterance}: no sample at {segment.start} s of {talk.wav}; correct its segment")
                yield utterance, samples
    except soundfile.LibsndfileError as error:
        raise UserError(f"{talk.wav}: cannot read audio: {error}; repair it, or remove it and run stage 1") from None


def write_files(audio: Iterable[tuple[str, np.ndarray]], directory: Path, audio_format: str) -> Iterator[str]:
    """One audio file an utterance; yields lines of the index."""
    for utterance, samples in audio:
        name = f"{utterance}.{audio_format}"
        encoded = io.BytesIO()  # soundfile hides an error of writing
        soundfile.write(encoded, samples, SAMPLE_RATE, "PCM_16", format=audio_format)
        (directory / name).write_bytes(encoded.getbuffer())
        yield f"{utterance} {len(samples)} {name}"


def write_archive(audio: Iterable[tuple[str, np.ndarray]], directory: Path) -> Iterator[str]:
    """One Kaldi archive of flac; yields lines of the index.

    Flac, and not wav, because ESPnet reads wav in an archive as integers: 32768 times as loud as from a file.
    """
    with open(directory / ARCHIVE, "wb") as stream:
        for utterance, samples in audio:
            offset = stream.tell() + len(f"{utterance} ".encode())
            flac = {"format": "FLAC", "subtype": "PCM_16"}
            kaldiio.save_ark(stream, {utterance: (SAMPLE_RATE, samples)}, write_function="soundfile", write_kwargs=flac)
            yield f"{utterance} {len(samples)} {ARCHIVE}:{offset}"


def dump_talk(talk: Talk) -> tuple[bool, list[tuple[str, str, str]]]:
    """Write a talk's directory, whole or not at all, unless it is there; returns whether it was, and its entries."""
    entries = talk.entries()
    if entries is not None:
        return True, entries
    temporary = talk.directory.with_name(f".{talk.directory.name}.{os.getpid()}.tmp")
    temporary.mkdir(parents=True)
    try:
        if talk.audio_format == "ark":
            lines = write_archive(cut(talk), temporary)
        else:
            lines = write_files(cut(talk), temporary, talk.audio_format)
        with atomic_write(temporary / INDEX) as stream:
            stream.writelines(f"{line}\n" for line in lines)
        shutil.rmtree(talk.directory, ignore_errors=True)
        temporary.rename(talk.directory)
    except OSError as error:
        error.filename = str(talk.directory)
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return False, talk.entries()


def plan(data: Path, output: Path, audio_format: str) -> list[Talk]:
    """One task a recording that has segments."""
    recordings = read_table(data / "wav.scp")
    speeds = read_table(data / "utt2speed") if (data / "utt2speed").is_file() else {}
    parts: dict[str, list[tuple[str, Segment, float]]] = {}
    for utterance, segment in read_segments(data / "segments").items():
        parts.setdefault(segment.recording, []).append((utterance, segment, float(speeds.get(utterance, 1))))
    audio = output.resolve() / "audio"
    return [Talk(recordings[r], items, audio / r, audio_format) for r, items in parts.items()]


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="data directory with segments")
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--audio_format", choices=("flac", "wav", "ark"), default="flac", help="ark: Kaldi archives")
    parser.add_argument("--nj", type=int, default=1, help="parallel jobs")
    return parser


def dump(data: Path, output: Path, audio_format: str, nj: int) -> None:
    """Cut all talks over `nj` processes and write the dump's tables last."""
    count = validate(data)
    talks = plan(data, output, audio_format)
    for leftover in (output / "audio").glob(".*.tmp"):  # of a killed run
        shutil.rmtree(leftover)
    wav_scp, samples = {}, {}
    there = shown = 0
    for was_there, entries in in_parallel(dump_talk, talks, nj, f"recordings in {data}"):
        wav_scp |= {utterance: value for utterance, value, _ in entries}
        samples |= {utterance: number for utterance, _, number in entries}
        there += was_there
        if len(wav_scp) * 5 // count > shown:
            shown = len(wav_scp) * 5 // count
            say(f"{output}: {len(wav_scp)}/{count} utterances")
    write_table(output / "wav.scp", wav_scp)
    write_table(output / "utt2num_samples", samples)
    write_speakers(output, read_table(data / "utt2spk"))
    for name, texts in read_texts(data).items():
        write_table(output / name, texts)
    validate(output)
    if there:
        say(f"{output}: {there} of {len(talks)} recordings were there already")


def main(argv: list[str] | None = None) -> None:
    """Dump, unless it is done; an interrupted dump of the same data goes on."""
    args = get_parser().parse_args(argv)
    data, output = args.data, args.output_dir
    check_output(output, "output_dir", [data])
    if not (data / "segments").is_file():
        validate(data)
        raise UserError(f"{data}: has no segments; give a directory of segments, not of talks")
    tables = [data / name for name in ("wav.scp", "segments", "utt2spk", "utt2speed", *read_texts(data))]
    step = Step(output / ".done", {"audio_format": args.audio_format}, tables)
    with locked(output):
        if step.is_done(output):
            return
        step.resume(output)
        dump(data, output, args.audio_format, args.nj)
        tables = [path for path in output.iterdir() if path.is_file() and not path.name.startswith(".")]
        step.finish([*tables, *(output / "audio").glob(f"*/{INDEX}")])


if __name__ == "__main__":
    run(main)
