"""Trained models behind one interface: what a session needs of them, whatever family they come from."""

import espnet_ext.quiet_import  # noqa: F401 - before ESPnet
from espnet_ext.model.espnet_st import SpeechTranslationModel, load_model

__all__ = ["SpeechTranslationModel", "load_model"]
