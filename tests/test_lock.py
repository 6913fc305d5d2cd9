"""Two runs on one directory: the second is told who holds it, and a dead holder stops nobody."""

import os
import signal
import socket
import time

import pytest

from espnet_ext.errors import UserError
from espnet_ext.files import atomic_write
from espnet_ext.lock import locked


@pytest.fixture
def holder(tmp_path):
    """Another process that holds `exp` and has a file of it half-written; gives its id."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        (tmp_path / "exp").mkdir()
        with locked(tmp_path / "exp"), atomic_write(tmp_path / "exp" / "model.pth") as stream:
            stream.write("half")
            os.write(writing, b"x")
            signal.pause()
    os.read(reading, 1)
    yield child
    try:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except ProcessLookupError:
        pass


def test_the_second_run_is_refused_and_told_who_is_at_work(tmp_path, holder):
    message = rf"exp: another run is at work on it \(process {holder} on {socket.gethostname()}\)"
    with pytest.raises(UserError, match=message), locked(tmp_path / "exp"):
        pass
    assert len(list((tmp_path / "exp").iterdir())) == 1, "the holder's file was touched"


def test_a_killed_holder_stops_nobody_and_its_half_written_files_go(tmp_path, holder):
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    with locked(tmp_path / "exp"):
        assert list((tmp_path / "exp").iterdir()) == []


def test_the_children_of_a_killed_holder_are_waited_for(tmp_path):
    reading, writing = os.pipe()
    holder = os.fork()
    if holder == 0:
        with locked(tmp_path / "exp"):
            if os.fork() == 0:
                os.write(writing, b"x")
                time.sleep(0.5)
                os._exit(0)
            signal.pause()
    os.read(reading, 1)
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    with locked(tmp_path / "exp"):
        pass


def test_it_is_free_after_the_block_and_after_an_error_in_it(tmp_path):
    with pytest.raises(KeyError), locked(tmp_path / "exp"):
        raise KeyError
    with locked(tmp_path / "exp"), pytest.raises(UserError, match=f"process {os.getpid()} "), locked(tmp_path / "exp"):
        pass
    with locked(tmp_path / "exp"):
        pass
