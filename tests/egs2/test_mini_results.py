"""What the main job on the mini corpus must show. Reads the report that it has left."""

import json
from pathlib import Path

import pytest

RECIPE = Path(__file__).parents[2] / "egs2" / "mustc_st_block"
REPORT = RECIPE / "exp" / "report"

pytestmark = pytest.mark.slow


def rows():
    lines = (REPORT / "results.tsv").read_text(encoding="utf-8").splitlines()
    header = lines[0].split("\t")
    return [dict(zip(header, line.split("\t"), strict=True)) for line in lines[1:]]


@pytest.mark.parametrize("block", [20, 40])
def test_offline_bleu_is_at_least_80(block):
    (row,) = [
        r
        for r in rows()
        if r["search"] == "offline" and r["block_size"] == str(block) and r["set"] == "tst-COMMON.en-de"
    ]
    assert float(row["BLEU"]) >= 80


def test_every_decode_of_the_grid_is_scored_on_dev_and_test():
    systems = {name: {r["system"] for r in rows() if r["set"].startswith(name)} for name in ("dev", "tst-COMMON")}
    assert systems["dev"] == systems["tst-COMMON"]
    assert len([r for r in rows() if r["set"].startswith("dev")]) >= 28


def test_the_checks_of_the_report_hold():
    checks = json.loads((REPORT / "checks.json").read_text(encoding="utf-8"))
    assert checks
