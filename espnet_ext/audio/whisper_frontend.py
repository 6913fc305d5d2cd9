"""Whisper's log-mel features on a stream."""

import torch
from transformers import WhisperFeatureExtractor

from espnet_ext.audio.frontend import FramedFrontend

LOWEST = -10.0  # the log-mel feature of silence


class WhisperFrontend(FramedFrontend):
    """Log-mel features of a growing waveform before Whisper's scaling, which needs the loudest frame of a window.

    With `scale`, those of a whole waveform equal `WhisperFeatureExtractor`'s without padding. `mel_filters` are its
    filters `(bins, D)`, on the model's device.
    """

    def __init__(self, extractor: WhisperFeatureExtractor, mel_filters: torch.Tensor) -> None:
        self.mel_filters = mel_filters
        self.window = torch.hann_window(extractor.n_fft, device=mel_filters.device)
        super().__init__(extractor.n_fft, extractor.hop_length)

    def push(self, samples: torch.Tensor, final: bool = False) -> torch.Tensor:
        """As the base's, without the last frame of the waveform: Whisper leaves it out."""
        features = super().push(samples, final)
        return features[:-1] if final else features

    @torch.inference_mode()
    def _features(self, samples: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(
            samples.to(self.window.device),
            n_fft=self.n_fft,
            hop_length=self.hop,
            center=False,
            window=self.window,
            return_complex=True,
        )
        return (spectrum.abs().square().T @ self.mel_filters).clamp(min=10.0**LOWEST).log10()

    def _no_frames(self) -> torch.Tensor:
        return self.mel_filters.new_zeros(0, self.mel_filters.size(1))


def scale(features: torch.Tensor) -> torch.Tensor:
    """Whisper's scaling of log-mel features `(T, D)`: nothing lies more than 8 below the loudest."""
    return (torch.maximum(features, features.max() - 8.0) + 4.0) / 4.0
