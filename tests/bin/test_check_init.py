import json

import pytest
import torch

from espnet_ext.bin.check_init import main
from espnet_ext.errors import UserError


@pytest.fixture
def report(tiny_paths, capsys):
    """Runs the command on the tiny model; gives its JSON."""

    def run(init_param: str, with_stderr: bool = False) -> dict | tuple[dict, list[str]]:
        main(["--init_param", init_param, "--st_train_config", str(tiny_paths["st_train_config"])])
        output = capsys.readouterr()
        numbers = json.loads(output.out)
        return (numbers, output.err.splitlines()) if with_stderr else numbers

    return run


def test_counts_the_tensors_of_the_part(report, tiny_paths):
    tensors = torch.load(tiny_paths["st_model_file"], weights_only=True)
    encoder = sum(name.startswith("encoder.") for name in tensors)
    assert report(f"{tiny_paths['st_model_file']}:encoder:encoder") == {"loaded": encoder, "skipped": 0, "missing": 0}


def test_tensors_that_do_not_fit_are_skipped_and_absent_ones_missing(report, tiny_paths, tmp_path):
    tensors = torch.load(tiny_paths["st_model_file"], weights_only=True)
    names = [name for name in tensors if name.startswith("encoder.")]
    shape = tensors[names[0]].shape
    tensors[names[0]] = torch.zeros(7, 7)
    del tensors[names[1]]
    torch.save(tensors | {"encoder.nowhere": torch.zeros(1)}, tmp_path / "asr.pth")
    expected = {"loaded": len(names) - 2, "skipped": 2, "missing": 2}
    numbers, lines = report(f"{tmp_path / 'asr.pth'}:encoder:encoder", with_stderr=True)
    assert numbers == expected
    place = " x ".join(map(str, shape))
    assert lines == [
        f"skipped: {names[0]} is 7 x 7 in the file, {place} in the model",
        "skipped: encoder.nowhere has no place in the model",
    ]


@pytest.mark.parametrize("part", ["encodr:encoder", "encoder:encodr", "encode:encoder"])
def test_a_misspelt_part_loads_nothing_and_is_an_error(report, tiny_paths, part):
    with pytest.raises(UserError, match=r"no tensor loaded .* holds .*encoder"):
        report(f"{tiny_paths['st_model_file']}:{part}")


def test_a_missing_file_is_named(report, tiny_paths):
    with pytest.raises(UserError, match=r"nowhere\.pth: no such file"):
        report("nowhere.pth:encoder:encoder")
