"""One job of stage 11: its shard of every decode of a grid, one after the other; each goes on where it was."""

import os
from functools import partial

from espnet_jobs import Job, fail, limit_threads, run_jobs
from grid import add_grid_options, plan_from_args
from shards import Shard, make_step, split
from step import say

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.lock import locked


def decode_one(shard: Shard, ngpu: int) -> None:
    """One shard of one decode, in a process of its own."""
    from espnet_ext.bin import st_inference_simul

    decode = shard.decode
    with locked(shard.directory):
        shard.step.resume(shard.directory)
        options = {
            "st_train_config": decode.model_dir / "config.yaml",
            "st_model_file": decode.model_dir / "model.pth",
            "data_path_and_name_and_type": f"{decode.data}/wav.scp,speech,sound",
            "key_file": shard.write_keys(),
            "ref": decode.references,
            "output_dir": shard.directory,
            "ngpu": ngpu,
        }
        if decode.segments is not None:
            options["segments"] = decode.segments
        options |= decode.options
        words = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        st_inference_simul.decode(st_inference_simul.get_parser().parse_args(words))
        shard.finish()


def choose_gpu(number: int) -> None:
    """Where several GPUs can be seen, see one of them."""
    from torch.cuda import device_count

    if (count := device_count()) > 1:
        names = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(count)))).split(",")
        os.environ["CUDA_VISIBLE_DEVICES"] = names[(number - 1) % count]


def get_parser() -> ArgumentParser:
    """Options of the command; `--nj` is the number of jobs."""
    parser = ArgumentParser(description=__doc__)
    add_grid_options(parser)
    parser.add_argument("--ngpu", type=int, default=0, choices=(0, 1), help="1: decode on a GPU")
    parser.add_argument("--job", type=int, required=True, help="number of this job, from 1")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Do what is not done; name what failed after all others have ended."""
    args = get_parser().parse_args(argv)
    limit_threads(1)
    import espnet_ext.bin.st_inference_simul  # noqa: F401 - imported once, shared by the processes

    jobs = []
    for decode in plan_from_args(args):
        step = make_step(decode)
        mine = [] if step.is_done(None) else [s for s in split(decode, step, args.nj) if s.number == args.job]
        for shard in mine:
            if not shard.step.is_done(None):
                log = decode.directory / "log" / f"decode.{shard.number}.log"
                jobs.append(Job(decode.name, partial(decode_one, shard, args.ngpu), log))
    if args.ngpu:
        choose_gpu(args.job)
    say(f"job {args.job} of {args.nj}: {len(jobs)} decodes")
    fail(run_jobs(jobs, 1, on_end=lambda job, code: say(f"{job.name}  {'done' if code == 0 else 'FAILED'}")))


if __name__ == "__main__":
    run(main)
