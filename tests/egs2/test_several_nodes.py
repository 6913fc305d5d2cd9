"""The command line of a training on several nodes; the training itself needs GPUs that the tests do not have."""

from pathlib import Path

import pytest
from train_models import gpu_options, nodes_command

from espnet_ext.errors import UserError

SETTINGS = {"batch_bins": 100, "accum_grad": 8}
JOB = {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "5"}
STEP = {
    "SLURM_PROCID": "1",
    "SLURM_NTASKS": "2",
    "SLURM_NODEID": "1",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_NODELIST": "node[1-2]",
}


def test_espnet_takes_its_place_among_the_nodes_from_srun(tmp_path, monkeypatch):
    from espnet2.tasks.st import STTask
    from espnet2.train.distributed_utils import DistributedOption, resolve_distributed_mode
    from espnet2.utils.build_dataclass import build_dataclass

    for name, value in (JOB | STEP).items():
        monkeypatch.setenv(name, value)
    command = nodes_command("st", ["--output_dir", str(tmp_path), *gpu_options(SETTINGS, 4, 2)], tmp_path)
    assert command[:3] == ["srun", "--export=ALL", "--cpus-per-task=5"]
    assert Path(command[4]).name == "whole_training.py" and command[5] == "st"
    args = STTask.get_parser().parse_args(command[6:])
    resolve_distributed_mode(args)
    assert args.distributed and args.multiprocessing_distributed
    assert (args.ngpu, args.batch_bins, args.accum_grad) == (4, 800, 1)
    option = build_dataclass(DistributedOption, args)
    assert option.dist_init_method.startswith(f"file://{tmp_path}/")


def test_without_slurm_it_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(UserError, match="--num_nodes: several nodes need a Slurm job"):
        nodes_command("st", [], tmp_path)
