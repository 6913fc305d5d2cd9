"""Stage 1 on a release of MuST-C's size, and stage 3 on a short and a very long talk, generated for the purpose.

The recordings are silence that takes no room on the disk; stage 1 reads their headers alone. Prints one JSON line:
`stage1_s`, `stage1_cpu_s` and `stage1_mb`, wall and processor time and peak memory of `local/prepare_mustc.py`;
`yaml_cpu_s`, its reading of the yaml, and `yaml_whole_cpu_s`, PyYAML's CSafeLoader on the whole file;
`stage3_mb_short` and `stage3_mb_long`, peak memory of `local/dump_audio.py`, one job, for one talk of `short_s` and
`long_s` seconds, and `stage3_s_long`, `stage3_cpu_s_long`, its times for the long one.
"""

import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from espnet_ext.cli import ArgumentParser, run

RECIPE = Path(__file__).parents[1] / "egs2" / "mustc_st_block"
sys.path.insert(0, str(RECIPE / "local"))

from mustc_split import read_entries  # noqa: E402

RATE = 16000
SEGMENT_S = 6.25  # MuST-C: 400 hours in 230,000 segments
WORDS = ["and", "so", "the", "people", "who", "wanted", "a", "city", "asked", "how", "it", "would", "look", "years"]
SHORT_SEGMENTS = 10
# A process begins with the peak memory of the one that starts it: so it has to be a small one.
LAUNCHER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=sys.stderr)
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
sys.exit(status != 0)
"""


def get_parser() -> ArgumentParser:
    """The command's options."""
    parser = ArgumentParser(prog="benchmarks.data_preparation", description=__doc__)
    parser.add_argument("--segments", type=int, default=230_000, help="in train")
    parser.add_argument("--talks", type=int, default=2000, help="in train")
    parser.add_argument("--long_segments", type=int, default=4000, help="in the very long talk")
    return parser


def write_wav(path: Path, seconds: float) -> None:
    """Silence, as a sparse file."""
    size = 2 * round(seconds * RATE)
    header = struct.pack(
        "<4sI8sIHHIIHH4sI", b"RIFF", 36 + size, b"WAVEfmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16, b"data", size
    )
    path.write_bytes(header)
    os.truncate(path, len(header) + size)


def write_split(data: Path, split: str, segments: int, talks: int) -> None:
    """A split in MuST-C's layout, the segments dealt out to the talks."""
    chance = random.Random(0)
    (data / split / "wav").mkdir(parents=True)
    (data / split / "txt").mkdir()
    texts = {name: data / split / "txt" / f"{split}.{name}" for name in ("yaml", "en", "de")}
    with open(texts["yaml"], "w") as entries, open(texts["en"], "w") as en, open(texts["de"], "w") as de:
        for talk in range(1, talks + 1):
            count = segments // talks + (talk <= segments % talks)
            write_wav(data / split / "wav" / f"ted_{talk}.wav", (count + 1) * SEGMENT_S)
            for number in range(count):
                entries.write(
                    f"- {{duration: {SEGMENT_S - 0.5 * chance.random():.6f}, offset: {number * SEGMENT_S:.6f}, rW: 17, "
                    f"uW: 0, speaker_id: spk.{talk}, wav: ted_{talk}.wav}}\n"
                )
                for stream in (en, de):
                    stream.write(" ".join(chance.choices(WORDS, k=17)).capitalize() + ".\n")


def measure(program: str, *options: object) -> tuple[float, float, float]:
    """Wall and processor seconds of a program of the recipe, and MB that the largest of its processes took."""
    begin = time.perf_counter()
    command = [sys.executable, "-c", LAUNCHER, sys.executable, str(RECIPE / "local" / program), *map(str, options)]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    cpu_s, peak_mb = map(float, process.stdout.split())
    return time.perf_counter() - begin, cpu_s, peak_mb


def prepare(directory: Path, segments: int, talks: int) -> tuple[float, float, float]:
    """Generate a release below `directory` and run stage 1 on it."""
    for split, size in (("train", (segments, talks)), ("dev", (10, 1)), ("tst-COMMON", (10, 1))):
        write_split(directory / "en-de" / "data", split, *size)
    return measure("prepare_mustc.py", "--mustc_dir", directory, "--tgt_lang", "de", "--data_dir", directory / "data")


def dump(directory: Path) -> tuple[float, float, float]:
    """Stage 3 of what `prepare` has made."""
    return measure("dump_audio.py", "--data", directory / "data/train.en-de", "--output_dir", directory / "dump")


def cpu_seconds(function: Callable, *arguments: object) -> float:
    """Processor seconds of a call."""
    begin = time.process_time()
    function(*arguments)
    return round(time.process_time() - begin, 1)


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    args = get_parser().parse_args(argv)
    report: dict[str, object] = {"segments": args.segments, "talks": args.talks}
    with tempfile.TemporaryDirectory() as name:
        full, short, long = (Path(name) / size for size in ("full", "short", "long"))
        wall_s, cpu_s, peak_mb = prepare(full, args.segments, args.talks)
        report |= {"stage1_s": round(wall_s, 1), "stage1_cpu_s": round(cpu_s, 1), "stage1_mb": round(peak_mb)}
        entries = full / "en-de/data/train/txt/train.yaml"
        report["yaml_cpu_s"] = cpu_seconds(read_entries, entries)
        report["yaml_whole_cpu_s"] = cpu_seconds(yaml.load, entries.read_bytes(), yaml.CSafeLoader)
        for key, directory, segments in (("short", short, SHORT_SEGMENTS), ("long", long, args.long_segments)):
            prepare(directory, segments, 1)
            wall_s, cpu_s, peak_mb = dump(directory)
            report |= {f"{key}_s": (segments + 1) * SEGMENT_S, f"stage3_mb_{key}": round(peak_mb)}
        report |= {"stage3_s_long": round(wall_s, 1), "stage3_cpu_s_long": round(cpu_s, 1)}
    print(json.dumps(report))


if __name__ == "__main__":
    run(main)
