"""Algorithm 2: each hypothesis stops alone, the best by score per token is the candidate."""

import pytest
from scripted import EOS, frames, step

from espnet_ext.search import IncrementalBlockwiseBeamSearch


def search(script, beam_size=2, **options):
    return IncrementalBlockwiseBeamSearch(step(script, beam_size), EOS, beam_size, **options)


def test_one_hypothesis_end_does_not_stop_the_others():
    """`1 eos` ends at once; `2 3 4 eos` goes on and is better per token."""
    table = {(): {1: -1.0, 2: -1.1}, (1,): {EOS: -3.0}, (2,): {3: -0.1}, (2, 3): {4: -0.1}, (2, 3, 4): {EOS: -0.1}}
    found = search(lambda prefix, _: table[prefix], reliability=False).advance(frames(20), final=False)
    assert found.tokens == (2, 3, 4)


def test_the_last_token_of_a_stopped_hypothesis_goes():
    table = {(): {1: -0.1}, (1,): {2: -0.1}, (1, 2): {1: -0.1}}
    found = search(lambda prefix, _: table[prefix]).advance(frames(20), final=False)
    assert found.tokens == (1, 2)


def test_a_sequence_stopped_for_repetition_may_pass_the_second_time():
    table = {(): {1: -0.1}, (1,): {2: -0.1}, (1, 2): {1: -0.1}, (1, 2, 1): {3: -0.1}, (1, 2, 1, 3): {EOS: -0.1}}
    searching = search(lambda prefix, _: table[prefix])
    assert searching.advance(frames(20), final=False).tokens == (1, 2)
    assert searching.advance(frames(28), final=False).tokens == (1, 2, 1, 3)


def test_with_seen_off_it_may_not():
    table = {(): {1: -0.1}, (1,): {2: -0.1}, (1, 2): {1: -0.1}}
    searching = search(lambda prefix, _: table[prefix], seen="off")
    for count in (20, 28):
        assert searching.advance(frames(count), final=False).tokens == (1, 2)


def test_reset_forgets_what_was_seen():
    table = {(): {1: -0.1}, (1,): {2: -0.1}, (1, 2): {1: -0.1}}
    searching = search(lambda prefix, _: table[prefix])
    searching.advance(frames(20), final=False)
    searching.reset()
    assert searching.advance(frames(20), final=False).tokens == (1, 2)


def test_a_score_not_above_the_best_stopped_one_stops_a_hypothesis():
    """After `1 eos` at -0.5, the hypothesis `2` at -0.6 is given up: it cannot become better."""
    table = {(): {1: -0.1, 2: -0.2}, (1,): {EOS: -0.4}, (2,): {3: -0.4}}
    found = search(lambda prefix, _: table[prefix]).advance(frames(20), final=False)
    assert found.tokens == (1,)


def test_the_final_search_tests_neither_repetition_nor_reliability():
    table = {(): {1: -0.1}, (1,): {1: -0.1}, (1, 1): {2: -0.1}, (1, 1, 2): {EOS: -0.1}}
    assert search(lambda prefix, _: table[prefix]).advance(frames(20), final=True).tokens == (1, 1, 2)


def test_markers_do_not_count_as_repetition():
    table = {(): {0: -0.1}, (0,): {1: -0.1}, (0, 1): {0: -0.1}, (0, 1, 0): {2: -0.1}, (0, 1, 0, 2): {EOS: -0.1}}
    found = search(lambda prefix, _: table[prefix], markers={0}).advance(frames(20), final=False)
    assert found.tokens == (0, 1, 0, 2)


def test_the_cap_ends_every_hypothesis():
    """20 frames at a ratio of 0.5 allow ten tokens, of which the last is replaced by eos and goes."""
    found = search(lambda prefix, _: {len(prefix) % 8: -0.1}, maxlenratio=0.5, repetition=False).advance(
        frames(20), final=False
    )
    assert len(found.tokens) == 9


def test_a_short_input_allows_eight_tokens():
    found = search(lambda prefix, _: {len(prefix) % 9: -0.1}, repetition=False).advance(frames(2), final=False)
    assert len(found.tokens) == 7


def test_no_possible_continuation_is_no_candidate():
    assert search(lambda prefix, _: {}).advance(frames(20), final=False) is None


@pytest.mark.parametrize(
    ("norm", "bonus", "best"), [(True, 0.0, (2, 3, 4)), (False, 0.0, (1,)), (False, 1.0, (2, 3, 4))]
)
def test_length_normalisation_and_bonus_decide_between_lengths(norm, bonus, best):
    table = {(): {1: -1.0, 2: -1.0}, (1,): {EOS: -0.1}, (2,): {3: -0.3}, (2, 3): {4: -0.3}, (2, 3, 4): {EOS: -0.3}}
    expander = step(lambda p, _: table[p], length_bonus=bonus)
    found = IncrementalBlockwiseBeamSearch(expander, EOS, 2, reliability=False, length_norm=norm)
    assert found.advance(frames(20), final=False).tokens == best


def test_a_candidate_is_cut_before_a_phrase_comes_once_too_often():
    """The same three tokens for ever: three copies, then nothing more, in this search and the next ones (case 8)."""
    searching = search(lambda prefix, _: {len(prefix) % 3 + 1: -0.1}, repetition=False)
    for count in (20, 40, 60):
        found = searching.advance(frames(count), final=False)
        assert found.tokens == (1, 2, 3) * 3
        searching.commit(found, len(found.tokens))
    assert searching.cut_repeats


def test_the_prefix_committed_keeps_the_score_it_had_at_that_length():
    table = {(): {1: -0.1}, (1,): {2: -0.2}, (1, 2): {3: -0.4}, (1, 2, 3): {EOS: -0.8}}
    searching = search(lambda prefix, _: table[prefix])
    searching.commit(searching.advance(frames(20), final=False), 2)
    assert searching.committed.tokens == (1, 2)
    assert searching.committed.score == pytest.approx(-0.3)
