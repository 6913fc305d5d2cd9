"""When a step's output reaches the listener: three clocks over the steps of one utterance, all times in ms.

- `queue`: a step starts when its audio has arrived and the computation before it has ended. What a listener lives
  through, and the default.
- `simuleval`: audio time plus all computation so far, as SimulEval counts.
- `per_chunk`: audio time plus the computation of this step alone, as simulstream counts.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

CLOCKS = ("queue", "simuleval", "per_chunk")


@dataclass(frozen=True)
class Step:
    """One step of a session: audio received when it began (ms), time it took (ms), and the work in it.

    `forwards` counts decoder calls for one step of the whole beam, `hypotheses` the hypotheses in those calls,
    `encoded_frames` the frames that went through the encoder's layers.
    """

    audio_ms: float
    compute_ms: float
    forwards: int
    hypotheses: int = 0
    encoded_frames: int = 0


def finish_times(steps: Sequence[Step], clock: str = "queue") -> list[float]:
    """Time (ms from the start of the source) at which each step's output is ready.

    Raises ValueError for an unknown clock.
    """
    if clock == "queue":
        times: list[float] = []
        free = 0.0
        for step in steps:
            free = max(step.audio_ms, free) + step.compute_ms
            times.append(free)
        return times
    if clock == "simuleval":
        return [s.audio_ms + spent for s, spent in zip(steps, accumulate(s.compute_ms for s in steps), strict=True)]
    if clock == "per_chunk":
        return [step.audio_ms + step.compute_ms for step in steps]
    raise ValueError(f"unknown clock {clock!r}, choose from {', '.join(CLOCKS)}")


def elapsed_times(delays: Sequence[float], steps: Sequence[Step], clock: str = "queue") -> list[float]:
    """`elapsed` (ms) of units with the given `delays` (ms): the finish time of the step that released each.

    That is the last step whose `audio_ms` is the unit's delay: when the source ends exactly at a step, the final search
    is a second step at the same audio time and only then is everything out.
    Raises ValueError when no step has that audio time.
    """
    finished = finish_times(steps, clock)
    audio = [step.audio_ms for step in steps]
    elapsed = []
    for delay in delays:
        last = bisect_right(audio, delay) - 1
        if last < 0 or audio[last] != delay:
            raise ValueError(f"no step at the delay {delay} ms")
        elapsed.append(finished[last])
    return elapsed
