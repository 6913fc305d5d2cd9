"""COMET, a learnt measure of quality. Its package is no dependency of this one: it pins versions of its own."""

from collections.abc import Sequence
from pathlib import Path

from espnet_ext.errors import UserError


def comet(sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], model: str) -> float:
    """COMET score of a test set by a checkpoint file or a model of the Hugging Face hub; on a GPU if there is one.

    Raises UserError when the package is missing or the model cannot be had.
    """
    try:
        from comet import download_model, load_from_checkpoint
    except ImportError as error:
        raise UserError(f"--comet_model needs the package unbabel-comet: pip install unbabel-comet ({error})") from None
    import torch

    try:
        checkpoint = model if Path(model).is_file() else download_model(model)
        scorer = load_from_checkpoint(checkpoint)
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise UserError(f"--comet_model {model}: no such checkpoint, nor a model of the hub: {error}") from None
    rows = zip(sources, hypotheses, references, strict=True)
    data = [{"src": source, "mt": hypothesis, "ref": reference} for source, hypothesis, reference in rows]
    return float(scorer.predict(data, batch_size=8, gpus=int(torch.cuda.is_available())).system_score)
