"""Train a sentencepiece unigram model on one text table and write ESPnet's token list."""

import heapq
import io
import tempfile
from collections import Counter
from pathlib import Path

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from step import Step, new_directory, say

from espnet_ext.cli import ArgumentParser, run, str2bool
from espnet_ext.errors import UserError
from espnet_ext.files import atomic_write, check_output, read_table
from espnet_ext.lock import locked
from espnet_ext.log.units import uses_characters

BLANK, UNKNOWN, SOS_EOS = "<blank>", "<unk>", "<sos/eos>"
META_PIECES = ("<unk>", "<s>", "</s>")
LONGEST_PIECE = 16  # characters, sentencepiece's own limit
MOST_SEEDS = 1_000_000  # also sentencepiece's own


def seed_pieces(lines: list[str]) -> list[tuple[str, int]]:
    """Candidate pieces with their counts in the text: all substrings of its words.

    Sentencepiece's own candidates must occur in two different words: a frequent word that no other one contains is cut
    to pieces however large the vocabulary. In a small text that is most of the function words.
    """
    counts: Counter[str] = Counter()
    for word, count in Counter(word for line in lines for word in line.split()).items():
        marked = "▁" + word
        for begin in range(len(marked)):
            for end in range(begin + 1, min(len(marked), begin + LONGEST_PIECE) + 1):
                counts[marked[begin:end]] += count
    return heapq.nlargest(MOST_SEEDS, counts.items(), key=lambda item: (item[1] * len(item[0]), item[0]))


def train(lines: list[str], nbpe: int, hard_limit: bool, lang: str) -> bytes:
    """The serialised model, the same bytes for the same lines.

    Every character is covered, so that no training word holds an unknown token.
    Raises RuntimeError when `nbpe` pieces are impossible and `hard_limit` is set.
    """
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".tsv") as seeds:
        # Where there are no spaces a word is a sentence, and sentencepiece's own candidates serve.
        if not uses_characters(lang):
            seeds.writelines(f"{piece}\t{count}\n" for piece, count in seed_pieces(lines))
            seeds.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type="unigram",
            vocab_size=nbpe,
            max_sentence_length=max(len(line.encode()) for line in lines),  # longer ones would be left out
            character_coverage=1.0,
            hard_vocab_limit=hard_limit,
            seed_sentencepieces_file="" if uses_characters(lang) else seeds.name,
            num_threads=4,  # a constant: the result depends on it
            minloglevel=2,
        )
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    proto.trainer_spec.DiscardUnknownFields()  # the name of the temporary file
    return proto.SerializeToString()


def valid_range(lines: list[str], lang: str, at_least: int = 8000) -> tuple[int, int]:
    """Smallest number of pieces that the text allows, and the largest if that is below `at_least`."""
    smallest = len({c for line in lines for c in line if c != " "} | {"▁"}) + len(META_PIECES)
    soft = sentencepiece.SentencePieceProcessor(model_proto=train(lines, max(at_least, smallest), False, lang))
    return smallest, len(soft)


def pieces(model: bytes) -> list[str]:
    """ESPnet's token list: blank, unknown, the pieces, sos/eos."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    own = [processor.id_to_piece(i) for i in range(len(processor))]
    return [BLANK, UNKNOWN, *(piece for piece in own if piece not in META_PIECES), SOS_EOS]


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, required=True, help="Kaldi text table")
    parser.add_argument("--lang", required=True, help="its language; ja and zh have no spaces between words")
    parser.add_argument("--nbpe", type=int, required=True, help="number of tokens")
    parser.add_argument("--hard_vocab_limit", type=str2bool, default=True, help="false: as many as the text allows")
    parser.add_argument("--output_dir", type=Path, required=True, help="gets bpe.model and tokens.txt")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Train, or say which numbers of tokens this text allows."""
    args = get_parser().parse_args(argv)
    check_output(args.output_dir, "output_dir", [args.text.parent])
    step = Step(args.output_dir / ".done", {"nbpe": args.nbpe, "hard": args.hard_vocab_limit}, [args.text])
    with locked(args.output_dir):
        if not step.is_done(args.output_dir):
            write_tokens(args, step)


def write_tokens(args: object, step: Step) -> None:
    """Train with parsed options and write the model and its token list."""
    lines = [text for text in read_table(args.text, allow_empty=True).values() if text]
    if not lines:
        raise UserError(f"{args.text}: no text to train on; run stages 1 to 4 again")
    try:
        model = train(lines, args.nbpe, args.hard_vocab_limit, args.lang)
    except (RuntimeError, OSError):
        low, high = valid_range(lines, args.lang, max(8000, args.nbpe))
        raise UserError(f"nbpe {args.nbpe} is impossible for {args.text}: choose {low} to {high}") from None
    tokens = pieces(model)
    with new_directory(args.output_dir) as temporary:
        with atomic_write(temporary / "bpe.model", "wb") as stream:
            stream.write(model)
        with atomic_write(temporary / "tokens.txt") as stream:
            stream.writelines(f"{token}\n" for token in tokens)
    step.finish([args.output_dir / "bpe.model", args.output_dir / "tokens.txt"])
    say(f"{args.output_dir}: {len(tokens)} tokens from {len(lines)} lines")


if __name__ == "__main__":
    run(main)
