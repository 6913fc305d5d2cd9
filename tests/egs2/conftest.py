"""A hand-written MuST-C release, and the recipe's programs on the import path."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

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


@pytest.fixture
def dumped(release, prepare, tmp_path):
    """A working directory of 24 utterances of noise up to the token lists: `dump/`, `tokens/`."""
    import dump_audio
    import filter_length
    import train_bpe

    for split in release.SPLITS:
        release.write_wav(split, "ted_1.wav", 26.0)
        release.write_split(split, [release.segment(i, 1.0 + i % 3 / 4) for i in range(24)])
    data = prepare()
    for name in ("train.en-de", "dev.en-de"):
        dump_audio.main(["--data", str(data / name), "--output_dir", str(tmp_path / "org" / name)])
        options = ["--dump", str(tmp_path / "org" / name), "--output_dir", str(tmp_path / "dump" / name)]
        filter_length.main([*options, "--tgt_lang", "de"])
    for side, lang, name in (("src", "en", "text.lc.rm.en"), ("tgt", "de", "text.tc.de")):
        text = str(tmp_path / "dump" / "train.en-de" / name)
        options = ["--text", text, "--lang", lang, "--nbpe", "30", "--hard_vocab_limit", "false"]
        train_bpe.main([*options, "--output_dir", str(tmp_path / "tokens" / side)])
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
