"""Make the mini corpus: a synthetic MuST-C of English talks with German, Spanish and French translations."""

import hashlib
import json
import logging
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from rich.progress import track

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from mini_corpus.content import plan
from mini_corpus.figures import SPLITS, measure
from mini_corpus.lexicon import LANGUAGES
from mini_corpus.writer import damage, locked, read_settings, whole_or_absent, write_corpus, write_manifest

PACKAGES = ("espeakng-loader", "soxr", "numpy")


def get_parser() -> ArgumentParser:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--output_dir", type=Path, required=True, help="the corpus: en-XX/data/SPLIT/{wav,txt}")
    parser.add_argument("--tgt_lang", default="de", help=f"target languages, of: {' '.join(LANGUAGES[1:])}")
    parser.add_argument("--hours", type=float, default=2.2, help="speech in train, in hours")
    parser.add_argument("--test_talks", type=int, default=12, help="talks in dev and in tst-COMMON; a quarter in tst-HE")
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
    made = read_settings(output_dir)
    if made is None and output_dir.exists() and any(output_dir.iterdir()):
        raise UserError(f"{output_dir}: holds files but no mini corpus; give another --output_dir or remove it")
    if made is not None and {**made, "languages": None} == {**settings, "languages": None}:
        fault = damage(output_dir)
        if fault:
            logging.warning("%s: the corpus is made anew", fault)
        elif set(languages) <= set(made["languages"]):
            logging.info("%s: whole, made with the same settings, nothing to do", output_dir)
            return
        languages = [language for language in LANGUAGES if language in {*languages, *made["languages"]}]
    talks = plan(settings["seed"], settings["hours"], settings["test_talks"])
    logging.info("%s: recording %d talks, en to %s, %d processes", output_dir, len(talks), " ".join(languages), nj)
    with whole_or_absent(output_dir) as folder:
        write_corpus(folder, talks, languages, nj, show_progress)
        figures = {f"en-{language}": measure(folder, language) for language in languages}
        (folder / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        write_manifest(folder, {**settings, "languages": languages})
    print_figures(figures)


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
    for pair, values in figures.items():
        print(f"{pair}: {values['target_word_types']} target word types, {values['target_words']} target words in train")
        for split in SPLITS:
            print(f"{pair} {split}: " + ", ".join(f"{key} {value}" for key, value in values[split].items()))


if __name__ == "__main__":
    run(main)
