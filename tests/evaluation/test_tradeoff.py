import pytest

from espnet_ext.evaluation.tradeoff import Point, latency_at, latency_saving, pareto_front, policy_range

CURVE = [Point("a", 1000, 60, 0.1), Point("b", 2000, 80, 0.3), Point("c", 3000, 90, 0.5)]


def test_dominated_points_leave_the_front():
    extra = [Point("worse", 2500, 70), Point("slower", 2100, 80), Point("tie", 2000, 75)]
    assert pareto_front(CURVE + extra) == CURVE


def test_the_better_of_two_points_with_one_latency_stays():
    assert [point.name for point in pareto_front([Point("low", 1000, 50), Point("high", 1000, 60)])] == ["high"]


def test_latency_and_words_at_end_are_interpolated():
    crossing = latency_at(CURVE, 85)
    assert crossing.latency == pytest.approx(2500)
    assert crossing.words_at_end == pytest.approx(0.4)
    assert crossing.systems == ("b", "c")


def test_a_point_on_the_target_is_used_itself():
    assert latency_at(CURVE, 80).systems == ("b",)
    assert latency_at(CURVE, 90).latency == 3000


@pytest.mark.parametrize("bleu", [59.9, 90.1])
def test_nothing_is_extrapolated(bleu):
    assert latency_at(CURVE, bleu) is None


def test_no_points_reach_nothing():
    assert latency_at([], 50) is None


def test_saving_in_per_cent():
    slower = [Point("x", 2000, 60, 0.6), Point("y", 4000, 90, 0.9)]
    saving = latency_saving(CURVE, slower, offline_bleu=88, below=3)
    assert saving["bleu"] == 85
    assert saving["system_latency"] == pytest.approx(2500)
    assert saving["baseline_latency"] == pytest.approx(2000 + 2000 * 25 / 30)
    assert saving["saving_percent"] == pytest.approx(100 * (1 - 2500 / (2000 + 2000 * 25 / 30)))
    assert saving["system_words_at_end"] == pytest.approx(0.4)
    assert saving["undefined"] is None


def test_saving_is_undefined_when_a_curve_stays_below():
    saving = latency_saving(CURVE, [Point("x", 2000, 60), Point("y", 4000, 80)], offline_bleu=88, below=3)
    assert saving["saving_percent"] is None
    assert saving["undefined"] == "baseline spans BLEU 60.0 to 80.0 only"
    assert latency_saving(CURVE, [], 88, 3)["undefined"] == "baseline has no points"


def test_a_baseline_that_starts_above_the_target_is_compared_by_measured_systems():
    saving = latency_saving(CURVE, [Point("x", 4000, 87, 0.8), Point("y", 5000, 90)], offline_bleu=88, below=3)
    assert saving["saving_percent"] is None
    assert saving["undefined"] == "baseline spans BLEU 87.0 to 90.0 only"
    measured = saving["measured"]
    assert (measured["system"], measured["baseline"]) == ("c", "x")
    assert measured["saving_percent"] == pytest.approx(25)
    assert measured["baseline_words_at_end"] == 0.8
    assert latency_saving(CURVE, [], 88, 3)["measured"] is None


def test_policy_range():
    values = policy_range(CURVE, offline_bleu=91)
    assert values["ratio"] == 3
    assert values["below_offline"] == 1
    assert policy_range([Point("a", -10, 50), Point("b", 100, 60)], 61)["ratio"] is None
    assert set(policy_range([], 61).values()) == {None}
