"""Average epochs of an ASR model and print its error rate on dev, by greedy CTC search."""

import json
from itertools import groupby
from pathlib import Path

from espnet_jobs import limit_threads
from kaldi_dir import source_lang, source_text, validate
from step import Step, say

from espnet_ext.audio.reader import Recording
from espnet_ext.bin import average_checkpoints
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.files import atomic_write, read_table
from espnet_ext.lock import locked
from espnet_ext.log.units import split_units, uses_characters

BATCH = 16


def greedy_ctc(model_dir: Path, wavs: list[str]) -> list[str]:
    """Transcripts of audio files: the best token of each frame, repetitions and blanks removed."""
    import sentencepiece
    import torch
    from espnet2.tasks.asr import ASRTask
    from torch.nn.utils.rnn import pad_sequence

    model, config = ASRTask.build_model_from_file(model_dir / "config.yaml", model_dir / "model.pth", "cpu")
    model.eval()
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=config.bpemodel)
    texts = []
    for start in range(0, len(wavs), BATCH):
        speech = [torch.from_numpy(Recording(wav, wav).read()) for wav in wavs[start : start + BATCH]]
        with torch.inference_mode():
            encoded, lengths = model.encode(pad_sequence(speech, True), torch.tensor([len(s) for s in speech]))
            best = model.ctc.argmax(encoded)
        for frames, length in zip(best.tolist(), lengths.tolist(), strict=True):
            tokens = [model.token_list[t] for t, _ in groupby(frames[:length]) if t != model.blank_id]
            texts.append(tokenizer.decode(tokens))
    return texts


def error_rate(references: list[str], hypotheses: list[str], lang: str) -> float:
    """Edits over reference units (words, or characters for languages without spaces), in percent."""
    import editdistance

    pairs = [(split_units(r, lang), split_units(h, lang)) for r, h in zip(references, hypotheses, strict=True)]
    return 100 * sum(editdistance.eval(r, h) for r, h in pairs) / sum(len(r) for r, _ in pairs)


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--model_dir", type=Path, required=True, help="training directory")
    average_checkpoints.add_rule(parser)
    parser.add_argument("--dump", type=Path, required=True)
    parser.add_argument("--nj", type=int, default=1, help="threads")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Average unless that is done, and print the rate."""
    args = get_parser().parse_args(argv)
    validate(args.dump)
    epochs = average_checkpoints.chosen_epochs(args.model_dir, args.last, args.around_best)
    metric = "CER" if uses_characters(source_lang(args.dump)) else "WER"
    inputs = [args.model_dir / "config.yaml", *epochs, args.dump / "wav.scp", args.dump / source_text(args.dump)]
    model, output = args.model_dir / "model.pth", args.model_dir / "dev_wer.json"
    step = Step(args.model_dir / ".average.done", {}, inputs)
    with locked(args.model_dir):
        if not step.is_done(model):
            limit_threads(args.nj)
            write_model(args.model_dir, epochs, args.dump, metric)
            step.finish([model, output])
    rate = json.loads(output.read_text(encoding="utf-8"))[metric]
    say(f"{args.model_dir.name}: {metric} {rate:.1f} % on {args.dump.name} (greedy CTC)")


def write_model(directory: Path, epochs: list[Path], dump: Path, metric: str) -> None:
    """Write model.pth, and its error rate on a dumped directory into dev_wer.json."""
    import espnet_ext.quiet_import  # noqa: F401 - before ESPnet

    average_checkpoints.write_average(epochs, directory / "model.pth")
    references = read_table(dump / source_text(dump))
    hypotheses = greedy_ctc(directory, list(read_table(dump / "wav.scp").values()))
    rate = error_rate(list(references.values()), hypotheses, source_lang(dump))
    with atomic_write(directory / "dev_wer.json") as stream:
        json.dump({metric: rate, "search": "greedy CTC", "utterances": len(references)}, stream)


if __name__ == "__main__":
    run(main)
