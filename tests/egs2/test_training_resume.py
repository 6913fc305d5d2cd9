import time

import pytest
import yaml
from conftest import RECIPE

pytestmark = pytest.mark.slow

EPOCHS = 3


@pytest.fixture
def train(dumped, start):
    """Starts the training of a tiny ASR model on finished statistics."""
    config = yaml.safe_load((RECIPE / "conf" / "mini" / "train_asr_block.yaml").read_text(encoding="utf-8"))
    config |= {"max_epoch": EPOCHS, "keep_nbest_models": EPOCHS, "batch_bins": 40000}
    config["encoder_conf"] |= {"output_size": 8, "linear_units": 8, "num_blocks": 1}
    (dumped / "asr.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    stats = start("collect_stats.py", "asr", "--config", "asr.yaml", "--output_dir", "stats", "--nj", "2")
    assert stats.wait() == 0
    shapes = (dumped / "stats" / "train" / "speech_shape").read_text(encoding="utf-8").split("\n")
    assert len(shapes) == 24 + 1
    options = ("--stats_dir", "stats", "--model", "asr.yaml", "exp/asr", "--nj", "1")
    return lambda: start("train_models.py", "asr", *options)


def test_a_training_that_was_killed_goes_on_and_then_is_done(train, dumped):
    killed = train()
    while not (dumped / "exp" / "asr" / "latest.pth").exists():
        assert killed.poll() is None
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    time.sleep(1)
    before = (dumped / "exp" / "asr" / "log" / "train.log").stat().st_mtime
    time.sleep(2)
    assert (dumped / "exp" / "asr" / "log" / "train.log").stat().st_mtime == before, "an orphan goes on training"

    output, _ = (resumed := train()).communicate()
    assert resumed.returncode == 0
    assert "goes on after epoch" in output or "starts anew" in output
    assert f"epoch {EPOCHS}/{EPOCHS}" in output
    assert sorted(path.name for path in (dumped / "exp" / "asr").glob("[0-9]*epoch.pth")) == [
        f"{epoch}epoch.pth" for epoch in range(1, EPOCHS + 1)
    ]
    output, _ = train().communicate()
    assert output.strip() == "done already: exp/asr"
