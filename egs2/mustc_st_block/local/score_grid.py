"""Score every decode of a grid."""

from functools import partial

from espnet_jobs import Job, fail, limit_threads, run_jobs, tail
from grid import Decode, add_grid_options, plan_from_args
from step import Step, say

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError


def score_one(decode: Decode) -> None:
    """One scoring, in a process of its own."""
    from espnet_ext.bin.score_simul import main as score_simul

    options = {
        "instances": decode.directory / "instances.log",
        "ref": decode.references,
        "tgt_lang": decode.config.tgt_lang,
        "output_dir": decode.directory / "score",
    }
    if decode.config.long_form:
        options |= {"long_form": True, "segments": decode.segmented / "segments"}
        options["ref"] = decode.segmented / decode.references.name
    score_simul([text for name, value in options.items() for text in (f"--{name}", str(value))])


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    add_grid_options(parser)
    return parser


def main(argv: list[str] | None = None) -> None:
    """Score what has no scores yet, and print a line of scores for each decode."""
    args = get_parser().parse_args(argv)
    decodes = plan_from_args(args)
    for decode in decodes:
        if not (decode.directory / "stats.json").is_file():
            raise UserError(f"{decode.directory}: not decoded; run stage 11")
    steps = {}
    for decode in decodes:
        inputs = [decode.directory / "instances.log", decode.directory / "stats.json", decode.references]
        inputs += [decode.segmented / "segments"] if decode.config.long_form else []
        step = Step(decode.directory / "score" / ".done", {}, inputs)
        if not step.is_done(None):
            steps[decode] = step
    if len(steps) < len(decodes):
        say(f"done already: {len(decodes) - len(steps)} of {len(decodes)} scores")
    limit_threads(1)
    import espnet_ext.bin.score_simul  # noqa: F401 - imported once, shared by the processes

    jobs = {Job(d.name, partial(score_one, d), d.directory / "log" / "score.log"): d for d in steps}

    def on_end(job: Job, code: int) -> None:
        decode = jobs[job]
        if code == 0:
            steps[decode].finish(decode.directory / "score" / name for name in ("scores.json", "per_utt.tsv"))
            say(f"{decode.data.name} {tail(job.log, 1).strip()}")

    fail(run_jobs(list(jobs), args.nj, on_end=on_end))


if __name__ == "__main__":
    run(main)
