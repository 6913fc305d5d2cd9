"""Cases 6, 7 and 9: policies on hand-written token lists and attention."""

import numpy as np
import pytest

from espnet_ext.policy import AlignAtt, All, Context, CtcWait, HoldN, LocalAgreement, WaitK


def stable(policy, tokens, **context):
    return policy.stable_length(Context(tokens, **context))


@pytest.mark.parametrize(("n", "expected"), [(0, 6), (1, 5), (2, 4), (3, 3), (5, 1), (50, 0)])
def test_hold_n_withholds_the_last_n_tokens(n, expected):
    assert stable(HoldN(n), [1, 2, 3, 4, 5, 6]) == expected


def test_all_withholds_nothing():
    assert stable(All(), [1, 2, 3]) == 3


def test_local_agreement_is_the_longest_common_prefix_of_two_searches():
    policy = LocalAgreement(2)
    assert [stable(policy, text) for text in ("abc", "abx", "aby")] == [0, 2, 2]


def test_the_same_candidate_twice_is_stable_as_a_whole():
    policy = LocalAgreement(2)
    assert [stable(policy, text) for text in ("abc", "abc")] == [0, 3]


def test_an_empty_first_hypothesis_commits_nothing():
    policy = LocalAgreement(2)
    assert [stable(policy, text) for text in ("", "ab", "abc")] == [0, 0, 2]


def test_three_searches_must_agree_when_asked_to():
    policy = LocalAgreement(3)
    assert [stable(policy, text) for text in ("abc", "abd", "abd", "abd")] == [0, 0, 2, 3]


def test_reset_forgets_the_history():
    policy = LocalAgreement(2)
    stable(policy, "abc")
    policy.reset()
    assert stable(policy, "abc") == 0


def peaks(*frames, width=10):
    """Attention with a peak at each of these frames, one row a token."""
    matrix = np.full((len(frames), width), 0.01)
    matrix[np.arange(len(frames)), frames] = 0.9
    return lambda: matrix


def align(policy, attention, committed=0):
    new, frames = attention().shape
    return stable(policy, range(committed + new), committed=committed, frames=frames, attention=attention)


def test_align_att_stops_before_the_first_token_that_attends_to_the_last_f_frames():
    assert align(AlignAtt(2, drop_last_frame=False), peaks(1, 3, 9, 4)) == 2


def test_the_first_of_the_last_f_frames_is_one_of_them():
    """0-based, ten frames, f 3: frames 7, 8 and 9 are too new, 6 is not."""
    assert align(AlignAtt(3, drop_last_frame=False), peaks(6)) == 1
    assert align(AlignAtt(3, drop_last_frame=False), peaks(7)) == 0


def test_without_the_last_frame_the_boundary_is_one_earlier():
    assert align(AlignAtt(3), peaks(5)) == 1
    assert align(AlignAtt(3), peaks(6)) == 0


def test_mass_on_the_last_frame_is_not_seen_when_it_is_dropped():
    attention = np.array([[0.1, 0.2, 0.1, 0.1, 0.5]])
    assert align(AlignAtt(2), lambda: attention) == 1
    assert align(AlignAtt(2, drop_last_frame=False), lambda: attention) == 0


@pytest.mark.parametrize("frames", [0, 1])
def test_an_empty_or_one_frame_window_emits_nothing(frames):
    policy = AlignAtt(0)
    assert stable(policy, [1, 2], committed=1, frames=frames, attention=peaks(0, width=1)) == 1


def test_all_mass_on_the_first_frame_is_stable():
    assert align(AlignAtt(4), peaks(0, 0, 0)) == 3


def test_a_jump_backwards_loses_nothing():
    assert align(AlignAtt(2), peaks(5, 1, 6, 2)) == 4


def test_f_of_all_frames_emits_nothing():
    assert align(AlignAtt(10, drop_last_frame=False), peaks(0, 1)) == 0
    assert align(AlignAtt(50), peaks(0, 1)) == 0


def test_only_new_tokens_are_tested():
    assert align(AlignAtt(2, drop_last_frame=False), peaks(3, 9), committed=4) == 5


def test_standardizing_takes_a_sink_away():
    """Frame 0 draws every token a little; over the tokens it is constant, so the peaks are elsewhere."""
    attention = np.full((2, 10), 0.01)
    attention[:, 0] = 0.5
    attention[0, 3], attention[1, 8] = 0.3, 0.3
    assert align(AlignAtt(2, drop_last_frame=False), lambda: attention) == 2
    assert align(AlignAtt(2, drop_last_frame=False, standardize=True), lambda: attention) == 1


@pytest.mark.parametrize(("frames", "expected"), [(0, 0), (24, 0), (32, 1), (47, 2), (800, 6)])
def test_wait_k_counts_source_intervals(frames, expected):
    assert stable(WaitK(3, 8), range(6), frames=frames) == expected


@pytest.mark.parametrize(("found", "expected"), [(0, 0), (2, 0), (5, 3), (20, 6)])
def test_ctc_wait_stays_behind_greedy_ctc(found, expected):
    assert stable(CtcWait(2), range(6), ctc_length=lambda: found) == expected
