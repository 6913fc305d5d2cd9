"""ESPnet's training with checkpoints that are whole at any moment: `whole_training.py asr|st ARGUMENTS...`.

ESPnet writes each checkpoint over the one before, in the process that trains: its caller's, or one it starts for each
GPU.
"""

import os
import sys

import torch

import espnet_ext.quiet_import  # noqa: F401 - before ESPnet

# isort: split
from espnet2.tasks.asr import ASRTask
from espnet2.tasks.st import STTask
from parallel import die_with

from espnet_ext.files import whole_save

SAVE_WHOLE = whole_save(torch.save)


class WholeCheckpoints:
    """Mixed into an ESPnet task: what its training processes do before they train."""

    @classmethod
    def main_worker(cls, args: object) -> None:
        """Train. A process for one GPU of several ends with its parent, so that none trains on without the lock."""
        die_with(os.getppid())
        torch.save = SAVE_WHOLE
        super().main_worker(args)


class WholeASRTask(WholeCheckpoints, ASRTask):
    """`espnet2.bin.asr_train`."""


class WholeSTTask(WholeCheckpoints, STTask):
    """`espnet2.bin.st_train`."""


TASKS = {"asr": WholeASRTask, "st": WholeSTTask}

if __name__ == "__main__":
    TASKS[sys.argv[1]].main(cmd=sys.argv[2:])
