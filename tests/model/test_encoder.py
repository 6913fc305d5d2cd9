"""Case 4: the encoder fed bit by bit equals the one used in training, and ESPnet's own streaming call."""

import pytest
import tiny_model
import torch

from espnet_ext import load_model
from espnet_ext.model.encoder_layers import BlockLayers, EspnetLayers

ENCODERS = {
    "plain": {},
    "after": dict(normalize_before=False),
    "conv1d-linear": dict(positionwise_layer_type="conv1d-linear", positionwise_conv_kernel_size=5),
    "conv1d": dict(positionwise_layer_type="conv1d", positionwise_conv_kernel_size=3),
    "concat_after": dict(concat_after=True),
    "no_context_positions": dict(ctx_pos_enc=False),
    "look_ahead_0": dict(block_size=9, hop_size=4, look_ahead=0),
    "no_past": dict(block_size=6, hop_size=4, look_ahead=2),
    "conv2d6": dict(input_layer="conv2d6"),
    "linear": dict(input_layer="linear"),
}


@pytest.fixture(scope="module", params=[*ENCODERS, "conformer"])
def model(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == "conformer":
        files = tiny_model.write_model(directory, encoder="contextual_block_conformer")
    else:
        files = tiny_model.write_model(directory, encoder_conf=ENCODERS[request.param])
    return load_model(**files)


def trained_forward(model, features):
    """Memory as in training, all at once."""
    with torch.no_grad():
        memory, lengths, _ = model.module.encoder(features[None], torch.tensor([len(features)]))
    assert memory.size(1) == lengths[0]
    return memory[0]


@pytest.mark.parametrize("length", [7, 39, 40, 41, 159, 160, 161, 500])
@pytest.mark.parametrize("step", [1, 4, 16])
def test_streaming_equals_training_forward(tiny, length, step):
    torch.manual_seed(length)
    features = torch.randn(length, 20)
    encoder = tiny.encoder()
    for i in range(0, length, step):
        encoder.push(features[i : i + step])
    torch.testing.assert_close(
        encoder.push(features[:0], final=True), trained_forward(tiny, features), atol=1e-4, rtol=0
    )


@pytest.mark.parametrize("length", [20, 61, 200])
@pytest.mark.parametrize("step", [1, 13, 200])
def test_every_kind_of_encoder(model, length, step):
    torch.manual_seed(length)
    features = torch.randn(length, 20)
    encoder = model.encoder()
    for i in range(0, length, step):
        encoder.push(features[i : i + step])
    torch.testing.assert_close(
        encoder.push(features[:0], final=True), trained_forward(model, features), atol=1e-4, rtol=0
    )


@pytest.mark.parametrize("step", [1, 7, 16, 100])
def test_frames_come_when_espnets_do(tiny, step):
    torch.manual_seed(step)
    features = torch.randn(400, 20)
    encoder, states, theirs = tiny.encoder(), None, torch.zeros(0, 16)
    for i in range(0, 400, step):
        new = features[i : i + step]
        with torch.no_grad():
            released, _, states = tiny.module.encoder(
                new[None], torch.tensor([len(new)]), states, is_final=False, infer_mode=True
            )
        theirs = torch.cat([theirs, released[0]])
        torch.testing.assert_close(encoder.push(new), theirs, atol=1e-5, rtol=0)


def test_plain_transformer_layers_are_ours(tiny, tmp_path):
    assert type(tiny.encoder().layers) is BlockLayers
    other = load_model(**tiny_model.write_model(tmp_path, encoder_conf=dict(concat_after=True)))
    assert type(other.encoder().layers) is EspnetLayers


@pytest.mark.parametrize("length", range(7))
def test_fewer_than_seven_frames_have_no_memory(tiny, length):
    assert len(tiny.encoder().push(torch.randn(length, 20), final=True)) == 0


def test_memory_is_released_a_hop_at_a_time(tiny):
    """Block 8, hop 4, look-ahead 2: six frames first, then four each (case 5)."""
    encoder = tiny.encoder()
    sizes = {len(encoder.push(torch.randn(1, 20))) for _ in range(150)}
    assert sorted(sizes)[:4] == [0, 6, 10, 14]
