"""Does the translation depend on how the audio is cut? It must not: text, delays and the searches' work are compared.

Each utterance is translated with every size of push at one `chunk_ms`. Prints {"utterances", "violations"} as JSON and
exits with 1 when there is a violation.
"""

import json
import logging
from collections.abc import Sequence

from espnet_ext.audio.reader import SAMPLE_RATE
from espnet_ext.bin.model_options import (
    add_input_options,
    add_model_options,
    load_model_from_args,
    named_model,
    select_recordings,
    set_up_logging,
)
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.config import add_options, config_from_args
from espnet_ext.errors import UserError
from espnet_ext.policy.own import load_own
from espnet_ext.progress import progress


def get_parser() -> ArgumentParser:
    """The command's options."""
    parser = ArgumentParser(prog="check_chunk_invariance", description=__doc__)
    add_model_options(parser)
    add_input_options(parser)
    parser.add_argument("--cuts_ms", default="16,64,320,1000,all", help="sizes of push in ms; all = at once")
    add_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Compare. Raises UserError for bad input."""
    args = get_parser().parse_args(argv)
    set_up_logging()
    cuts = [_samples(cut) for cut in args.cuts_ms.split(",")]
    config = config_from_args(args)
    policy = load_own(config.policy)
    recordings = select_recordings(args.wav_scp, args.segments, args.key_file)
    from espnet_ext.session import SimulSession

    with named_model(args):
        session = SimulSession(load_model_from_args(args), config, policy)
    violations = 0
    for recording in progress(recordings, len(recordings), "comparing"):
        audio = recording.read()
        outcomes = set()
        for cut in cuts:
            session.reset(recording.key)
            for begin in range(0, len(audio), cut or max(1, len(audio))):
                session.push(audio[begin : begin + cut] if cut else audio)
            session.finish()
            work = tuple((step.audio_ms, step.forwards, step.hypotheses) for step in session.steps)
            score = 0.0 if session.search.committed is None else session.search.committed.score
            outcomes.add((session.text, tuple(session.delays), work, round(score, 3)))
        if len(outcomes) > 1:
            violations += 1
            logging.warning("%s: %d different outcomes", recording.key, len(outcomes))
    print(json.dumps({"utterances": len(recordings), "violations": violations}))
    return 1 if violations else 0


def _samples(cut: str) -> int | None:
    if cut == "all":
        return None
    try:
        samples = round(float(cut) * SAMPLE_RATE / 1000)
    except ValueError:
        samples = 0
    if samples < 1:
        raise UserError(f"cuts_ms: expected ms or 'all', got {cut!r}")
    return samples


if __name__ == "__main__":
    run(main)
