"""What holds for every search, whatever the scorers say: ties, impossible tokens, vocabularies of two."""

import math
import random

from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import frames, step

from espnet_ext.search import BlockwiseBeamSearch, IncrementalBlockwiseBeamSearch, StandardBeamSearch

SEARCHES = {
    "bwbs": lambda *args, **kw: BlockwiseBeamSearch(*args, incremental=False, **kw),
    "bwbs_incremental": lambda *args, **kw: BlockwiseBeamSearch(*args, incremental=True, **kw),
    "ibwbs": IncrementalBlockwiseBeamSearch,
    "ibwbs as printed": lambda *args, **kw: IncrementalBlockwiseBeamSearch(*args, reliability=False, **kw),
    "ibwbs without repetition": lambda *args, **kw: IncrementalBlockwiseBeamSearch(*args, repetition=False, **kw),
    "ibwbs with prefixes": lambda *args, **kw: IncrementalBlockwiseBeamSearch(*args, seen="prefix", **kw),
    "standard": StandardBeamSearch,
}


def scores_of(seed: int, vocab_size: int, kind: str):
    """A model made of a seed: the same prefix over the same frames always scores the same."""

    def script(prefix, count):
        rng = random.Random(f"{seed} {prefix} {count // 16}")
        if kind == "ties":
            return dict.fromkeys(range(vocab_size), -1.0)
        scores = {token: math.log(rng.random() + 1e-9) for token in range(vocab_size)}
        if kind == "impossible":
            scores = {token: score for token, score in scores.items() if rng.random() < 0.4}
        return scores

    return script


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(sorted(SEARCHES)),
    seed=st.integers(0, 10**6),
    vocab_size=st.sampled_from([2, 3, 10]),
    beam_size=st.integers(1, 6),
    kind=st.sampled_from(["plain", "ties", "impossible"]),
    growth=st.lists(st.integers(0, 12), min_size=1, max_size=6),
    held=st.integers(0, 4),
)
def test_the_committed_prefix_only_grows_and_holds_no_end_symbol(name, seed, vocab_size, beam_size, kind, growth, held):
    eos = vocab_size - 1
    expander = step(scores_of(seed, vocab_size, kind), beam_size, vocab_size)
    search = SEARCHES[name](expander, eos, beam_size)
    count, committed = 1, ()
    for number, more in enumerate(growth, start=1):
        count += more
        final = number == len(growth)
        found = search.advance(frames(count), final)
        if found is None:
            continue
        assert found.tokens[: len(committed)] == committed
        assert eos not in found.tokens
        assert len(found.tokens) <= len(committed) + max(8, count)
        if name != "bwbs" or final:
            stable = len(found.tokens) if final else max(len(committed), len(found.tokens) - held)
            search.commit(found, stable)
            committed = search.committed.tokens
            assert committed == found.tokens[:stable]
            assert math.isfinite(search.committed.score)
