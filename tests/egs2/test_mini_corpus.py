"""The mini corpus: MuST-C's layout, the same bytes every time, nothing believed that is not whole."""

import json
import re
import shutil
import subprocess
import sys
import wave
from pathlib import Path

import pytest
import yaml

LOCAL = Path(__file__).parents[2] / "egs2/mustc_st_block/local"
sys.path.insert(0, str(LOCAL))
pytest.importorskip("espeakng_loader")

from make_mini_corpus import main  # noqa: E402
from mini_corpus.content import plan  # noqa: E402
from mini_corpus.figures import sentences  # noqa: E402
from mini_corpus.writer import whole_or_absent  # noqa: E402

from espnet_ext.errors import UserError  # noqa: E402

SMALL = ["--hours", "0.01", "--test_talks", "1"]


def make(folder, *options):
    main(["--output_dir", str(folder), *SMALL, *options])
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make(tmp_path_factory.mktemp("corpus") / "mini", "--tgt_lang", "de es", "--nj", "2")


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_same_bytes_with_another_number_of_processes(corpus, tmp_path):
    assert contents(make(tmp_path / "mini", "--tgt_lang", "de es", "--nj", "1")) == contents(corpus)


def test_same_bytes_in_a_fresh_interpreter(corpus, tmp_path):
    command = [sys.executable, str(LOCAL / "make_mini_corpus.py"), "--output_dir", str(tmp_path / "mini"), *SMALL]
    environment = {"PYTHONPATH": str(LOCAL.parents[2]), "PYTHONHASHSEED": "7", "LC_ALL": "C"}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    made, expected = contents(tmp_path / "mini"), contents(corpus)
    names = [name for name in made if name.parts[0] == "en-de"]
    assert names and all(made[name] == expected[name] for name in names)


def test_another_seed_says_something_else(corpus, tmp_path):
    folder = make(tmp_path / "mini", "--seed", "1")
    assert (folder / "en-de/data/dev/txt/dev.de").read_bytes() != (corpus / "en-de/data/dev/txt/dev.de").read_bytes()


@pytest.mark.parametrize("language", ["de", "es"])
@pytest.mark.parametrize("split", ["train", "dev", "tst-COMMON", "tst-HE"])
def test_layout_is_that_of_mustc(corpus, language, split):
    folder = corpus / f"en-{language}/data/{split}"
    text = (folder / f"txt/{split}.yaml").read_text()
    entry = r"- \{duration: \d+\.\d{6}, offset: \d+\.\d{6}, rW: \d+, uW: 0, speaker_id: spk\.(\d+), wav: ted_\1\.wav\}"
    assert all(re.fullmatch(entry, line) for line in text.splitlines())
    rows = yaml.safe_load(text)
    for name in ("en", language):
        lines = (folder / f"txt/{split}.{name}").read_text(encoding="utf-8").split("\n")
        assert len(lines) == len(rows) + 1 and lines[-1] == "" and all(line.strip() for line in lines[:-1])
    end = {}
    for row in rows:
        assert 2 <= row["duration"] <= 15
        assert row["offset"] >= end.get(row["wav"], 0) - 1e-6
        end[row["wav"]] = row["offset"] + row["duration"]
    assert {path.name for path in (folder / "wav").iterdir()} == set(end)
    for name, last in end.items():
        with wave.open(str(folder / "wav" / name)) as stream:
            assert (stream.getframerate(), stream.getnchannels(), stream.getsampwidth()) == (16000, 1, 2)
            assert last <= stream.getnframes() / 16000


def test_languages_share_the_recordings(corpus):
    german, spanish = (corpus / f"en-{language}/data/dev/wav/ted_1001.wav" for language in ("de", "es"))
    assert german.samefile(spanish)


def test_a_second_call_does_nothing(corpus, capsys, caplog):
    caplog.set_level("INFO")
    before = {path: path.stat().st_mtime_ns for path in corpus.rglob("*")}
    make(corpus, "--tgt_lang", "es")
    assert {path: path.stat().st_mtime_ns for path in corpus.rglob("*")} == before
    assert [record.message for record in caplog.records] == [
        f"{corpus}: whole, made with the same settings, nothing to do"
    ]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("fault", ["changed", "cut", "missing", "manifest"])
def test_damage_is_named_and_mended(corpus, tmp_path, caplog, fault):
    folder = shutil.copytree(corpus, tmp_path / "mini")
    path = folder / ("manifest.json" if fault == "manifest" else "en-de/data/dev/wav/ted_1001.wav")
    data = path.read_bytes()
    if fault == "missing":
        path.unlink()
    else:
        path.write_bytes(
            data[: len(data) // 2] + (b"" if fault in ("cut", "manifest") else b"x" + data[len(data) // 2 + 1 :])
        )
    make(folder, "--tgt_lang", "de es")
    assert any(str(path) in record.message and "made anew" in record.message for record in caplog.records)
    assert path.read_bytes() == data


def test_a_language_is_added_to_those_there(corpus, tmp_path):
    folder = shutil.copytree(corpus, tmp_path / "mini")
    make(folder, "--tgt_lang", "fr")
    assert sorted(path.name for path in folder.glob("en-*")) == ["en-de", "en-es", "en-fr"]


def test_a_killed_run_leaves_nothing_believed(tmp_path):
    def killed(folder):
        with whole_or_absent(folder) as temporary:
            (temporary / "half").write_text("")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        killed(tmp_path / "mini")
    assert list(tmp_path.iterdir()) == []
    leftover = tmp_path / ".mini.abc.tmp"
    leftover.mkdir()
    make(tmp_path / "mini")
    assert not leftover.exists() and (tmp_path / "mini/manifest.json").exists()


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    real = tmp_path / "en-de/data/dev/txt/dev.en"
    real.parent.mkdir(parents=True)
    real.write_text("precious\n")
    with pytest.raises(UserError, match="holds no mini corpus"):
        make(tmp_path)
    assert real.read_text() == "precious\n"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--tgt_lang", "it"], "--tgt_lang"),
        (["--tgt_lang", ""], "--tgt_lang"),
        (["--hours", "0"], "--hours"),
        (["--nj", "0"], "--nj"),
        (["--test_talks", "-1"], "--test_talks"),
    ],
)
def test_a_bad_option_is_named(tmp_path, options, named):
    with pytest.raises(UserError, match=named):
        make(tmp_path / "mini", *options)
    assert list(tmp_path.iterdir()) == []


def test_figures_are_written(corpus):
    figures = json.loads((corpus / "figures.json").read_text())
    assert figures["sets"]["dev"]["talks"] == 1
    assert figures["sets"]["dev"]["segments"] == len((corpus / "en-de/data/dev/txt/dev.en").read_text().splitlines())
    assert figures["texts"]["de"]["in_train"] == 0


def test_a_line_is_split_into_sentences():
    line = "In 1998, it cost 3.5 million euros. 20 percent of us asked. (Laughter) How ?"
    assert sentences(line) == ["In 1998, it cost 3.5 million euros.", "20 percent of us asked.", "How ?"]
    assert sentences("(Applause)") == []


@pytest.fixture(scope="module")
def talks():
    return plan(seed=0, hours=2.7, test_talks=12)


def test_the_default_corpus_has_its_size(talks):
    count = {split: sum(talk.split == split for talk in talks) for split in ("train", "dev", "tst-COMMON", "tst-HE")}
    assert count["train"] > 50 and (count["dev"], count["tst-COMMON"], count["tst-HE"]) == (12, 12, 3)
    train = " ".join(piece["de"] for talk in talks if talk.split == "train" for s in talk.sentences for piece in s)
    assert len(set(re.findall(r"[^\W\d]+", train.lower()))) >= 400


def test_test_sets_do_not_change_with_the_hours_of_train(talks):
    fewer = plan(seed=0, hours=0.1, test_talks=12)
    assert [talk for talk in fewer if talk.split != "train"] == [talk for talk in talks if talk.split != "train"]
