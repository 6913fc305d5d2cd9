"""Trained models behind one interface: what a session needs of them, whatever family they come from."""

import contextlib
import io

# At its import this module prints a line about the optional flash_attn to stderr.
with contextlib.redirect_stderr(io.StringIO()):
    import espnet2.legacy.nets.pytorch_backend.transformer.attention  # noqa: F401

from espnet_ext.model.espnet_st import SpeechTranslationModel, load_model

__all__ = ["SpeechTranslationModel", "load_model"]
