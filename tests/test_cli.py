"""What all commands share: ctrl-C and readers that go away."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from espnet_ext.cli import UntilInterrupted

ROOT = Path(__file__).parents[1]


def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_lets_the_work_on_an_item_end_and_the_second_one_does_not():
    done, items = [], UntilInterrupted(iter(range(5)))
    with pytest.raises(KeyboardInterrupt):
        for item in items:
            ctrl_c()
            done.append(item)
            ctrl_c()
    assert done == [0] and items.interrupted


def test_ctrl_c_ends_the_wait_for_an_item():
    def never():
        yield 1
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        signal.pause()
        signal.pause()

    before = signal.signal(signal.SIGALRM, lambda *_: ctrl_c())
    items = UntilInterrupted(never())
    try:
        assert list(items) == [1] and items.interrupted
    finally:
        signal.signal(signal.SIGALRM, before)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_ctrl_c_every_item_comes():
    items = UntilInterrupted(iter("abc"))
    assert list(items) == ["a", "b", "c"] and not items.interrupted


def test_a_command_whose_reader_has_gone_is_quiet():
    script = "from espnet_ext.cli import run; run(lambda: [print('x' * 1000) for _ in range(1000)] and 0)"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PYTHONPATH": str(ROOT)}
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait() == 141
