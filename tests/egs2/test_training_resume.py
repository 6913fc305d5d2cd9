import os
import subprocess
import sys
import time

import dump_audio
import filter_length
import pytest
import train_bpe
import yaml
from conftest import RECIPE

pytestmark = pytest.mark.slow

EPOCHS = 3


@pytest.fixture
def recipe(release, prepare, tmp_path):
    """A recipe directory of 24 utterances up to the token lists, with a tiny ASR configuration."""
    for split in release.SPLITS:
        release.write_wav(split, "ted_1.wav", 26.0)
        release.write_split(split, [release.segment(i, 1.0 + i % 3 / 4) for i in range(24)])
    data = prepare()
    for name in ("train.en-de", "dev.en-de"):
        dump_audio.main(["--data", str(data / name), "--output_dir", str(tmp_path / "org" / name)])
        options = ["--dump", str(tmp_path / "org" / name), "--output_dir", str(tmp_path / "dump" / name)]
        filter_length.main([*options, "--tgt_lang", "de"])
    for side, text in (("src", "text.lc.rm.en"), ("tgt", "text.tc.de")):
        options = [
            "--text",
            str(tmp_path / "dump" / "train.en-de" / text),
            "--lang",
            "de",
            "--nbpe",
            "30",
            "--hard_vocab_limit",
            "false",
        ]
        train_bpe.main([*options, "--output_dir", str(tmp_path / "tokens" / side)])
    config = yaml.safe_load((RECIPE / "conf" / "mini" / "train_asr_block.yaml").read_text(encoding="utf-8"))
    config |= {"max_epoch": EPOCHS, "keep_nbest_models": EPOCHS, "batch_bins": 40000}
    config["encoder_conf"] |= {"output_size": 8, "linear_units": 8, "num_blocks": 1}
    (tmp_path / "asr.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return tmp_path


def start(recipe, program, *options):
    common = ["--task", "asr", "--tgt_lang", "de", "--train_dir", "dump/train.en-de", "--dev_dir", "dump/dev.en-de"]
    command = [sys.executable, RECIPE / "local" / program, *common, "--token_dir", "tokens", *options]
    environment = os.environ | {"PYTHONPATH": str(RECIPE.parents[1])}
    return subprocess.Popen(command, cwd=recipe, env=environment, stdout=subprocess.PIPE, text=True)


def train(recipe):
    return start(recipe, "train_models.py", "--stats_dir", "stats", "--model", "asr.yaml", "exp/asr", "--nj", "1")


def test_a_training_that_was_killed_goes_on_and_then_is_done(recipe):
    stats = start(recipe, "collect_stats.py", "--config", "asr.yaml", "--output_dir", "stats", "--nj", "2")
    assert stats.wait() == 0
    shapes = (recipe / "stats" / "train" / "speech_shape").read_text(encoding="utf-8").split("\n")
    assert len(shapes) == 24 + 1

    killed = train(recipe)
    while not (recipe / "exp" / "asr" / "latest.pth").exists():
        assert killed.poll() is None
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    time.sleep(1)
    before = (recipe / "exp" / "asr" / "log" / "train.log").stat().st_mtime
    time.sleep(2)
    assert (recipe / "exp" / "asr" / "log" / "train.log").stat().st_mtime == before, "an orphan goes on training"

    output, _ = (resumed := train(recipe)).communicate()
    assert resumed.returncode == 0
    assert "goes on after epoch" in output or "starts anew" in output
    assert f"epoch {EPOCHS}/{EPOCHS}" in output
    assert sorted(path.name for path in (recipe / "exp" / "asr").glob("[0-9]*epoch.pth")) == [
        f"{epoch}epoch.pth" for epoch in range(1, EPOCHS + 1)
    ]
    output, _ = train(recipe).communicate()
    assert output.strip() == "done already: exp/asr"
