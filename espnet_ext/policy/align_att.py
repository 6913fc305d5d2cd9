"""AlignAtt (StreamAtt paper, section 3.1): a token that attends to the newest audio is not stable yet."""

import numpy as np

from espnet_ext.policy.context import Context


class AlignAtt:
    """Stable are the new tokens before the first whose attention peak lies in the last `f` encoder frames.

    Args:
        f: frames at the end that a stable token may not attend to most.
        drop_last_frame: leave out the last frame and count from the one before, as the authors' code does; False is
            the paper's formula.
        standardize: standardise the attention of each frame over the new tokens before its peaks are taken.
    """

    needs_attention = True

    def __init__(self, f: int, drop_last_frame: bool = True, standardize: bool = False) -> None:
        self.f = f
        self.drop_last_frame = drop_last_frame
        self.standardize = standardize

    def reset(self) -> None:
        """Nothing to forget."""

    def stable_length(self, context: Context) -> int:
        """Number of leading candidate tokens to commit."""
        new = len(context.tokens) - context.committed
        frames = context.frames - self.drop_last_frame
        if new <= 0 or frames < 1:
            return context.committed
        attention = np.delete(context.attention(), np.s_[frames : context.frames], axis=1)  # what follows is late
        if self.standardize and new > 1:
            attention = (attention - attention.mean(axis=0)) / (attention.std(axis=0) + 1e-8)
        late = np.flatnonzero(attention.argmax(axis=1) >= frames - self.f)
        return context.committed + (int(late[0]) if len(late) else new)
