"""Trained models behind one protocol: what a session needs of them, whatever family they come from."""

import espnet_ext.quiet_import  # noqa: F401 - before ESPnet
from espnet_ext.model.espnet_st import SpeechTranslationModel
from espnet_ext.model.loading import load_model
from espnet_ext.model.protocol import SpeechModel

__all__ = ["SpeechModel", "SpeechTranslationModel", "load_model"]
