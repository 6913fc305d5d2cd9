"""A hand-written MuST-C release, and the recipe's programs on the import path."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

RECIPE = Path(__file__).parents[2] / "egs2" / "mustc_st_block"
sys.path.insert(0, str(RECIPE / "local"))

RATE = 16000


class Release:
    """Writes `en-XX/data` under a directory: one talk a split, two good segments, to be spoiled."""

    SPLITS = ("train", "dev", "tst-COMMON", "tst-HE")

    def __init__(self, root: Path, lang: str = "de") -> None:
        self.root, self.lang = root, lang
        for split in self.SPLITS:
            self.write_wav(split, "ted_1.wav", seconds=4.0)
            self.write_split(split, ["{duration: 1.5, offset: 0.25, wav: ted_1.wav}", self.segment(2.0, 1.5)])

    def data(self, split: str) -> Path:
        return self.root / f"en-{self.lang}" / "data" / split

    @staticmethod
    def segment(offset: object, duration: object, wav: str = "ted_1.wav") -> str:
        return f"{{duration: {duration}, offset: {offset}, rW: 3, uW: 0, speaker_id: spk.1, wav: {wav}}}"

    def write_wav(self, split: str, name: str, seconds: float, rate: int = RATE, channels: int = 1) -> None:
        path = self.data(split) / "wav" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(0).uniform(-0.5, 0.5, (round(seconds * rate), channels))
        soundfile.write(path, noise, rate, subtype="PCM_16")

    def write_split(
        self, split: str, entries: list[str], en: list[str] | None = None, de: list[str] | None = None
    ) -> None:
        txt = self.data(split) / "txt"
        txt.mkdir(parents=True, exist_ok=True)
        en = en or [f"Don't panic, number {i}!" for i in range(len(entries))]
        de = de or [f"Keine Panik, Nummer {i}!" for i in range(len(entries))]
        (txt / f"{split}.yaml").write_text("".join(f"- {entry}\n" for entry in entries), encoding="utf-8")
        (txt / f"{split}.en").write_text("".join(f"{line}\n" for line in en), encoding="utf-8", newline="")
        (txt / f"{split}.{self.lang}").write_text("".join(f"{line}\n" for line in de), encoding="utf-8", newline="")


# An untrained model puts out tokens up to the cap.
GRIDS = {
    "block": "- {search: [offline, ibwbs], maxlenratio: 0.2, models: all}\n",
    "offline": "- {search: [standard, ibwbs], policy: local_agreement, chunk_ms: 1120, maxlenratio: 0.2,"
    " models: all}\n",
    "longform": "- {search: ibwbs, policy: align_att, long_form: [true, false], align_att_layer: 2, max_audio_s: 6.0,"
    " maxlenratio: 0.2, models: all}\n",
}


@pytest.fixture
def small_recipe(tmp_path):
    """A copy of the recipe whose mini job takes a minute or two: a few minutes of speech, one epoch, few systems."""
    root = RECIPE.parents[1]
    for name in ("espnet_ext", "tools", "pyproject.toml"):
        (tmp_path / name).symlink_to(root / name)
    if (root / ".venv").exists():
        (tmp_path / ".venv").symlink_to(root / ".venv")
    recipe = tmp_path / "egs2" / "mustc_st_block"
    ignored = shutil.ignore_patterns("downloads", "data", "dump", "exp", "logs", "__pycache__")
    shutil.copytree(RECIPE, recipe, ignore=ignored)
    program = recipe / "local" / "make_mini_corpus.py"
    text = program.read_text(encoding="utf-8")
    assert "default=3.15" in text and "default=12" in text
    program.write_text(text.replace("default=3.15", "default=0.3").replace("default=12", "default=2"), encoding="utf-8")
    mini = recipe / "conf" / "mini"
    for path in mini.glob("train_*.yaml"):
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        path.write_text(yaml.safe_dump(config | {"max_epoch": 1}), encoding="utf-8")
    for path in mini.glob("recipe*.sh"):
        small = "nbpe_src=100\nnbpe_tgt=100\naverage_last=1\naverage_around_best=\n"
        family = small if "block" in path.name else small.replace("last=1", "last=").replace("best=", "best=1")
        path.write_text((family if "_" in path.name else "") + path.read_text(encoding="utf-8"), encoding="utf-8")
    for family, grid in GRIDS.items():
        (mini / f"grid_{family}.yaml").write_text(grid, encoding="utf-8")
    return recipe


@pytest.fixture
def release(tmp_path):
    return Release(tmp_path / "mustc")


@pytest.fixture
def prepare(release, tmp_path):
    """Runs the preparation; gives the data directory."""
    import prepare_mustc

    def run() -> Path:
        prepare_mustc.main(["--mustc_dir", str(release.root), "--tgt_lang", "de", "--data_dir", str(tmp_path / "data")])
        return tmp_path / "data"

    return run


def dump_for_training(data: Path, root: Path, nbpe: int = 30) -> None:
    """`dump/` and `tokens/` below `root` of prepared train and dev sets."""
    import dump_audio
    import filter_length
    import train_bpe

    for name in ("train.en-de", "dev.en-de"):
        dump_audio.main(["--data", str(data / name), "--output_dir", str(root / "org" / name)])
        options = ["--dump", str(root / "org" / name), "--output_dir", str(root / "dump" / name)]
        filter_length.main([*options, "--tgt_lang", "de"])
    for side, lang, name in (("src", "en", "text.lc.rm.en"), ("tgt", "de", "text.tc.de")):
        options = ["--text", str(root / "dump" / "train.en-de" / name), "--lang", lang]
        options += ["--nbpe", str(nbpe), "--hard_vocab_limit", "false"]
        train_bpe.main([*options, "--output_dir", str(root / "tokens" / side)])


@pytest.fixture
def dumped(release, prepare, tmp_path):
    """A working directory of 24 utterances of noise up to the token lists: `dump/`, `tokens/`."""
    for split in release.SPLITS:
        release.write_wav(split, "ted_1.wav", 26.0)
        release.write_split(split, [release.segment(i, 1.0 + i % 3 / 4) for i in range(24)])
    dump_for_training(prepare(), tmp_path)
    return tmp_path


@pytest.fixture
def start(dumped):
    """Starts one of the recipe's training programs in that directory, its standard output in a pipe."""

    def run(program: str, task: str, *options: str) -> subprocess.Popen:
        data = ["--tgt_lang", "de", "--train_dir", "dump/train.en-de", "--dev_dir", "dump/dev.en-de"]
        command = [sys.executable, RECIPE / "local" / program, "--task", task, *data, "--token_dir", "tokens", *options]
        environment = os.environ | {"PYTHONPATH": str(RECIPE.parents[1])}
        return subprocess.Popen(command, cwd=dumped, env=environment, stdout=subprocess.PIPE, text=True)

    return run
