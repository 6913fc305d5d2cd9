"""Audio of at most one length, for models that are trained on windows of it."""

import torch

from espnet_ext.audio.reader import SAMPLE_RATE
from espnet_ext.model.protocol import Frontend


class FixedLength:
    """A front end that leaves out what comes after `seconds` of audio; with `pad`, silence fills what lacks at the end.

    `is_cut` tells whether any sample was left out.
    """

    def __init__(self, frontend: Frontend, seconds: float, pad: bool) -> None:
        self.frontend = frontend
        self.length = round(seconds * SAMPLE_RATE)
        self.pad = pad
        self.reset()

    def reset(self) -> None:
        """Forget the waveform."""
        self.frontend.reset()
        self.room = self.length  # samples
        self.is_cut = False

    def push(self, samples: torch.Tensor, final: bool = False) -> torch.Tensor:
        """As the front end's; its waveform ends with the window, if not before. Audio of no samples is not padded."""
        if final and self.pad and self.room - len(samples) < self.length:
            samples = torch.nn.functional.pad(samples, (0, max(0, self.room - len(samples))))
        taken = samples[: self.room]
        self.is_cut |= len(taken) < len(samples)
        ends = self.room > 0 and (final or len(samples) >= self.room)
        self.room -= len(taken)
        return self.frontend.push(taken, ends)
