"""docs/training.md: its commands run, its table of batches is what the training does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "egs2" / "mustc_st_block"
TEXT = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")


def bash(script, recipe=RECIPE):
    return subprocess.run(
        ["bash", "-euc", script], cwd=recipe, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


@pytest.mark.parametrize("family", ["block40", "offline"])
def test_the_table_of_batches(family):
    sys.path.insert(0, str(RECIPE / "local"))
    from train_models import gpu_options

    config = yaml.safe_load((RECIPE / "conf" / f"train_st_{family}.yaml").read_text(encoding="utf-8"))
    (cells,) = re.findall(rf"^\| {family.rstrip('0123456789')}, an update of (\d+) s \| (.*) \|$", TEXT, re.M)
    for gpus, cell in zip((1, 2, 4, 8), cells[1].split(" | "), strict=True):
        options = gpu_options(config, gpus)
        given = {
            key.removeprefix("--"): int(n) for key, n in zip(options[::2], options[1::2], strict=True) if n.isdigit()
        }
        batch_bins, accum_grad = ((config | given)[key] for key in ("batch_bins", "accum_grad"))
        seconds = batch_bins / 16000
        assert cell == f"{seconds:.0f} / {seconds / gpus:.0f}, {accum_grad}"
        assert seconds * accum_grad == int(cells[0])


def test_the_command_for_mustc_lacks_nothing_but_the_corpus():
    (command,) = re.findall(r"`(\./run\.sh --corpus mustc [^`]*)`", TEXT)
    result = bash(command.replace("\n", " ").replace("DIR", "/nonexistent"))
    assert result.returncode == 2 and "no MuST-C release at /nonexistent/en-de/data" in result.stderr


@pytest.mark.slow
def test_all_systems_are_trained_decoded_and_reported_and_the_commands_run(small_recipe):
    """The Conformer and whole talks too, on a small copy of the recipe; then what docs/training.md tells to type."""
    systems = "block offline longform"
    result = bash(f'./run.sh --corpus mini --block_sizes 40 --systems "{systems}"', small_recipe)
    assert result.returncode == 0, result.stdout + result.stderr
    report = small_recipe / "exp" / "report"
    for name in ("systems", "table3", "longform"):
        assert len((report / f"{name}.tsv").read_text(encoding="utf-8").splitlines()) > 1, name
    assert "| none" not in (report / "report.md").read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"^```bash\n(.*?)^```", TEXT, flags=re.M | re.DOTALL))
    result = bash(". ./path.sh\n" + blocks.replace("--around_best 3", "--around_best 1"), small_recipe)
    assert result.returncode == 0, result.stdout + result.stderr
    assert (small_recipe / "exp" / "around_best.pth").is_file()
