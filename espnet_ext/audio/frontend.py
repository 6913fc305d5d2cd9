"""The streaming log-mel front end: frame for frame what the model saw in training, however the samples arrive."""

from abc import ABC, abstractmethod

import torch
from espnet2.asr.frontend.default import DefaultFrontend
from espnet2.layers.global_mvn import GlobalMVN

from espnet_ext.errors import UserError


class FramedFrontend(ABC):
    """Features of the frames of a growing waveform, as `torch.stft` makes frames of the whole of it.

    Centred frame `t` covers samples `[t * hop - n_fft / 2, t * hop + n_fft / 2)`; it is released as soon as its last
    sample has arrived. The reflected edges of `torch.stft` are made once at the start and once at the end.
    """

    def __init__(self, n_fft: int, hop: int, center: bool = True) -> None:
        self.n_fft = n_fft
        self.hop = hop
        self.pad = n_fft // 2 if center else 0
        self.reset()

    def reset(self) -> None:
        """Forget the waveform; the next sample is the first."""
        self.buffer = torch.zeros(0)  # samples from the first one the next frame needs, left reflection included
        self.started = self.pad == 0

    @torch.inference_mode()
    def push(self, samples: torch.Tensor, final: bool = False) -> torch.Tensor:
        """Take samples `(N,)` float32 and return the feature frames `(T, D)` that are now complete.

        `final` ends the waveform: the last frames see its reflected end. A waveform of `n_fft / 2` samples or fewer
        cannot be reflected and has no frames.
        """
        self.buffer = torch.cat([self.buffer, samples])
        if not self.started and len(self.buffer) > self.pad:
            self.buffer = torch.cat([self.buffer[1 : self.pad + 1].flip(0), self.buffer])
            self.started = True
        if not self.started:
            return self._no_frames()
        buffer = self.buffer
        if final and self.pad:
            buffer = torch.cat([buffer, buffer[-self.pad - 1 : -1].flip(0)])
        count = (len(buffer) - self.n_fft) // self.hop + 1
        if count < 1:
            return self._no_frames()
        self.buffer = buffer[count * self.hop :]
        return self._features(buffer[: (count - 1) * self.hop + self.n_fft])

    @abstractmethod
    def _features(self, samples: torch.Tensor) -> torch.Tensor:
        """Features `(T, D)` of all whole frames of `samples`, none of them padded."""

    @abstractmethod
    def _no_frames(self) -> torch.Tensor:
        """No features `(0, D)`."""


class StreamingFrontend(FramedFrontend):
    """Log-mel features of a growing waveform, equal to one call of ESPnet's `DefaultFrontend` on the whole of it."""

    def __init__(self, frontend: DefaultFrontend, normalize: torch.nn.Module | None) -> None:
        check_frontend(frontend, normalize)
        self.stft = frontend.stft
        self.logmel = frontend.logmel
        self.normalize = normalize
        window = self.stft.window and getattr(torch, f"{self.stft.window}_window")
        self.window = window(self.stft.win_length) if window else None
        super().__init__(self.stft.n_fft, self.stft.hop_length, self.stft.center)

    def _features(self, samples: torch.Tensor) -> torch.Tensor:
        device = self.logmel.melmat.device
        spectrum = torch.stft(
            samples.to(device),
            n_fft=self.stft.n_fft,
            win_length=self.stft.win_length,
            hop_length=self.stft.hop_length,
            center=False,
            window=None if self.window is None else self.window.to(device),
            normalized=self.stft.normalized,
            onesided=self.stft.onesided,
            return_complex=True,
        )
        power = (spectrum.real**2 + spectrum.imag**2).T.unsqueeze(0)
        features = self.logmel(power)[0][0]
        if self.normalize is not None:  # in place; the module itself would make a mask of no padding first
            if self.normalize.norm_means:
                features -= self.normalize.mean
            if self.normalize.norm_vars:
                features /= self.normalize.std
        return features

    def _no_frames(self) -> torch.Tensor:
        return torch.zeros(0, self.logmel.melmat.size(1), device=self.logmel.melmat.device)


def check_frontend(frontend: torch.nn.Module, normalize: torch.nn.Module | None) -> None:
    """Raise UserError, naming the config key, when features of this kind cannot be computed from a stream."""
    enhancement = getattr(frontend, "frontend", None)
    enhanced = enhancement is not None and (enhancement.use_wpe or enhancement.use_beamformer)
    if not isinstance(frontend, DefaultFrontend) or frontend.stft is None or enhanced:
        raise UserError(f"frontend: {type(frontend).__name__} cannot run on a stream; train with 'frontend: default'")
    if normalize is not None and not isinstance(normalize, GlobalMVN):
        raise UserError(
            f"normalize: {type(normalize).__name__} needs the whole utterance; train with 'normalize: global_mvn'"
        )
