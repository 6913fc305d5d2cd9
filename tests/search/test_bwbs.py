"""Algorithm 1: the whole beam stops as soon as one of its hypotheses ends or repeats."""

import pytest
from scripted import EOS, frames, step

from espnet_ext.search import BlockwiseBeamSearch


def search(script, beam_size=2, incremental=True, **options):
    return BlockwiseBeamSearch(step(script, beam_size), EOS, beam_size, incremental=incremental, **options)


def test_the_last_two_tokens_go_when_any_hypothesis_ends():
    """At the fourth step a poor hypothesis takes eos: the accepted third step is rolled back as well."""
    table = {(): {1: -0.1}, (1,): {2: -0.1}, (1, 2): {3: -0.1}, (1, 2, 3): {4: -0.1, EOS: -5.0}}
    assert search(lambda prefix, _: table[prefix]).advance(frames(20), final=False).tokens == (1, 2)


def test_a_repetition_stops_like_an_end():
    table = {(): {1: -0.1}, (1,): {2: -0.1}, (1, 2): {3: -0.1}, (1, 2, 3): {2: -0.1}}
    assert search(lambda prefix, _: table[prefix]).advance(frames(20), final=False).tokens == (1, 2)


def test_without_an_accepted_step_only_the_offending_token_goes():
    table = {(): {1: -0.1}, (1,): {2: -0.1}, (1, 2): {3: -0.1}, (1, 2, 3): {EOS: -0.1}}
    searching = search(lambda prefix, count: table[prefix] if count < 24 else {EOS: -0.1})
    found = searching.advance(frames(20), final=False)
    searching.commit(found, len(found.tokens))
    assert searching.advance(frames(24), final=False).tokens == found.tokens


def test_re_translation_keeps_its_beam_and_may_change_its_mind():
    def script(prefix, count):
        if prefix == ():
            return {1: -0.1, 2: -0.2}
        if len(prefix) == 1:
            return {3: -0.1} if count < 25 or prefix == (2,) else {3: -9.0}
        return {4: -0.1} if len(prefix) == 2 else {EOS: -0.1}

    searching = search(script, incremental=False)
    assert searching.advance(frames(20), final=False).tokens[:1] == (1,)
    assert searching.committed_length == 0


def test_the_running_beam_stays_at_the_cap_of_a_block():
    searching = search(lambda prefix, _: {len(prefix) % 9: -0.1}, repetition=False, maxlenratio=0.5)
    assert len(searching.advance(frames(20), final=False).tokens) == 10


def test_the_final_search_ignores_repetition_and_takes_the_best_raw_score():
    table = {(): {1: -0.1, 2: -0.2}, (1,): {1: -0.1}, (1, 1): {EOS: -0.1}, (2,): {EOS: -3.0}}
    assert search(lambda prefix, _: table[prefix]).advance(frames(20), final=True).tokens == (1, 1)


@pytest.mark.parametrize("final", [True, False])
def test_an_impossible_step_leaves_what_there_was(final):
    searching = search(lambda prefix, _: {1: -0.1} if prefix == () else {})
    found = searching.advance(frames(20), final)
    assert found is None if final else found.tokens == (1,)
