"""Standard beam search: ends when the beam's worth of hypotheses has finished."""

from scripted import EOS, frames, step

from espnet_ext.search import StandardBeamSearch


def search(script, beam_size=2, **options):
    return StandardBeamSearch(step(script, beam_size), EOS, beam_size, **options)


def test_the_best_score_per_token_of_the_finished_wins():
    table = {(): {1: -1.0, 2: -1.1}, (1,): {EOS: -3.0}, (2,): {3: -0.1}, (2, 3): {EOS: -0.1}}
    assert search(lambda prefix, _: table[prefix]).advance(frames(20), final=True).tokens == (2, 3)


def test_the_beam_stays_full_when_a_hypothesis_finishes():
    """`1 eos` finishes; `1 2` and `3 4` both live on, from the four best continuations."""
    table = {
        (): {1: -0.1, 3: -0.2},
        (1,): {EOS: -0.1, 2: -0.3},
        (3,): {4: -0.3},
        (1, 2): {EOS: -0.1},
        (3, 4): {5: -0.01},
        (3, 4, 5): {EOS: -0.01},
    }
    searching = search(lambda prefix, _: table[prefix])
    assert searching.advance(frames(20), final=True).tokens == (1,)
    assert searching.step.decoder_forwards == 3
    assert searching.step.hypothesis_steps == 1 + 2 + 2


def test_espnets_end_detection_waits_for_three_lengths_that_lag_behind():
    """Two have finished at once; its rule goes on until the last three lengths are far worse than the best."""
    scores = {EOS: -0.1, 1: -0.2}
    ended = search(lambda prefix, _: scores if len(prefix) < 3 else {EOS: -20.0, 1: -1.0})
    detected = search(lambda prefix, _: scores if len(prefix) < 3 else {EOS: -20.0, 1: -1.0}, end_detect=True)
    assert ended.advance(frames(40), final=True) is not None
    assert detected.advance(frames(40), final=True) is not None
    assert ended.step.decoder_forwards < detected.step.decoder_forwards < 40


def test_the_cap_finishes_what_lives():
    found = search(lambda prefix, _: {len(prefix) % 9: -0.1}, maxlenratio=0.5).advance(frames(20), final=True)
    assert len(found.tokens) == 9
