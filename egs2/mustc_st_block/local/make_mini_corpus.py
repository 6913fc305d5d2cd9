"""Make the mini corpus: a synthetic MuST-C of English talks with German, Spanish and French translations."""

import hashlib
import json
import logging
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from mini_corpus.content import plan
from mini_corpus.figures import measure
from mini_corpus.lexicon import LANGUAGES
from mini_corpus.writer import (
    MANIFEST,
    check_files,
    locked,
    read_manifest,
    whole_or_absent,
    write_corpus,
    write_manifest,
)
from rich.progress import track

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError

PACKAGES = ("espeakng-loader", "soxr", "numpy")


def get_parser() -> ArgumentParser:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--output_dir", type=Path, required=True, help="the corpus: en-XX/data/SPLIT/{wav,txt}")
    parser.add_argument("--tgt_lang", default="de", help=f"target languages, of: {' '.join(LANGUAGES[1:])}")
    parser.add_argument("--hours", type=float, default=3.15, help="speech in train, in hours")
    parser.add_argument(
        "--test_talks", type=int, default=12, help="talks in dev and in tst-COMMON; a quarter in tst-HE"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nj", type=int, default=2, help="processes")
    return parser


def main(argv: list[str] | None = None) -> None:
    args = get_parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    languages = args.tgt_lang.split()
    unknown = [language for language in languages if language not in LANGUAGES[1:]]
    if unknown or not languages:
        raise UserError(f"--tgt_lang {args.tgt_lang!r}: give one or more of {' '.join(LANGUAGES[1:])}")
    for option, value in (("hours", args.hours), ("test_talks", args.test_talks), ("nj", args.nj)):
        if value <= 0:
            raise UserError(f"--{option} {value}: give a number above 0")
    settings = {"seed": args.seed, "hours": args.hours, "test_talks": args.test_talks, "made_by": fingerprint()}
    with locked(args.output_dir):
        make(args.output_dir, languages, settings, args.nj)


def make(output_dir: Path, languages: list[str], settings: dict, nj: int) -> None:
    """Make the corpus unless it is there, whole, with the same settings and the languages asked for."""
    present, whole = find(output_dir, settings)
    if whole and set(languages) <= set(present):
        logging.info("%s: whole, made with the same settings, nothing to do", output_dir)
        return
    languages = [language for language in LANGUAGES if language in {*languages, *present}]
    talks = plan(settings["seed"], settings["hours"], settings["test_talks"])
    logging.info("%s: recording %d talks, en to %s, %d processes", output_dir, len(talks), " ".join(languages), nj)
    with whole_or_absent(output_dir) as folder:
        write_corpus(folder, talks, languages, nj, show_progress)
        figures = measure(folder, languages)
        (folder / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        write_manifest(folder, {**settings, "languages": languages})
    print_figures(figures)


def find(output_dir: Path, settings: dict) -> tuple[list[str], bool]:
    """The languages of the corpus that is there, and whether it is whole and made with these settings.

    Raises UserError when the folder holds something else, which is not ours to replace.
    """
    if not (output_dir / MANIFEST).exists():
        if output_dir.exists() and (not output_dir.is_dir() or any(output_dir.iterdir())):
            raise UserError(f"--output_dir {output_dir}: holds no mini corpus; name another folder or remove it")
        return [], False
    languages: list[str] = []
    try:
        manifest = read_manifest(output_dir)
        languages = manifest["settings"].pop("languages")
        if manifest["settings"] != settings:
            logging.info("%s: made with other settings or by another version, is made anew", output_dir)
            return languages, False
        check_files(output_dir, manifest)
    except UserError as fault:
        logging.warning("%s: the corpus is made anew", fault)
        return languages, False
    return languages, True


def fingerprint() -> str:
    """A digest of the generator's own files and of the versions its bytes depend on."""
    digest = hashlib.sha256()
    package = Path(__file__).parent / "mini_corpus"
    for path in sorted([*package.glob("*.py"), *package.glob("lexicon/*.tsv")]):
        digest.update(path.read_bytes())
    for name in PACKAGES:
        digest.update(f"{name} {version(name)}".encode())
    return digest.hexdigest()[:16]


def show_progress(results: Iterable, total: int) -> Iterable:
    """A bar on a terminal, a line for every tenth in a file."""
    if sys.stderr.isatty():
        yield from track(results, "recording", total)
        return
    for count, result in enumerate(results, start=1):
        yield result
        if count * 10 // total > (count - 1) * 10 // total:
            logging.info("recorded %d of %d talks", count, total)


def print_figures(figures: dict) -> None:
    for group in figures.values():
        for name, values in group.items():
            print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in values.items()))


if __name__ == "__main__":
    run(main)
