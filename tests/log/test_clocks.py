import pytest

from espnet_ext.log.clocks import Step, elapsed_times, finish_times

STEPS = [Step(1000, 1500, 1), Step(2000, 200, 1), Step(3000, 100, 1)]


@pytest.mark.parametrize(
    ("clock", "expected"),
    [("queue", [2500, 2700, 3100]), ("simuleval", [2500, 3700, 4800]), ("per_chunk", [2500, 2200, 3100])],
)
def test_golden_finish_times(clock, expected):
    assert finish_times(STEPS, clock) == expected


def test_a_unit_is_ready_when_its_step_is():
    assert elapsed_times([1000, 1000, 3000], STEPS) == [2500, 2500, 3100]


def test_at_the_source_end_the_final_step_counts():
    steps = [Step(320, 10, 1), Step(640, 20, 1), Step(640, 50, 1)]
    assert elapsed_times([640], steps) == [710]


def test_a_delay_without_a_step_is_an_error():
    with pytest.raises(ValueError, match="no step at the delay 1500"):
        elapsed_times([1500], STEPS)


def test_an_unknown_clock_is_an_error():
    with pytest.raises(ValueError, match="unknown clock 'wall'"):
        finish_times(STEPS, "wall")
