"""Cases 6 and 7: policies on hand-written token lists."""

import pytest

from espnet_ext.policy import All, HoldN, LocalAgreement


@pytest.mark.parametrize(("n", "stable"), [(0, 6), (1, 5), (2, 4), (3, 3), (5, 1), (50, 0)])
def test_hold_n_withholds_the_last_n_tokens(n, stable):
    assert HoldN(n).stable_length([1, 2, 3, 4, 5, 6]) == stable


def test_all_withholds_nothing():
    assert All().stable_length([1, 2, 3]) == 3


def test_local_agreement_is_the_longest_common_prefix_of_two_searches():
    policy = LocalAgreement(2)
    assert [policy.stable_length(text) for text in ("abc", "abx", "aby")] == [0, 2, 2]


def test_the_same_candidate_twice_is_stable_as_a_whole():
    policy = LocalAgreement(2)
    assert [policy.stable_length(text) for text in ("abc", "abc")] == [0, 3]


def test_an_empty_first_hypothesis_commits_nothing():
    policy = LocalAgreement(2)
    assert [policy.stable_length(text) for text in ("", "ab", "abc")] == [0, 0, 2]


def test_three_searches_must_agree_when_asked_to():
    policy = LocalAgreement(3)
    assert [policy.stable_length(text) for text in ("abc", "abd", "abd", "abd")] == [0, 0, 2, 3]


def test_reset_forgets_the_history():
    policy = LocalAgreement(2)
    policy.stable_length("abc")
    policy.reset()
    assert policy.stable_length("abc") == 0
