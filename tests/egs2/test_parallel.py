import os
import signal
import time

import pytest
from parallel import in_parallel

from espnet_ext.errors import UserError


def work(number):
    if number == 13:
        raise UserError("thirteen")
    if number == 99:
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid(), number


def test_every_result_comes_from_as_many_processes_as_asked_for(capsys):
    results = list(in_parallel(work, range(12), 3, "numbers"))
    assert sorted(number for _, number in results) == list(range(12))
    assert 1 <= len({process for process, _ in results} - {os.getpid()}) <= 3
    assert capsys.readouterr().out == ""


def test_more_jobs_than_items_are_capped_with_one_line(capsys):
    assert len(list(in_parallel(work, [1], 32, "talks"))) == 1
    assert capsys.readouterr().out == "1 talks, so 1 jobs instead of 32\n"


def touch_late(path):
    if path.name == "bad":
        raise UserError("bad")
    time.sleep(0.01)
    path.touch()


def test_an_error_ends_the_work_before_the_rest_is_done(tmp_path):
    items = [tmp_path / "bad", *(tmp_path / str(number) for number in range(2000))]
    with pytest.raises(UserError, match="bad"):
        list(in_parallel(touch_late, items, 2, "files"))
    assert len(list(tmp_path.iterdir())) < 2000


def test_a_killed_job_is_an_error_and_no_hang():
    with pytest.raises(UserError, match="a job was killed"):
        list(in_parallel(work, [1, 99, 2, 3], 2, "numbers"))
