"""Stages 14 and 15 on a tiny model: one archive that loads anywhere, and what would be uploaded."""

import importlib
import json
import shutil
import zipfile

import pack_models
import publish_models
import pytest
import soundfile
import torch
import yaml

from espnet_ext import SimulSession, load_model
from espnet_ext.bin import score_simul, st_inference_simul
from espnet_ext.errors import UserError

SYSTEM = ("--search", "ibwbs", "--policy", "hold_n", "--hold_n", "2")


@pytest.fixture(scope="module")
def packed(tmp_path_factory, tiny_paths, speech):
    """A recipe directory with one trained, decoded, scored and packed model."""
    recipe = tmp_path_factory.mktemp("recipe")
    model_dir = recipe / "exp" / "st_block8.en-de"
    shutil.copytree(tiny_paths["st_train_config"].parent, model_dir)
    config = yaml.safe_load((model_dir / "config.yaml").read_text())
    shutil.copy(model_dir / "bpe.model", model_dir / "src_bpe.model")
    config |= {"bpemodel": str(model_dir / "bpe.model"), "src_bpemodel": str(model_dir / "src_bpe.model")}
    config |= {"normalize_conf": {"stats_file": str(model_dir / "stats.npz")}}
    config |= {"train_shape_file": [f"{recipe}/exp/shape"], "output_dir": str(model_dir), "config": f"{recipe}/a.yaml"}
    config |= {"init_param": [f"{recipe}/exp/asr/model.pth:encoder:encoder"]}
    (model_dir / "config.yaml").write_text(yaml.safe_dump(config, allow_unicode=True))
    (model_dir / "attention.json").write_text('{"recommended_layer": 1}')
    soundfile.write(recipe / "a.wav", speech(3), 16000, subtype="PCM_16")
    (recipe / "wav.scp").write_text(f"a {recipe}/a.wav\n")
    (recipe / "ref").write_text("a ein kleines Haus\n")
    out = recipe / "exp" / "decode" / model_dir.name / "ibwbs_hold_n2" / "dev.en-de"
    source = [f"--data_path_and_name_and_type={recipe}/wav.scp,speech,sound", f"--output_dir={out}"]
    st_inference_simul.main([f"--model={model_dir}", *source, *SYSTEM])
    options = [f"--instances={out}/instances.log", f"--ref={recipe}/ref", f"--output_dir={out}/score", "--tgt_lang=de"]
    score_simul.main(options)
    pack(recipe)
    return recipe


def pack(recipe, output="exp/packed"):
    exp = recipe / "exp"
    options = ["--model_dirs", str(exp / "st_block8.en-de"), "--exp_dir", str(exp), "--corpus", "tiny"]
    pack_models.main([*options, "--output_dir", str(recipe / output)])


@pytest.fixture
def archive(packed, tmp_path, monkeypatch):
    """The archive alone in an empty working directory, its training directory out of reach."""
    shutil.copy(packed / "exp" / "packed" / "st_block8.en-de.zip", tmp_path / "model.zip")
    hidden = packed.with_name("hidden")
    packed.rename(hidden)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    yield tmp_path / "model.zip"
    hidden.rename(packed)


def translate(model, samples):
    session = SimulSession(model, search="offline")
    session.push(samples)
    session.finish()
    return session.text


@pytest.mark.parametrize("unpacked", [False, True])
def test_it_translates_in_an_empty_directory(archive, tiny, speech, unpacked):
    named = archive
    if unpacked:
        named = archive.with_name("unpacked")
        shutil.unpack_archive(archive, named)
        archive.unlink()
    assert translate(load_model(named), speech(3)) == translate(tiny, speech(3)) != ""


def test_the_command_takes_it_with_the_options_of_a_decode(archive, speech):
    shutil.unpack_archive(archive, "unpacked")
    soundfile.write("a.wav", speech(2), 16000, subtype="PCM_16")
    archive.with_name("wav.scp").write_text("a a.wav\n")
    options = ["--config=unpacked/conf/decode/ibwbs_hold_n2.yaml", "--data_path_and_name_and_type=wav.scp,speech,sound"]
    for name in ("model.zip", "unpacked"):
        st_inference_simul.main(["--model", name, *options, f"--output_dir=out_{name}"])
    stats = json.loads(archive.with_name("out_model.zip").joinpath("stats.json").read_text())
    assert (stats["model_dir"], stats["policy_args"]["hold_n"], stats["block_size"]) == ("model.zip", 2, 8)
    texts = [archive.with_name(f"out_{name}").joinpath("text").read_text() for name in ("model.zip", "unpacked")]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("module", ["st_inference", "st_inference_streaming"])
def test_espnet_loads_it_as_a_pretrained_model(archive, tiny, module):
    loaders = importlib.import_module(f"espnet2.bin.{module}")
    loader = getattr(loaders, "Speech2TextStreaming", None) or loaders.Speech2Text
    model = loader.from_pretrained(str(archive), beam_size=2).st_model
    assert model.token_list == tiny.vocabulary.token_list
    for name, value in tiny.module.named_parameters():
        torch.testing.assert_close(model.get_parameter(name), value, rtol=0, atol=0)


def test_espnet_loads_it_from_the_hubs_layout(archive):
    from espnet2.bin.st_inference import Speech2Text
    from espnet_model_zoo.downloader import ModelDownloader

    shutil.unpack_archive(archive, "snapshot")
    paths = ModelDownloader._unpack_cache_dir_for_huggingface(str(archive.with_name("snapshot")))
    assert Speech2Text(**paths, beam_size=2).st_model.token_list[0] == "<blank>"


def test_nothing_of_the_training_machine_is_in_it_and_its_bytes_are_always_the_same(packed):
    first = packed / "exp" / "packed" / "st_block8.en-de.zip"
    for name in zipfile.ZipFile(first).namelist():
        assert str(packed).encode() not in zipfile.ZipFile(first).read(name), name
    sides = {f"data/token_list/{side}/bpe.model" for side in ("src", "tgt")}
    assert sides < set(zipfile.ZipFile(first).namelist())
    (packed / "exp" / "st_block8.en-de" / "model.pth").touch()
    pack(packed, "again")
    assert (packed / "again" / first.name).read_bytes() == first.read_bytes()


def test_a_path_that_cannot_be_packed_is_named(packed):
    path = packed / "exp" / "st_block8.en-de" / "config.yaml"
    whole = path.read_text()
    path.write_text(whole + "preprocessor_conf:\n  rir_scp: /data/rir.scp\n")
    with pytest.raises(UserError, match=r"preprocessor_conf\.rir_scp: /data/rir\.scp is a path of this machine"):
        pack(packed, "bad")
    path.write_text(whole.replace("/bpe.model", "/absent.model"))
    with pytest.raises(UserError, match="bpemodel: no file"):
        pack(packed, "bad")
    path.write_text(whole)
    assert list((packed / "bad").glob("*")) == []


def test_the_card_has_the_scores_and_what_made_them(packed):
    scores = next(packed.glob("exp/decode/*/*/*/score/scores.json")).read_text()
    card = zipfile.ZipFile(packed / "exp" / "packed" / "st_block8.en-de.zip").read("README.md").decode()
    assert f"| `ibwbs_hold_n2` | dev.en-de | {json.loads(scores)['BLEU']:.1f} |" in card
    assert json.loads(scores)["BLEU_signature"] in card and json.loads(scores)["commit"] in card
    assert yaml.safe_load(card.split("---")[1])["language"] == ["en", "de"]


def test_a_model_without_scores_is_not_packed(packed, tmp_path):
    shutil.copytree(packed / "exp" / "st_block8.en-de", tmp_path / "exp" / "other.en-de")
    with pytest.raises(UserError, match="other.en-de: no scored decode for its card; run stages 11 and 12"):
        pack_models.main(
            ["--model_dirs", f"{tmp_path}/exp/other.en-de", "--exp_dir", f"{packed}/exp", "--corpus", "tiny"]
        )


def make(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("_", "."), text)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: None, "no such model; give a packed archive"),
        (lambda path: path.write_bytes(b"PK no"), "not a packed model: File is not a zip file"),
        (lambda path: make(path, README_md="x"), "no config.yaml in it"),
        (lambda path: make(path, meta_yaml="files: {}"), "its meta.yaml names no st_train_config"),
        (lambda path: path.mkdir(), "no config.yaml in it"),
    ],
)
def test_what_is_no_packed_model_is_named(tmp_path, spoil, message):
    spoil(tmp_path / "m.zip")
    with pytest.raises(UserError, match=f"m.zip: {message}"):
        load_model(tmp_path / "m.zip")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "name the model: --model, or both"),
        (["--st_train_config=c"], "name the model: --model, or both"),
        (["--model=m", "--st_model_file=f"], "give --model, or --st_train_config and --st_model_file, not both"),
    ],
)
def test_a_command_wants_one_model(options, message):
    with pytest.raises(UserError, match=message):
        st_inference_simul.main([*options, "--data_path_and_name_and_type=w,speech,sound", "--output_dir=o"])


def publish(packed, *options):
    publish_models.main(["--archives", str(packed / "exp" / "packed" / "st_block8.en-de.zip"), *options])


@pytest.mark.parametrize("options", [(), ("--hf_repo", "me/model", "--dry_run", "true")])
def test_the_dry_run_says_what_would_go_where(packed, capsys, options):
    publish(packed, *options)
    output = capsys.readouterr().out
    names = zipfile.ZipFile(packed / "exp" / "packed" / "st_block8.en-de.zip").namelist()
    assert "exp/st_block8.en-de/attention.json" in names and all(f"  {name} (" in output for name in names)
    assert f"to https://huggingface.co/{'me/model' if options else 'OWNER/NAME'}: {len(names)} files" in output
    assert "nothing is uploaded" in output


@pytest.mark.parametrize("name", ["model", "me/a--b", "me/a/b", "me/"])
def test_a_name_that_the_hub_does_not_take_is_named(packed, name):
    with pytest.raises(UserError, match=f"--hf_repo '{name}'"):
        publish(packed, "--hf_repo", name)


def test_one_repository_holds_one_model(packed, tmp_path):
    shutil.copy(packed / "exp" / "packed" / "st_block8.en-de.zip", tmp_path / "b.zip")
    with pytest.raises(UserError, match="there are 2: choose one"):
        publish(packed, str(tmp_path / "b.zip"), "--hf_repo", "me/model")


def test_an_upload_that_fails_is_one_line(packed, monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="me/model: not uploaded: .*offline"):
        publish(packed, "--hf_repo", "me/model")


def test_a_damaged_archive_is_not_uploaded(packed, tmp_path):
    whole = (packed / "exp" / "packed" / "st_block8.en-de.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(whole[:1000])
    with pytest.raises(UserError, match="run stage 14 again"):
        publish_models.main(["--archives", str(tmp_path / "a.zip")])
    with pytest.raises(UserError, match="no such file; run stage 14"):
        publish_models.main(["--archives", str(tmp_path / "absent.zip")])
