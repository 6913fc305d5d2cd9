"""Case 1 and 2: the streaming features equal one call on the whole waveform, however it is cut."""

import numpy as np
import pytest
import torch
from espnet2.asr.frontend.default import DefaultFrontend

from espnet_ext.audio.frontend import StreamingFrontend
from espnet_ext.errors import UserError

SHAPES = [(512, 512, 128), (512, 400, 160), (256, 256, 90), (400, 400, 160)]
CHUNKS = [1, 160, 200, 401, 512, 1024, 4000, 5120, 16000]


def stream(frontend, samples, chunk):
    streaming = StreamingFrontend(frontend, None)
    frames = [streaming.push(samples[i : i + chunk]) for i in range(0, len(samples), chunk)]
    return torch.cat([*frames, streaming.push(samples[:0], final=True)])


@pytest.mark.parametrize(("n_fft", "win", "hop"), SHAPES)
@pytest.mark.parametrize("chunk", CHUNKS)
def test_features_do_not_depend_on_the_chunk(n_fft, win, hop, chunk):
    frontend = DefaultFrontend(n_fft=n_fft, win_length=win, hop_length=hop, n_mels=20)
    samples = torch.from_numpy(np.random.default_rng(0).normal(size=16000).astype(np.float32)) * 0.1
    whole, _ = frontend(samples[None], torch.tensor([len(samples)]))
    streamed = stream(frontend, samples, chunk)
    assert streamed.shape == whole[0].shape
    assert (streamed - whole[0]).abs().max() < 1e-4


@pytest.mark.parametrize("length", [0, 1, 100, 256])
def test_a_waveform_too_short_to_reflect_has_no_frames(length):
    frontend = DefaultFrontend(n_fft=512, win_length=400, hop_length=160, n_mels=20)
    assert len(stream(frontend, torch.zeros(length), 160)) == 0


def test_frames_come_as_soon_as_their_samples_do():
    frontend = DefaultFrontend(n_fft=512, win_length=400, hop_length=160, n_mels=20)
    streaming = StreamingFrontend(frontend, None)
    assert len(streaming.push(torch.zeros(5120))) == (5120 - 256) // 160 + 1


def test_utterance_statistics_are_refused_by_name():
    from espnet2.layers.utterance_mvn import UtteranceMVN

    with pytest.raises(UserError, match="normalize: UtteranceMVN"):
        StreamingFrontend(DefaultFrontend(), UtteranceMVN())
