import pytest
from hypothesis import given
from hypothesis import strategies as st
from omnisteval.data import Instance
from omnisteval.scoring import evaluate_instances

from espnet_ext.evaluation.latency import average_token_delay, latency, token_ends

GOLDEN = [  # source length, reference length, delays, AL, LAAL, AP, DAL, YAAL
    (2000, 2, [500, 500], 0, 0, 0.25, 500, 0),
    (2000, 4, [1000, 1500, 2000, 2000], 1000, 1000, 0.8125, 1000, 1000),
    (2000, 2, [2000] * 4, 2000, 2000, 2.0, 2000, None),
    (2000, 2, [500, 1000, 1500, 1800], -300, 450, 1.2, 500, 450),
    (2000, 3, [500, 2000, 2000], 2750 / 3, 2750 / 3, 0.75, 9500 / 9, 500),
    # the first word after the end of the source
    (2000, 2, [2500, 2600], 2500, 2500, 1.275, 2500, None),
]


@pytest.mark.parametrize(("source", "reference", "delays", "al", "laal", "ap", "dal", "yaal"), GOLDEN)
def test_golden_values(source, reference, delays, al, laal, ap, dal, yaal):
    expected = {"AL": al, "LAAL": laal, "AP": ap, "DAL": dal, "YAAL": yaal}
    assert latency(delays, source, reference) == pytest.approx({key: expected[key] for key in expected})


def test_cutting_at_the_source_end_can_invert_computation_awareness():
    delays, elapsed = [100] * 5 + [999] * 5, [100] * 5 + [1001] * 5
    assert latency(delays, 1000, 10)["LAAL"] == pytest.approx(99.5)
    assert latency(elapsed, 1000, 10)["LAAL"] == pytest.approx(1 / 6)


def test_an_empty_hypothesis_has_no_latency():
    assert set(latency([], 2000, 4).values()) == {None}
    assert average_token_delay([], []) is None


def test_a_source_without_length_has_no_latency():
    assert set(latency([0, 0], 0, 4).values()) == {None}


def test_an_empty_reference_leaves_only_what_it_enters_undefined():
    values = latency([500, 1000], 2000, 0)
    assert values["AL"] is None
    assert values["AP"] is None
    assert values["LAAL"] == 250
    assert values["DAL"] == 500
    assert values["YAAL"] == 250


delays_lists = st.lists(st.integers(1, 5000), min_size=1, max_size=12).map(sorted)


@given(delays_lists, st.integers(1, 4000), st.integers(1, 12))
def test_omnisteval_gives_the_same_values_for_a_whole_utterance(delays, source, reference):
    instance = Instance(
        prediction=" ".join("a" * len(delays)),
        reference=" ".join("b" * reference),
        source_length=source,
        emission_cu=delays,
    )
    theirs, _, _ = evaluate_instances([instance], compute_quality=False, is_longform=False)
    for metric, value in latency(delays, source, reference).items():
        assert theirs[metric.lower()] == pytest.approx(float("nan") if value is None else value, nan_ok=True)


@given(delays_lists, st.lists(st.integers(0, 500), min_size=12, max_size=12))
def test_computation_only_adds_to_ap_and_dal(delays, compute):
    elapsed = [delay + late for delay, late in zip(delays, compute, strict=False)]
    plain, aware = latency(delays, 3000, 5), latency(elapsed, 3000, 5)
    assert aware["AP"] >= plain["AP"]
    assert aware["DAL"] >= plain["DAL"] - 1e-6


def test_average_token_delay_pairs_each_unit_with_a_source_token():
    # Source tokens end at 300, 500 | 800, 1000 | 1300, 1500; the three chunks hold 1, 3 and 1 units.
    # Unit 1 -> 300; units 2 to 4 -> 500, 800, 1000; unit 5 -> 1300.
    delays = [500, 1000, 1000, 1000, 1500]
    expected = [500 - 300, 1000 - 500, 1000 - 800, 1000 - 1000, 1500 - 1300]
    assert average_token_delay(delays, delays) == pytest.approx(sum(expected) / 5)


def test_average_token_delay_drops_a_surplus_of_units():
    # Four units after 300 ms of source, all paired with its one token; the fifth then takes the second token.
    assert average_token_delay([300] * 4 + [600], [300] * 4 + [600]) == pytest.approx(0)


def test_average_token_delay_with_computation_uses_the_time_shown():
    assert average_token_delay([300, 600], [450, 900]) == pytest.approx((150 + 300) / 2)


def test_simuleval_clock_adds_computation_unit_by_unit():
    # Computation 1500, 200, 100: SimulEval's elapsed is audio time plus the sum so far, its ATD a queue again.
    assert token_ends([1000, 2000, 3000], [2500, 3700, 4800], "simuleval") == [2500, 2700, 3100]
    assert token_ends([1000, 2000, 3000], [2500, 2700, 3100], "queue") == [2500, 2700, 3100]
