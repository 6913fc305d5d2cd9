"""Average the last epochs of an ASR model and print its error rate on dev, by greedy CTC search."""

import json
from itertools import groupby
from pathlib import Path

from espnet_jobs import limit_threads
from kaldi_dir import source_text, validate
from step import Step, say

from espnet_ext.bin import average_checkpoints
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.files import atomic_write, read_table
from espnet_ext.lock import locked
from espnet_ext.log.units import split_units, uses_characters

BATCH = 16


def greedy_ctc(model_dir: Path, wavs: list[str]) -> list[str]:
    """Transcripts of audio files: the best token of each frame, repetitions and blanks removed."""
    import sentencepiece
    import soundfile
    import torch
    from espnet2.tasks.asr import ASRTask
    from torch.nn.utils.rnn import pad_sequence

    model, config = ASRTask.build_model_from_file(model_dir / "config.yaml", model_dir / "model.pth", "cpu")
    model.eval()
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=config.bpemodel)
    texts = []
    for start in range(0, len(wavs), BATCH):
        speech = [torch.from_numpy(soundfile.read(wav, dtype="float32")[0]) for wav in wavs[start : start + BATCH]]
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
    parser.add_argument("--last", type=int, required=True, help="number of epochs to average")
    parser.add_argument("--dump", type=Path, required=True)
    parser.add_argument("--nj", type=int, default=1, help="threads")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Average unless that is done, and print the rate."""
    args = get_parser().parse_args(argv)
    validate(args.dump)
    epochs = average_checkpoints.last_epochs(args.model_dir, args.last)
    text = args.dump / source_text(args.dump)
    metric = "CER" if uses_characters(text.suffix[1:]) else "WER"
    inputs = [args.model_dir / "config.yaml", *epochs, args.dump / "wav.scp", text]
    model, output = args.model_dir / "model.pth", args.model_dir / "dev_wer.json"
    step = Step(args.model_dir / ".average.done", {"last": args.last}, inputs)
    with locked(args.model_dir):
        if not step.is_done(model):
            limit_threads(args.nj)
            write_average(args, text, metric)
            step.finish([model, output])
    rate = json.loads(output.read_text(encoding="utf-8"))[metric]
    say(f"{args.model_dir.name}: {metric} {rate:.1f} % on {args.dump.name} (greedy CTC)")


def write_average(args: object, text: Path, metric: str) -> None:
    """Write model.pth, and its error rate on parsed options' dump with the transcripts `text` into dev_wer.json."""
    import espnet_ext.quiet_import  # noqa: F401 - before ESPnet

    directory = args.model_dir
    options = ["--last", str(args.last), "--exp_dir", str(directory), "--output", str(directory / "model.pth")]
    average_checkpoints.main(options)
    references = read_table(text)
    hypotheses = greedy_ctc(directory, list(read_table(args.dump / "wav.scp").values()))
    rate = error_rate(list(references.values()), hypotheses, text.suffix[1:])
    with atomic_write(directory / "dev_wer.json") as stream:
        json.dump({metric: rate, "search": "greedy CTC", "utterances": len(references)}, stream)


if __name__ == "__main__":
    run(main)
