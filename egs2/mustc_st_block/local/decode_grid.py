"""Run every decode of a grid that is not there yet, several side by side; each lies in a directory with its log."""

import time
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path

from espnet_jobs import Job, fail, limit_threads, run_jobs
from grid import Decode, add_grid_options, plan_from_args
from kaldi_dir import validate
from step import Step, say

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.lock import locked

OUTPUTS = ("instances.log", "text", "stats.json")


def arguments(decode: Decode) -> list[str]:
    """The options of `espnet_ext.bin.st_inference_simul` for one decode."""
    options = {
        "st_train_config": decode.model_dir / "config.yaml",
        "st_model_file": decode.model_dir / "model.pth",
        "data_path_and_name_and_type": f"{decode.data}/wav.scp,speech,sound",
        "segments": decode.data / "segments",
        "ref": decode.references,
        "output_dir": decode.directory,
    }
    options |= {name: value for name, value in asdict(decode.config).items() if value is not None}
    return [text for name, value in options.items() for text in (f"--{name}", str(value))]


def decode_one(decode: Decode, ngpu: int) -> None:
    """One decode, in a process of its own."""
    from espnet_ext.bin.st_inference_simul import main as st_inference_simul

    st_inference_simul([*arguments(decode), "--ngpu", str(ngpu)])


def make_step(decode: Decode) -> Step:
    """What a decode depends on: options, model and input."""
    model = [decode.model_dir / name for name in ("config.yaml", "model.pth")]
    for path in model:
        if not path.is_file():
            raise UserError(f"{path}: no such model; run stages 9 and 10 for block size of {decode.model_dir.name}")
    inputs = [*model, decode.references, *(decode.data / name for name in ("wav.scp", "segments"))]
    return Step(decode.directory / ".done", asdict(decode.config), inputs)


def decode_all(waiting: list[Decode], steps: dict[Decode, Step], parallel: int, ngpu: int) -> None:
    """Run the decodes, with a line at the end of each."""
    jobs: dict[Job, Decode] = {}
    for decode in waiting:
        steps[decode].resume(decode.directory)
        log = Path(decode.directory) / "log" / "decode.log"
        jobs[Job(decode.name, partial(decode_one, decode, ngpu), log)] = decode
    say(f"{len(waiting)} decodes, {parallel} at a time")
    begin, ended = time.monotonic(), 0

    def on_end(job: Job, code: int) -> None:
        nonlocal ended
        ended += 1
        if code == 0:
            decode = jobs[job]
            steps[decode].finish(decode.directory / name for name in OUTPUTS)
        passed = time.monotonic() - begin
        left = passed / ended * (len(jobs) - ended)
        say(f"{ended}/{len(jobs)}  {job.name}  {'done' if code == 0 else 'FAILED'}  {passed:.0f} s, {left:.0f} s to go")

    fail(run_jobs(list(jobs), parallel, on_end=on_end))


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    add_grid_options(parser)
    parser.add_argument("--ngpu", type=int, default=0, help="GPUs of one decode")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Skip what is whole, go on with what was interrupted, and name what failed after all others have ended."""
    args = get_parser().parse_args(argv)
    decodes = plan_from_args(args)
    for data in {decode.data for decode in decodes}:
        validate(data)
    steps = {decode: make_step(decode) for decode in decodes}
    waiting = [decode for decode, step in steps.items() if not step.is_done(None)]
    if len(waiting) < len(decodes):
        say(f"done already: {len(decodes) - len(waiting)} of {len(decodes)} decodes")
    if not waiting:
        return
    parallel = 1 if args.ngpu else min(args.nj, len(waiting))
    limit_threads(1)
    import espnet_ext.bin.st_inference_simul  # noqa: F401 - imported once, shared by the processes

    with ExitStack() as locks:
        for directory in sorted({decode.directory.parents[1] for decode in waiting}):
            locks.enter_context(locked(directory))
        decode_all(waiting, steps, parallel, args.ngpu)


if __name__ == "__main__":
    run(main)
