"""Add a copy of the training set whose targets are a translation model's: sequence-level knowledge distillation.

Source: Kim and Rush 2016, as used by the StreamAtt paper, section 5.1. Each distinct transcript is translated once.
"""

import json
import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from espnet_jobs import Job, fail, limit_threads, run_jobs
from kaldi_dir import read_texts, source_lang, target_text, validate, write_speakers, write_table
from step import Step, new_directory, say

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.files import atomic_write, check_output, read_table
from espnet_ext.lock import locked

PREFIX = "kd-"
CODES = {
    "ar": "arb_Arab",
    "cs": "ces_Latn",
    "de": "deu_Latn",
    "en": "eng_Latn",
    "es": "spa_Latn",
    "fa": "pes_Arab",
    "fr": "fra_Latn",
    "it": "ita_Latn",
    "ja": "jpn_Jpan",
    "nl": "nld_Latn",
    "pt": "por_Latn",
    "ro": "ron_Latn",
    "ru": "rus_Cyrl",
    "tr": "tur_Latn",
    "vi": "vie_Latn",
    "zh": "zho_Hans",
}
NOT_ENDED = "has more than twice its source's tokens and 20, or no end"
SEARCH_LIMIT = 512  # tokens; one number for all sentences, so that a translation does not depend on its batch


def longest(source_tokens: int) -> int:
    """Number of tokens above which a translation is taken for a runaway."""
    return 2 * source_tokens + 20


class Translations:
    """Finished translations on disk, by sentence; None stands for a runaway.

    Jobs add whole lines to files of their own; the next run gathers them, whatever became of the jobs.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.whole = directory / "translations.jsonl"

    def part(self, job: int) -> Path:
        """The file that a job adds to."""
        return self.directory / f"part.{job}.jsonl"

    def parts(self) -> list[Path]:
        """The files that jobs have added to."""
        return sorted(self.directory.glob("part.*.jsonl"))

    def read(self, *paths: Path) -> dict[str, str | None]:
        """What these files hold. A last line that is cut, of a job killed or still writing, is left out."""
        lines = [line for path in paths if path.exists() for line in path.read_bytes().split(b"\n")[:-1]]
        return dict(map(json.loads, lines))

    def write(self, path: Path, found: dict[str, str | None]) -> None:
        """Write whole lines in the place of what was there."""
        with atomic_write(path) as stream:
            stream.writelines(json.dumps(item, ensure_ascii=False) + "\n" for item in found.items())

    def gather(self) -> dict[str, str | None]:
        """Everything that is finished, now in one file. Raises UserError while a shard is at work."""
        parts = self.parts()
        found = self.read(self.whole, *parts)
        if parts:
            with ExitStack() as locks:
                for path in parts:
                    locks.enter_context(locked(path))
                self.write(self.whole, found)
                for path in parts:
                    path.unlink()
        return found


def load(name: str, source_code: str, code: str, precision: str) -> tuple:
    """Model and tokenizer of an NLLB-type checkpoint. Raises UserError when it is none or lacks a language."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the jobs are forked
    import torch

    try:
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
        from transformers.utils import logging
    except ImportError as error:
        raise UserError(f"distillation needs transformers ({error}); run tools/setup.sh") from None
    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, src_lang=source_code)
        model = AutoModelForSeq2SeqLM.from_pretrained(name, dtype=getattr(torch, precision))
    except (OSError, ValueError) as error:
        raise UserError(f"--model {name}: cannot be loaded: {str(error).partition('\n')[0]}") from None
    for language in (source_code, code):
        if tokenizer.convert_tokens_to_ids(language) in (None, tokenizer.unk_token_id):
            raise UserError(f"--model {name}: no language code {language}; an NLLB-type model is needed")
    return model.eval(), tokenizer


def translate(model: object, tokenizer: object, batch: list[str], code: str, beam_size: int) -> Iterator[str | None]:
    """The best translation of each sentence by beam search, None for a runaway."""
    import torch

    inputs = tokenizer(batch, padding=True, return_tensors="pt").to(model.device)
    lengths = inputs["attention_mask"].sum(dim=1).tolist()
    with torch.inference_mode():
        output = model.generate(
            **inputs,
            forced_bos_token_id=tokenizer.convert_tokens_to_ids(code),
            num_beams=beam_size,
            do_sample=False,
            max_new_tokens=SEARCH_LIMIT,
        )
    for length, tokens in zip(lengths, output[:, 1:].tolist(), strict=True):  # the first one starts the decoder
        count = tokens.index(tokenizer.eos_token_id) if tokenizer.eos_token_id in tokens else None
        ended = count is not None and count <= longest(length)
        yield " ".join(tokenizer.decode(tokens, skip_special_tokens=True).split()) if ended else None


def translate_all(batches: list[list[str]], part: Path, device: str, model: object, call: Callable) -> None:
    """Translate batch by batch, a line a sentence, and print how many a batch had; runs in a process of its own."""
    model.to(device)
    with open(part, "a", encoding="utf-8") as stream:
        for batch in batches:
            stream.writelines(
                json.dumps(pair, ensure_ascii=False) + "\n" for pair in zip(batch, call(batch), strict=True)
            )
            stream.flush()
            print(len(batch), flush=True)


def complete_shard(translations: Translations, sentences: list[str], codes: tuple[str, str], args: object) -> None:
    """Translate this shard's part of the sentences, those that are not translated yet, beside other shards."""
    number, count = args.shard
    part = translations.part(number)
    with locked(part):
        translations.write(part, translations.read(part))
        found = translations.read(translations.whole, *translations.parts())
        waiting = unfinished(in_batches(sentences, args.batch_size)[number - 1 :: count], found)
        say(f"{translations.directory}: shard {number} of {count}: {sum(map(len, waiting))} sentences to translate")
        if not waiting:
            return
        limit_threads(args.nj)
        model, tokenizer = load(args.model, *codes, "float16" if args.ngpu else "float32")
        call = partial(translate, model, tokenizer, code=codes[1], beam_size=args.beam_size)
        translate_all(waiting, part, "cuda" if args.ngpu else "cpu", model, call)


def in_batches(sentences: Iterable[str], size: int) -> list[list[str]]:
    """What is translated at once: of one length, the longest first.

    The batches do not depend on what is finished, so that a translation, whose last digits depend on its batch, is the
    same after a kill and by any number of jobs.
    """
    ordered = sorted(sentences, key=lambda s: (-len(s), s))
    return [ordered[begin : begin + size] for begin in range(0, len(ordered), size)]


def unfinished(batches: Iterable[list[str]], found: Mapping[str, str | None]) -> list[list[str]]:
    """The batches of which a sentence is missing."""
    return [batch for batch in batches if not all(sentence in found for sentence in batch)]


def complete(
    translations: Translations, sentences: list[str], source_code: str, code: str, args: object
) -> dict[str, str | None]:
    """Translate the sentences that are not translated yet, over the jobs; returns all translations."""
    found = translations.gather()
    waiting = unfinished(in_batches(sentences, args.batch_size), found)
    if not waiting:
        return found
    done = len(sentences) - sum(map(len, waiting))
    say(f"{translations.directory}: {done}/{len(sentences)} sentences are translated")
    jobs = min(args.ngpu or args.nj, len(waiting))
    if jobs < (args.ngpu or args.nj):
        say(f"{len(waiting)} batches of sentences, so {jobs} jobs instead of {args.ngpu or args.nj}")
    limit_threads(args.nj // jobs)
    model, tokenizer = load(args.model, source_code, code, "float16" if args.ngpu else "float32")
    call = partial(translate, model, tokenizer, code=code, beam_size=args.beam_size)
    work = []
    for job in range(jobs):
        device = f"cuda:{job}" if args.ngpu else "cpu"
        run_job = partial(translate_all, waiting[job::jobs], translations.part(job), device, model, call)
        work.append(Job(f"distillation job {job + 1}", run_job, translations.directory / "log" / f"{job + 1}.log"))
    shown = done

    def on_line(job: Job, line: str) -> None:
        nonlocal done, shown
        done += int(line) if line.isdigit() else 0
        if (done - shown) * 20 >= len(sentences) or done == len(sentences) > shown:
            shown = done
            say(f"{translations.directory}: {done}/{len(sentences)} sentences")

    fail(run_jobs(work, jobs, on_line))
    return translations.gather()


def write_distilled(dump: Path, output: Path, translations: dict[str, str | None], lang: str) -> tuple[int, int]:
    """Write gold and distilled utterances, and what is left out with its reason; returns the numbers of the last two.

    A distilled copy has the id and the speaker of its original with the prefix `kd-`, its audio and its source text.
    Raises UserError when no translation is usable.
    """
    source = read_table(dump / f"text.tc.{source_lang(dump)}")
    left_out = {u: NOT_ENDED for u, text in source.items() if translations[text] is None}
    left_out |= {u: "is empty" for u, text in source.items() if translations[text] == ""}
    copied = [u for u in source if u not in left_out]
    if not copied:
        first = next(iter(source))
        raise UserError(f"{dump}: no translation of {len(source)} is usable; that of {first} {left_out[first]}")

    def with_copies(table: dict[str, str]) -> dict[str, str]:
        return table | {PREFIX + u: table[u] for u in copied}

    for name in ("wav.scp", "utt2num_samples"):
        write_table(output / name, with_copies(read_table(dump / name)))
    speakers = read_table(dump / "utt2spk")
    write_speakers(output, speakers | {PREFIX + u: PREFIX + speakers[u] for u in copied})
    for name, table in read_texts(dump).items():
        write_table(output / name, with_copies(table))
    gold = read_table(dump / target_text(lang))
    write_table(output / target_text(lang), gold | {PREFIX + u: translations[source[u]] for u in copied})
    if left_out:
        write_table(output / "left_out", left_out)
    validate(output)
    return len(copied), len(left_out)


def model_files(name: str) -> list[tuple[str, int]]:
    """Names and sizes of the files of a model directory; nothing for a name on the model hub."""
    return sorted((path.name, path.stat().st_size) for path in Path(name).glob("*") if path.is_file())


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--dump", type=Path, required=True, help="dumped and filtered training data")
    parser.add_argument("--output_dir", type=Path, required=True, help="gets the training data and its distilled copy")
    parser.add_argument("--work_dir", type=Path, required=True, help="keeps the translations")
    parser.add_argument("--model", required=True, help="NLLB-type model: a directory, or a name on the model hub")
    parser.add_argument("--tgt_lang", required=True)
    parser.add_argument("--beam_size", type=int, default=5)
    parser.add_argument("--batch_size", type=int, default=32, help="sentences that a job translates at once")
    parser.add_argument("--nj", type=int, default=1, help="CPU cores, a job each")
    parser.add_argument("--ngpu", type=int, default=0, help="GPUs, a job each, in half precision; 0: the CPU")
    parser.add_argument(
        "--shard",
        type=shard,
        metavar="I/N",
        help="only translate the I-th of N parts; a later call without it writes",
    )
    return parser


def shard(text: str) -> tuple[int, int]:
    """The numbers of `I/N`."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ArgumentTypeError(f"{text!r} is not I/N with I from 1 to N")
    return int(number), int(count)


def main(argv: list[str] | None = None) -> None:
    """Translate what is not translated yet, then write the training data."""
    args = get_parser().parse_args(argv)
    check_output(args.output_dir, "output_dir", [args.dump])
    validate(args.dump)
    src_lang = source_lang(args.dump)
    for lang in (src_lang, args.tgt_lang):
        if lang not in CODES:
            raise UserError(f"no NLLB code known for language {lang}; known are {', '.join(CODES)}")
    source = read_table(args.dump / f"text.tc.{src_lang}")
    taken = next((u for u in source if u.startswith(PREFIX)), None)
    if taken is not None:
        raise UserError(f"{args.dump}: utterance {taken} has the prefix of distilled copies; rename it")
    settings = {"model": args.model, "beam_size": args.beam_size, "src_lang": src_lang, "tgt_lang": args.tgt_lang}
    settings["files"] = model_files(args.model)
    config = Path(args.model) / "config.json"
    tables = ["wav.scp", "utt2num_samples", "utt2spk", *read_texts(args.dump)]
    step = Step(args.output_dir / ".done", settings, [config, *(args.dump / name for name in tables)])
    work = args.work_dir / f"{Path(args.model).name}.{Step(args.work_dir, settings, [config]).key[:8]}"
    codes = CODES[src_lang], CODES[args.tgt_lang]
    if args.shard:
        work.mkdir(parents=True, exist_ok=True)
        if not step.is_done(args.output_dir):
            complete_shard(Translations(work), sorted(set(source.values())), codes, args)
        return
    with locked(args.output_dir), locked(work):
        if step.is_done(args.output_dir):
            return
        work.mkdir(parents=True, exist_ok=True)
        translations = complete(Translations(work), sorted(set(source.values())), *codes, args)
        with new_directory(args.output_dir) as temporary:
            copied, left_out = write_distilled(args.dump, temporary, translations, args.tgt_lang)
        step.finish(path for path in args.output_dir.iterdir() if path.is_file())
    listed = f", {left_out} translations left out (left_out)" if left_out else ""
    say(f"{args.output_dir}: {len(source)} utterances and {copied} distilled copies{listed}")


if __name__ == "__main__":
    run(main)
