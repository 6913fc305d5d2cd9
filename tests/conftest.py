import numpy as np
import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_paths(tmp_path_factory):
    from tiny_model import write_model

    return write_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny(tiny_paths):
    from espnet_ext import load_model

    return load_model(**tiny_paths)


@pytest.fixture(scope="session")
def speech():
    """Seconds -> float32 noise with a speech-like envelope, the same every time."""

    def make(seconds: float, seed: int = 0) -> np.ndarray:
        rng = np.random.default_rng(seed)
        count = round(16000 * seconds)
        envelope = 0.1 + np.abs(np.sin(np.arange(count) / 1600 * (1 + seed % 3)))
        return (0.1 * envelope * rng.normal(size=count)).astype(np.float32)

    return make
