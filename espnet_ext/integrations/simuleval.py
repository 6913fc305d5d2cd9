"""A SimulEval agent: `simuleval --agent-class espnet_ext.integrations.simuleval.SimulEvalAgent ...` runs our sessions.

So does `--agent` with the path of this file. It takes the options of `st_inference_simul`, but `--target_language` for
`--tgt_lang`, which is SimulEval's own. With `--source-segment-size` at the session's `chunk_ms` (or a divisor of it)
its instances.log has the texts and delays of ours.
"""

from argparse import ArgumentParser, Namespace

import numpy as np
from simuleval.agents import SpeechToTextAgent
from simuleval.agents.actions import Action, ReadAction, WriteAction
from simuleval.utils import entrypoint

from espnet_ext.audio.reader import SAMPLE_RATE
from espnet_ext.bin.model_options import add_model_options, load_model_from_args, named_model, set_up_logging
from espnet_ext.config import add_options, config_from_args
from espnet_ext.errors import UserError
from espnet_ext.log.units import clean_text
from espnet_ext.policy.own import load_own
from espnet_ext.session import SimulSession


@entrypoint
class SimulEvalAgent(SpeechToTextAgent):
    """One session for utterance after utterance. Every write is of whole words; the last, perhaps empty, finishes."""

    def __init__(self, args: Namespace) -> None:
        set_up_logging()
        own = Namespace(**{key: value for key, value in vars(args).items() if key != "tgt_lang"})
        if args.target_language is not None:
            own.tgt_lang = args.target_language
        config = config_from_args(own)
        policy = load_own(config.policy)
        with named_model(own):
            self.session = SimulSession(load_model_from_args(own), config, policy)
        super().__init__(args)

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        """The options of a model and of a decode."""
        add_model_options(parser)
        add_options(parser, leave_out=("tgt_lang",))
        parser.add_argument("--target_language", help="zh and ja are written by character")

    def reset(self) -> None:
        """Start the next utterance, whatever became of the one before."""
        super().reset()
        self.session.reset()
        self.taken = 0

    def policy(self) -> Action:
        """Give the session what is new and write what it releases. Raises UserError for audio that is not 16 kHz."""
        states = self.states
        new = np.asarray(states.source[self.taken :], dtype=np.float32)
        if len(new) and states.source_sample_rate != SAMPLE_RATE:
            raise UserError(f"source: {states.source_sample_rate} Hz; SimulEval must read mono at {SAMPLE_RATE} Hz")
        self.taken = len(states.source)
        parts = [self.session.push(new).text]
        if states.source_finished:
            parts.append(self.session.finish().text)
        text = clean_text(" ".join(parts), self.session.config.tgt_lang)
        if states.source_finished:
            return WriteAction(text, finished=True)
        return WriteAction(text, finished=False) if text else ReadAction()
