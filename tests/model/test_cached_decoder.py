"""The cached decoder gives the scores of ESPnet's own."""

import pytest
import torch

from espnet_ext.model.cached_decoder import CachedDecoder, DecoderWeights, is_supported


def both(decoder):
    return decoder, CachedDecoder(DecoderWeights(decoder))


def build(**options):
    from espnet2.asr.decoder.transformer_decoder import TransformerDecoder

    torch.manual_seed(0)
    return TransformerDecoder(30, 16, attention_heads=4, linear_units=24, num_blocks=3, **options).eval()


@pytest.mark.parametrize("before", [True, False])
@torch.no_grad()
def test_scores_equal_espnets_over_a_growing_memory_and_a_reordered_beam(before):
    """Prefixes of 1 to 200 tokens, memories of 1 to 2000 frames, beams that shrink and grow."""
    reference, cached = both(build(normalize_before=before))
    memory = torch.randn(2000, 16)
    prefixes = torch.full((5, 1), 29)
    ours, theirs = [None] * 5, [None] * 5
    for position in range(200):
        xs = memory[: 1 + 2000 * position // 199]
        expected, theirs = reference.batch_score(prefixes, theirs, xs.expand(len(prefixes), *xs.shape))
        scores, ours = cached.batch_score(prefixes, ours, xs.expand(len(prefixes), *xs.shape))
        assert (scores - expected).abs().max() < 1e-4
        size = 5 if position % 10 else 2 + position // 60
        chosen = torch.randint(0, len(prefixes), (size,))
        prefixes = torch.cat([prefixes[chosen], torch.randint(2, 29, (size, 1))], dim=1)
        ours, theirs = [ours[i] for i in chosen], [theirs[i] for i in chosen]
        if position % 7 == 0:
            cached.retain(ours)


@torch.no_grad()
def test_sessions_scored_together_score_as_they_do_alone():
    """Different memories, prefixes and beams; one feeds a whole prefix, one asks for attention."""
    decoder = build()
    weights = DecoderWeights(decoder)
    calls, expected = [], []
    for number, (beam, length, frames) in enumerate([(5, 1, 30), (2, 8, 70), (3, 4, 11)]):
        prefixes, xs = torch.randint(2, 29, (beam, length)), torch.randn(1, frames, 16).expand(beam, frames, 16)
        expected.append(decoder.batch_score(prefixes, [None] * beam, xs)[0])
        calls.append((CachedDecoder(weights, attention_heads={number: range(4)}), prefixes, [None] * beam, xs))
    for (scores, states), wanted, call in zip(CachedDecoder.score_together(calls), expected, calls, strict=True):
        assert (scores - wanted).abs().max() < 1e-4
        assert len(states) == len(scores)
        assert call[0].attention.shape == (len(scores), call[3].size(1))


@pytest.mark.parametrize(("precision", "tolerance"), [("bfloat16", 0.05), ("int8", 0.1)])
@torch.no_grad()
def test_lower_precision_comes_close(precision, tolerance):
    decoder = build()
    cached = CachedDecoder(DecoderWeights(decoder, precision))
    prefixes, xs = torch.randint(2, 29, (3, 20)), torch.randn(1, 50, 16).expand(3, 50, 16)
    expected, _ = decoder.batch_score(prefixes, [None] * 3, xs)
    scores, _ = cached.batch_score(prefixes, [None] * 3, xs)
    assert 0 < (scores - expected).abs().max() < tolerance


@pytest.mark.slow
@torch.inference_mode()
def test_a_compiled_decoder_gives_the_same_scores():
    decoder = build()
    plain, compiled = CachedDecoder(DecoderWeights(decoder)), CachedDecoder(DecoderWeights(decoder, compiled=True))
    memory, prefixes, states = torch.randn(20, 16), torch.full((1, 1), 29), ([None], [None])
    for position in range(6):
        xs = memory.expand(len(prefixes), *memory.shape)
        expected, kept = plain.batch_score(prefixes, states[0], xs)
        scores, also_kept = compiled.batch_score(prefixes, states[1], xs)
        assert (scores - expected).abs().max() < 1e-4
        rows = [0, 0, 0] if position == 0 else [2, 0, 1]
        prefixes = torch.cat([prefixes[rows], torch.randint(2, 29, (3, 1))], dim=1)
        states = [kept[row] for row in rows], [also_kept[row] for row in rows]


@torch.no_grad()
def test_a_forced_prefix_scores_as_one_grown_step_by_step():
    reference, cached = both(build())
    prefixes, xs = torch.randint(2, 29, (3, 40)), torch.randn(3, 50, 16)
    xs[:] = xs[0]
    expected, _ = reference.batch_score(prefixes, [None] * 3, xs)
    scores, _ = cached.batch_score(prefixes, [None] * 3, xs)
    assert (scores - expected).abs().max() < 1e-4


@torch.no_grad()
def test_retain_frees_what_no_hypothesis_descends_from():
    cached = CachedDecoder(DecoderWeights(build()))
    xs = torch.randn(1, 30, 16)
    prefix, state = torch.full((1, 1), 29), [None]
    for _ in range(5):
        scores, state = cached.batch_score(prefix.repeat(4, 1), state * 4, xs.expand(4, 30, 16))
        state, prefix = state[:1], torch.cat([prefix, torch.tensor([[5]])], dim=1)
    assert len(cached.slots) == 20
    cached.retain(state)
    assert len(cached.slots) == 5


def test_options_it_does_not_know_are_left_to_espnet():
    assert is_supported(build())
    assert not is_supported(build(concat_after=True))
    assert not is_supported(build(qk_norm=True))


@torch.no_grad()
def test_attention_is_the_layers_mean_over_heads_in_the_step_that_predicts():
    reference = build()
    cached = CachedDecoder(DecoderWeights(reference), attention_heads={1: range(4)})
    prefixes, xs = torch.randint(2, 29, (3, 7)), torch.randn(1, 50, 16).expand(3, 50, 16)
    reference.batch_score(prefixes, [None] * 3, xs)
    expected = reference.decoders[1].src_attn.attn[:, :, -1].mean(dim=1)
    cached.batch_score(prefixes, [None] * 3, xs)
    assert (cached.attention - expected).abs().max() < 1e-5
