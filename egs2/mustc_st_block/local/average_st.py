"""Average epochs of ST models and compare each mean with one of its epochs: offline BLEU on dev.

That epoch is the last one for `--last`, the best one for `--around_best`.
"""

import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from espnet_jobs import Job, fail, limit_threads, run_jobs
from kaldi_dir import target_text, validate
from step import Step, say

from espnet_ext.bin import average_checkpoints
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.files import atomic_write, read_lines, read_table
from espnet_ext.lock import locked

LARGEST_FALL = 1.0


def offline_bleu(
    config: Path, checkpoint: Path, wavs: list[str], references: list[str], beam: int, tgt_lang: str, out: Path
) -> None:
    """Translate whole utterances and write the corpus BLEU to `out`."""
    from espnet_ext import SimulSession, load_model
    from espnet_ext.audio.reader import Recording
    from espnet_ext.evaluation.quality import quality

    session = SimulSession(load_model(config, checkpoint), search="offline", beam_size=beam, tgt_lang=tgt_lang)
    hypotheses = []
    for wav in wavs:
        session.reset(wav)
        session.push(Recording(wav, wav).read())
        session.finish()
        hypotheses.append(session.text)
    with atomic_write(out) as stream:
        json.dump(quality(hypotheses, references, tgt_lang)["BLEU"], stream)


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--model_dirs", type=Path, nargs="+", required=True, help="training directories")
    average_checkpoints.add_rule(parser)
    parser.add_argument("--dump", type=Path, required=True, help="dumped dev set")
    parser.add_argument("--tgt_lang", required=True)
    parser.add_argument("--utterances", type=int, default=100, help="dev utterances to translate, evenly spread")
    parser.add_argument("--beam_size", type=int, default=2)
    parser.add_argument("--nj", type=int, default=1, help="parallel jobs")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Write model.pth and average.json into each directory that has none of these epochs yet."""
    args = get_parser().parse_args(argv)
    count = validate(args.dump)
    chosen = range(0, count, -(-count // args.utterances))
    wavs = [list(read_table(args.dump / "wav.scp").values())[i] for i in chosen]
    references = [list(read_table(args.dump / target_text(args.tgt_lang), True).values())[i] for i in chosen]
    limit_threads(1)
    with ExitStack() as locks:
        for model_dir in args.model_dirs:
            locks.enter_context(locked(model_dir))
        average_all(args, wavs, references)


def average_all(args: object, wavs: list[str], references: list[str]) -> None:
    """Average what is not done, translate dev with each mean and one epoch each, and say what averaging does."""
    single = "last" if args.around_best is None else "best"
    steps: dict[Path, tuple[Step, list[str]]] = {}
    jobs = []
    for model_dir in args.model_dirs:
        epochs = average_checkpoints.chosen_epochs(model_dir, args.last, args.around_best)
        settings = {"wavs": wavs, "references": references, "beam_size": args.beam_size}
        step = Step(model_dir / ".average.done", settings, [model_dir / "config.yaml", *epochs])
        if step.is_done(model_dir / "model.pth"):
            continue
        steps[model_dir] = step, [path.name for path in epochs]
        model = model_dir / "model.pth"
        average_checkpoints.write_average(epochs, model)
        other = epochs[-1] if single == "last" else average_checkpoints.best_checkpoint(model_dir)
        for name, checkpoint in (("mean", model), (single, other)):
            work = partial(
                offline_bleu, model_dir / "config.yaml", checkpoint, wavs, references, args.beam_size, args.tgt_lang
            )
            out = model_dir / "log" / f"bleu_{name}.json"
            jobs.append(Job(f"{model_dir.name} {name}", partial(work, out), out.with_suffix(".log")))
    if not steps:
        return
    import espnet_ext.session  # noqa: F401 - imported once, shared by the processes

    fail(run_jobs(jobs, args.nj))
    for model_dir, (step, epochs) in steps.items():
        bleu = {n: json.loads(read_lines(model_dir / "log" / f"bleu_{n}.json")[0]) for n in ("mean", single)}
        with atomic_write(model_dir / "average.json") as stream:
            json.dump({"epochs": epochs, "utterances": len(wavs), "dev_BLEU": bleu}, stream)
        step.finish([model_dir / "model.pth", model_dir / "average.json"])
        say(
            f"{model_dir.name}: dev BLEU (offline, {len(wavs)} utterances) {bleu['mean']:.1f} for the mean of "
            f"{len(epochs)} epochs, {bleu[single]:.1f} for the {single}"
        )
        fall = bleu[single] - bleu["mean"]
        if fall > LARGEST_FALL:
            say(f"warning: {model_dir.name}: averaging loses {fall:.1f} BLEU; average fewer epochs")


if __name__ == "__main__":
    run(main)
