"""Can AlignAtt and StreamAtt work with this model? Measures the cross attention of every decoder layer.

Reference translations are forced through the decoder. Prints JSON: for each layer how monotonic its peaks are (their
correlation with the tokens' order) and how sharp (share of the weight near the peak), the layer to use
(`recommended_layer`, null when none will do), and `p_eos`, the probability of the end symbol at the end of an
utterance when the next one follows: in the recording itself where both are segments of one, else after a pause. Writes
the same as attention.json beside the model, where decoding finds the layer.
"""

import argparse
import json
import logging
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import numpy as np
import torch

from espnet_ext.audio.reader import SAMPLE_RATE, Recording
from espnet_ext.bin.model_options import (
    add_input_options,
    add_model_options,
    load_model_from_args,
    named_model,
    select_recordings,
    set_up_logging,
)
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.evaluation.attention import measure, recommend
from espnet_ext.files import atomic_write, read_table
from espnet_ext.lock import locked
from espnet_ext.model import SpeechModel
from espnet_ext.model.packed import ATTENTION_FILE
from espnet_ext.progress import progress

HIGH_P_EOS = 0.5
PAUSE_S = 0.5  # between utterances of different recordings
LONGEST_PAUSE_S = 2.0


def get_parser() -> ArgumentParser:
    """The command's options."""
    parser = ArgumentParser(prog="check_attention", description=__doc__)
    add_model_options(parser)
    add_input_options(parser)
    parser.add_argument("--text", required=True, help="translations of the audio, by id")
    parser.add_argument("--src_lang", default="en", help="language that is spoken, for models of several")
    parser.add_argument("--tgt_lang", default="de", help="language of the translations, for models of several")
    parser.add_argument("--utterances", type=int, default=20, help="use the first so many")
    return parser


@torch.inference_mode()
def memory_of(model: SpeechModel, samples: np.ndarray) -> torch.Tensor:
    """Encoder memory `(T, D)` of a whole utterance."""
    return model.encoder().push(model.frontend().push(torch.from_numpy(samples), final=True), final=True)


@torch.inference_mode()
def force(
    model: SpeechModel, memory: torch.Tensor, start: Sequence[int], tokens: Sequence[int], layer: int
) -> tuple[np.ndarray, float]:
    """A layer's attention `(tokens, T)` when the tokens are forced, and the probability of the end after them."""
    prefix = torch.tensor([*start, *tokens], device=memory.device)
    decoder = model.scorers(["decoder"], model.attention_heads(layer))["decoder"]
    scores, _ = decoder.score_prefix(prefix, memory)
    return decoder.attention[len(start) - 1 : -1].cpu().numpy(), float(scores[-1, model.eos].exp())


def read_both(first: Recording, second: Recording) -> np.ndarray:
    """Samples of two utterances with what lies between them where they follow each other, else with a pause."""
    if first.source == second.source and first.end is not None and 0 <= second.start - first.end <= LONGEST_PAUSE_S:
        return Recording(first.key, first.source, first.start, second.end).read()
    return np.concatenate([first.read(), np.zeros(round(PAUSE_S * SAMPLE_RATE), np.float32), second.read()])


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print and write. Raises UserError for bad input and for a decoder that shows no attention."""
    args = get_parser().parse_args(argv)
    set_up_logging()
    with named_model(args):
        output = Path(args.st_model_file).with_name(ATTENTION_FILE)
        with locked(output):
            check(args, output)


def check(args: argparse.Namespace, output: Path) -> None:
    """Measure with parsed options, inside `named_model`."""
    recordings = select_recordings(args.wav_scp, args.segments, args.key_file)[: args.utterances]
    texts = read_table(args.text)
    for recording in recordings:
        if recording.key not in texts:
            raise UserError(f"{args.text}: no translation of {recording.key!r}")
    model = load_model_from_args(args)
    tokens = [model.vocabulary.tokens(texts[recording.key]) for recording in recordings]
    start = model.start(args.src_lang, args.tgt_lang)
    layer_numbers = range(1, model.decoder_layers + 1)
    utterances = []
    for recording, ids in progress(list(zip(recordings, tokens, strict=True)), len(recordings), "forcing"):
        memory = memory_of(model, recording.read())
        if len(memory) > 1 and ids:
            utterances.append([force(model, memory, start, ids, layer)[0] for layer in layer_numbers])
    if not utterances:
        raise UserError(f"{args.wav_scp}: no utterance that is long enough")
    ends = [
        force(model, memory_of(model, read_both(first, second)), start, ids, layer=1)[1]
        for (first, second), ids in zip(pairwise(recordings), tokens, strict=False)
    ]
    layers = measure(list(zip(*utterances, strict=True)))
    report = {
        "layers": layers,
        "recommended_layer": recommend(layers),
        "p_eos": round(fmean(ends), 3) if ends else None,
        "utterances": len(utterances),
    }
    if report["recommended_layer"] is None:
        logging.warning("no layer's attention follows the audio: AlignAtt and StreamAtt will not work with this model")
    if report["p_eos"] is not None and report["p_eos"] > HIGH_P_EOS:
        logging.warning(
            "the model ends after a sentence (p %.2f) though audio is left: long-form translation will stall; "
            "train on segments of several sentences",
            report["p_eos"],
        )
    with atomic_write(output) as stream:
        json.dump(report, stream, indent=1)
    print(json.dumps(report))


if __name__ == "__main__":
    run(main)
