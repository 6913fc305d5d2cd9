"""The benchmarks run and print one JSON line with what docs/performance.md reports. Nothing is asserted about times."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "options", "keys"),
    [
        ("decoder_step", ["--longest", "3", "--repeats", "1"], {"ratio_100", "ratio_250", "ratio_750", "limit_ratio"}),
        ("decoder_step", ["--longest", "2", "--repeats", "1", "--precision", "int8"], {"alone_ms", "growth"}),
        ("session_pool", ["--repeats", "1"], {"ratio_1", "ratio_4", "ratio_16", "ratio_processes_16"}),
        (
            "data_preparation",
            ["--segments", "60", "--talks", "3", "--long_segments", "40"],
            {"stage1_s", "stage3_mb_long"},
        ),
        ("long_form", ["--minutes", "1.5", "--align_att_layer", "2"], {"rss_growth", "step_growth", "bleu"}),
        ("live_load", ["--seconds", "2", "--most", "1"], {"mini", "paper"}),
        ("end_to_end", ["--runs", "1", "--utterances", "2"], {"ratio_mini", "ratio_30s", "ratio_30s_search"}),
    ],
)
def test_a_benchmark_prints_one_json_line(name, options, keys):
    command = [sys.executable, "-m", f"benchmarks.{name}", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert keys <= json.loads(run.stdout).keys()
