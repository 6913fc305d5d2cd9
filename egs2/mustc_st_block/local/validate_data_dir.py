"""Check data directories: tables and ids, and that the audio is there and holds every segment."""

from pathlib import Path

from audio_files import probe
from kaldi_dir import read_segments, validate
from step import say

from espnet_ext.audio.reader import SAMPLE_RATE, is_archive
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.files import read_table


def check_audio(directory: Path) -> None:
    """Raises UserError when a recording is missing or unreadable, or a segment does not lie in its own."""
    ends: dict[str, tuple[float, str]] = {}
    if (directory / "segments").is_file():
        for utterance, segment in read_segments(directory / "segments").items():
            ends[segment.recording] = max(ends.get(segment.recording, (0.0, "")), (segment.end, utterance))
    for key, source in read_table(directory / "wav.scp").items():
        if is_archive(source):
            if not Path(source.rpartition(":")[0]).is_file():
                raise UserError(f"{directory}/wav.scp: {key}: {source} is missing")
            continue
        audio = probe(Path(source))
        if audio is None:
            raise UserError(f"{directory}/wav.scp: {key}: {source} is missing or unreadable")
        end, utterance = ends.get(key, (0.0, ""))
        if end > audio.seconds + 1 / SAMPLE_RATE:
            raise UserError(f"{directory}/segments: {utterance} ends at {end} s, {source} at {audio.seconds:.3f} s")


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Check one directory after the other; stops at the first fault."""
    for directory in get_parser().parse_args(argv).directories:
        count = validate(directory)
        check_audio(directory)
        say(f"{directory}: valid, {count} utterances")


if __name__ == "__main__":
    run(main)
