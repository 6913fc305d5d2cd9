"""Finds the pauses of speech, where a sentence can end."""

import numpy as np

from espnet_ext.audio.reader import SAMPLE_RATE

PIECE = SAMPLE_RATE // 10  # samples
QUIET = 0.1  # of the loudest piece of late
FORGETTING = 0.99  # of the loudest, a piece
PAUSE = 5  # quiet pieces
SENTENCE = 5  # loud pieces at least


class Pauses:
    """Half a second of quiet after at least as much speech ends a sentence; what is quiet depends on the speech."""

    def __init__(self) -> None:
        self.piece = np.zeros(0, np.float32)
        self.loudest = 0.0
        self.quiet = 0
        self.heard = 0

    def split(self, samples: np.ndarray) -> list[np.ndarray]:
        """Samples at 16 kHz cut where sentences end, so that all parts but the last end one; parts may be empty."""
        known = len(self.piece)
        stream = np.concatenate([self.piece, samples])
        whole = len(stream) // PIECE * PIECE
        pieces, self.piece = stream[:whole].reshape(-1, PIECE), stream[whole:]
        ends = [(number + 1) * PIECE - known for number, piece in enumerate(pieces) if self._ends(piece)]
        return np.split(samples, ends)

    def _ends(self, piece: np.ndarray) -> bool:
        level = float(np.sqrt(np.mean(piece**2)))
        self.loudest = max(level, FORGETTING * self.loudest)
        if level >= QUIET * self.loudest:
            self.quiet = 0
            self.heard += 1
            return False
        self.quiet += 1
        if self.quiet < PAUSE or self.heard < SENTENCE:
            return False
        self.heard = 0
        return True
