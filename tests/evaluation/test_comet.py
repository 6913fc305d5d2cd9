"""score_simul --comet_model, with a stand-in for unbabel-comet that scores an agreement of 1 by 0.9."""

import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

from espnet_ext.bin import score_simul
from espnet_ext.errors import UserError
from espnet_ext.log.instances import Instance, InstanceWriter

SOURCES = {"a": "a house", "b": "two houses"}


@pytest.fixture
def comet_package(monkeypatch):
    seen = []

    def predict(data, batch_size, gpus):
        seen.extend(data)
        return SimpleNamespace(system_score=0.9 if all(row["mt"] == row["ref"] for row in data) else 0.1)

    def load(checkpoint):
        if checkpoint == "nowhere":
            raise KeyError(f"Model '{checkpoint}' not supported by COMET.")
        return SimpleNamespace(predict=predict)

    package = ModuleType("comet")
    package.download_model, package.load_from_checkpoint = str, load
    monkeypatch.setitem(sys.modules, "comet", package)
    return seen


@pytest.fixture
def options(tmp_path):
    texts = {"a": "ein Haus", "b": "zwei Häuser"}
    with InstanceWriter(tmp_path / "instances.log") as writer:
        for index, (key, text) in enumerate(texts.items()):
            writer.write(Instance(index, key, text, [1000, 2000], [1000, 2000], ["x.wav"], 2000, []))
    for name, table in (("text.tc.de", texts), ("text.tc.en", SOURCES)):
        lines = "".join(f"{key} {text}\n" for key, text in reversed(table.items()))
        (tmp_path / name).write_text(lines, encoding="utf-8")
    files = {"instances": "instances.log", "ref": "text.tc.de", "output_dir": "score"}
    return ["--tgt_lang=de", *(f"--{option}={tmp_path / name}" for option, name in files.items())]


def test_comet_is_scored_with_the_sources_beside_the_references(options, comet_package, tmp_path):
    score_simul.main([*options, "--comet_model=some/model"])
    scores = json.loads((tmp_path / "score" / "scores.json").read_text())
    assert (scores["COMET"], scores["COMET_model"]) == (0.9, "some/model")
    assert {row["src"]: row["mt"] for row in comet_package} == {"a house": "ein Haus", "two houses": "zwei Häuser"}


def test_without_it_there_is_no_such_key(options, tmp_path):
    score_simul.main(options)
    assert "COMET" not in json.loads((tmp_path / "score" / "scores.json").read_text())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--comet_model=nowhere"], "--comet_model nowhere: no such checkpoint"),
        (["--comet_model=m", "--src={}/other"], "other: no such file; COMET needs the source texts"),
        (["--comet_model=m", "--src={}/short"], "no source text of 'b'"),
        (["--src={}/short"], "--src is for COMET: add --comet_model"),
    ],
)
def test_what_is_missing_is_named_and_nothing_is_written(options, comet_package, tmp_path, more, message):
    (tmp_path / "short").write_text("a a house\n")
    with pytest.raises(UserError, match=message):
        score_simul.main([*options, *(option.format(tmp_path) for option in more)])
    assert not (tmp_path / "score").exists()


def test_the_package_to_install_is_named(options, monkeypatch):
    monkeypatch.setitem(sys.modules, "comet", None)
    with pytest.raises(UserError, match="pip install unbabel-comet"):
        score_simul.main([*options, "--comet_model=m"])
