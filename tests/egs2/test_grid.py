from pathlib import Path

import pytest
from conftest import RECIPE
from grid import plan, read_grid

from espnet_ext.errors import UserError


def decodes(blocks, family="block"):
    models = [f"block{block}" for block in blocks] or ["offline"]
    grid = RECIPE / "conf" / "mini" / f"grid_{family}.yaml"
    return plan(grid, Path("exp"), Path("data"), ["dev", "tst-COMMON"], models, "de")


def test_every_decode_has_its_own_directory():
    directories = [decode.directory for decode in decodes([20, 40])]
    assert len(directories) == len(set(directories)) == 2 * 36
    assert Path("exp/decode/st_block40.en-de/ibwbs_hold_n2/tst-COMMON.en-de") in directories
    assert Path("exp/decode/st_block40.en-de/ibwbs_hold_n2_reliability_false/dev.en-de") in directories
    assert Path("exp/decode/st_block20.en-de/offline/dev.en-de") in directories


def test_policies_are_run_at_the_largest_block():
    assert {decode.model_dir.name for decode in decodes([20, 40, 32]) if decode.config.policy != "all"} == {
        "st_block40.en-de"
    }
    assert {decode.model_dir.name for decode in decodes([20, 40, 32]) if decode.config.search == "offline"} == {
        f"st_block{block}.en-de" for block in (20, 32, 40)
    }


def test_full_context_models_are_decoded_by_their_own_grid():
    planned = decodes([], "offline")
    assert {decode.model_dir.name for decode in planned} == {"st_offline.en-de"}
    assert len({decode.directory for decode in planned}) == len(planned)


def test_talks_are_decoded_whole_and_scored_by_segments():
    talks = [decode for decode in decodes([40], "longform") if decode.config.long_form]
    assert len(talks) == 2 * 24
    assert {decode.data.name for decode in talks} == {"dev.en-de_talks", "tst-COMMON.en-de_talks"}
    assert all(decode.segments is None and decode.model_dir.name == "st_block40.en-de" for decode in talks)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {search: ibwbs, hold: 3, models: all}", "entry 1: hold: unknown option"),
        ("- {search: ibwbs, models: some}", "entry 1: needs `models: all`"),
        ("- {search: best, models: all}", "entry 1: search: 'best'"),
        ("search: ibwbs", "must be a list"),
        ("- [", "not yaml"),
    ],
)
def test_a_faulty_grid_is_named(tmp_path, text, message):
    path = tmp_path / "grid.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_grid(path, "de")
