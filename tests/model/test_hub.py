"""Models by their name on the hub: through the client's own cache, and what cannot be had in one line."""

import shutil

import httpx2
import huggingface_hub
import huggingface_hub.errors as hub
import pytest
import tiny_s2t

from espnet_ext import SimulSession, load_model
from espnet_ext.errors import UserError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("hub") / "model"
    path.mkdir()
    tiny_s2t.write_s2t(path)
    return path


@pytest.fixture
def cache(directory, tmp_path, monkeypatch):
    """A local cache that holds `me/model`, as the client lays it out, and no connection."""
    repository = tmp_path / "models--me--model"
    shutil.copytree(directory, repository / "snapshots" / COMMIT)
    for name in ("main", "v1.0"):
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / name).write_text(COMMIT)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def translate(model, samples):
    session = SimulSession(model, search="offline")
    session.push(samples)
    session.finish()
    return session.text


@pytest.mark.parametrize("name", ["me/model", "me/model@v1.0", f"me/model@{COMMIT}"])
def test_a_model_in_the_local_cache_loads_without_a_connection(cache, directory, speech, name):
    assert translate(load_model(name), speech(1)) == translate(load_model(directory), speech(1)) != ""


def test_a_local_path_wins(cache, directory):
    (cache / "me").mkdir()
    shutil.copytree(directory, cache / "me" / "model")
    (cache / "me" / "model" / "meta.yaml").write_text("yaml_files: {}\n")
    with pytest.raises(UserError, match="its meta.yaml names no"):
        load_model("me/model")


@pytest.mark.parametrize("name", ["me/other", "me/model@v2.0"])
def test_without_connection_what_the_cache_lacks_is_named(cache, name):
    with pytest.raises(UserError, match=f"{name}: no local path, not whole in the local cache, and the hub cannot"):
        load_model(name)


def answer(status):
    return httpx2.Response(status, request=httpx2.Request("GET", "http://hub"))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (hub.GatedRepoError("x\ny", response=answer(403)), "its owner must grant access: ask for it"),
        (hub.RepositoryNotFoundError("x\ny", response=answer(404)), "neither a local path nor a model on"),
        (hub.RevisionNotFoundError("x\ny", response=answer(404)), "the repository has no revision 'v9'"),
        (hub.HfHubHTTPError("500\nserver", response=answer(500)), "not downloaded from the hub: 500 server"),
        (OSError(28, "No space left on device"), "not downloaded from the hub: .*No space left"),
    ],
)
def test_what_the_hub_refuses_is_one_line(cache, monkeypatch, error, message):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(UserError, match=f"me/model@v9: {message}") as raised:
        load_model("me/model@v9")
    assert "\n" not in str(raised.value)


def test_a_name_that_the_hub_does_not_take_is_named(cache):
    with pytest.raises(UserError, match="me/a--b: Cannot have -- or"):
        load_model("me/a--b")


def test_what_is_downloaded_leaves_out_other_frameworks(cache, directory, monkeypatch):
    asked = {}

    def download(repository, **options):
        asked.update(options, repository=repository)
        return str(directory)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    load_model("me/model")
    assert asked["repository"] == "me/model" and asked["revision"] is None
    kept = list(
        huggingface_hub.utils.filter_repo_objects(
            ["model.safetensors", "flax_model.msgpack", "tf_model.h5", "pytorch_model.bin", "exp/a/ave.pth"],
            ignore_patterns=asked["ignore_patterns"],
        )
    )
    assert kept == ["model.safetensors", "exp/a/ave.pth"]
