"""What the server counts, in Prometheus' text format."""

from bisect import bisect_left

LAG_BUCKETS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """Counters since the start, and the lags of what was sent: seconds from the arrival of the audio to the update."""

    def __init__(self) -> None:
        self.sessions = 0
        self.refused = 0
        self.failed = 0
        self.audio_s = 0.0
        self.words = 0
        self.lag_counts = [0] * (len(LAG_BUCKETS_S) + 1)
        self.lag_sum = 0.0

    def observe_lag(self, seconds: float) -> None:
        """Count an update by its lag."""
        self.lag_counts[bisect_left(LAG_BUCKETS_S, seconds)] += 1
        self.lag_sum += seconds

    def text(self, open_sessions: int, max_sessions: int) -> str:
        """The exposition, with the sessions of the moment."""
        lines = [
            *_metric("gauge", "sessions_open", "sessions of the moment", open_sessions),
            *_metric("gauge", "sessions_max", "sessions that there may be", max_sessions),
            *_metric("counter", "sessions_total", "sessions opened", self.sessions),
            *_metric("counter", "refused_total", "clients that were refused or sent what cannot be", self.refused),
            *_metric("counter", "failed_total", "sessions ended by a fault of the server", self.failed),
            *_metric("counter", "audio_seconds_total", "audio received", self.audio_s),
            *_metric("counter", "words_total", "words (characters for zh and ja) released", self.words),
            "# HELP espnet_simul_lag_seconds from the arrival of audio to the update that it gave",
            "# TYPE espnet_simul_lag_seconds histogram",
        ]
        below = 0
        for bound, count in zip([*map(str, LAG_BUCKETS_S), "+Inf"], self.lag_counts, strict=True):
            below += count
            lines.append(f'espnet_simul_lag_seconds_bucket{{le="{bound}"}} {below}')
        lines += [f"espnet_simul_lag_seconds_sum {self.lag_sum}", f"espnet_simul_lag_seconds_count {below}"]
        return "\n".join(lines) + "\n"


def _metric(kind: str, name: str, help: str, value: float) -> list[str]:
    name = f"espnet_simul_{name}"
    return [f"# HELP {name} {help}", f"# TYPE {name} {kind}", f"{name} {value}"]
