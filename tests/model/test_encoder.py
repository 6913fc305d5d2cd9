"""Case 4: the encoder fed bit by bit equals the one used in training."""

import pytest
import torch

from espnet_ext.model.encoder import BlockEncoder


@pytest.mark.parametrize("length", [7, 39, 40, 41, 159, 160, 161, 500])
@pytest.mark.parametrize("step", [1, 4, 16])
def test_streaming_equals_training_forward(tiny, length, step):
    torch.manual_seed(length)
    features = torch.randn(length, 20)
    with torch.no_grad():
        trained, lengths, _ = tiny.module.encoder(features[None], torch.tensor([length]))
    encoder = BlockEncoder(tiny.module.encoder)
    for i in range(0, length, step):
        encoder.push(features[i : i + step])
    memory = encoder.push(features[:0], final=True)
    assert len(memory) == lengths[0]
    assert (memory - trained[0]).abs().max() < 1e-4


@pytest.mark.parametrize("length", range(7))
def test_fewer_than_seven_frames_have_no_memory(tiny, length):
    assert len(BlockEncoder(tiny.module.encoder).push(torch.randn(length, 20), final=True)) == 0


def test_memory_is_released_a_hop_at_a_time(tiny):
    """Block 8, hop 4, look-ahead 2: six frames first, then four each (case 5)."""
    encoder = tiny.encoder()
    sizes = {len(encoder.push(torch.randn(1, 20))) for _ in range(150)}
    assert sorted(sizes)[:4] == [0, 6, 10, 14]
