"""What loading a model sets for the process's memory."""

import os

from espnet_ext.memory import PRIMITIVES
from espnet_ext.model import load_model

VARIABLE = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"


def test_loading_limits_onednns_cache_unless_the_user_has(tiny_paths, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    load_model(**tiny_paths)
    assert os.environ[VARIABLE] == str(PRIMITIVES)
    monkeypatch.setenv(VARIABLE, "9")
    load_model(**tiny_paths)
    assert os.environ[VARIABLE] == "9"
