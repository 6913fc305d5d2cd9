"""What ESPnet's training processes do beside training: whole checkpoints, no life after their parent's."""

import argparse
import multiprocessing
import os
import signal
import time

import pytest
import torch
from whole_training import WholeCheckpoints


class Unwritable:
    def __reduce__(self):
        raise OSError(28, "No space left on device")


class Saving:
    """In the place of an ESPnet task: its training fails in the middle of a save."""

    @classmethod
    def main_worker(cls, args):
        torch.save({"weight": torch.ones(1000), "more": Unwritable()}, args.path)


class Sleeping:
    @classmethod
    def main_worker(cls, args):
        args.path.write_text(str(os.getpid()))
        time.sleep(60)


class WholeSaving(WholeCheckpoints, Saving):
    pass


class WholeSleeping(WholeCheckpoints, Sleeping):
    pass


def spawn(task, path):
    """As ESPnet starts the process of one GPU."""
    process = multiprocessing.get_context("spawn").Process(
        target=task.main_worker, args=(argparse.Namespace(path=path),), daemon=False
    )
    process.start()
    return process


def test_a_process_of_several_leaves_the_checkpoint_before_whole_when_a_save_fails(tmp_path, capfd):
    torch.save({"weight": torch.zeros(1)}, tmp_path / "checkpoint.pth")
    process = spawn(WholeSaving, tmp_path / "checkpoint.pth")
    process.join(60)
    assert process.exitcode == 1 and "No space left" in capfd.readouterr().err
    assert torch.load(tmp_path / "checkpoint.pth", weights_only=True)["weight"].tolist() == [0]
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pth"]


def test_a_process_of_several_ends_with_the_one_that_started_it(tmp_path):
    path = tmp_path / "pid"
    parent = multiprocessing.get_context("fork").Process(target=lambda: spawn(WholeSleeping, path).join())
    parent.start()
    pid = int(wait_for(lambda: path.exists() and path.read_text()))
    os.kill(parent.pid, signal.SIGKILL)
    parent.join()
    wait_for(lambda: not is_running(pid))


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return stream.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition):
    for _ in range(600):
        if result := condition():
            return result
        time.sleep(0.05)
    pytest.fail("waited for 30 s")
