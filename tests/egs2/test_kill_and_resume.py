"""kill -9 or a full disk at many moments of every stage, then the same command again: the result is that of an
undisturbed run."""

import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import average_asr
import average_st
import collect_stats
import decode_grid
import decode_shard
import distill
import dump_audio
import filter_length
import pack_models
import perturb_speed
import prepare_mustc
import pytest
import score_grid
import train_bpe
import train_models
import yaml
from conftest import RECIPE, Release
from killing import contents, file_size_limit, fork, kill_at
from test_distill import write_nllb

import espnet_ext.cli
from espnet_ext.bin import check_attention, report_simul
from espnet_ext.log.instances import InstanceWriter

EPOCHS = 2
KILLED = -9
EVENTS = (1, 3, 7, 15, 31, 63)
DATA = ["--tgt_lang", "de", "--train_dir", "dump/train", "--dev_dir", "dump/dev", "--token_dir", "tokens"]
GRID = ["--grid", "grid.yaml", "--models", "block8", "--tgt_lang", "de", "--sets", "dev", "--nj", "2"]


def bpe(side: str, text: str, lang: str) -> list[str]:
    options = ["--text", f"dump/train/{text}", "--lang", lang, "--nbpe", "30", "--hard_vocab_limit", "false"]
    return [*options, "--output_dir", f"tokens/{side}"]


def collect(task: str) -> list[str]:
    return ["--task", task, *DATA, "--config", f"{task}.yaml", "--output_dir", f"exp/{task}_stats", "--nj", "2"]


def train(task: str, model: str, config: str) -> list[str]:
    return ["--task", task, *DATA, "--stats_dir", f"exp/{task}_stats", "--model", config, model]


# program, its options, what it writes (patterns)
STAGES: list[tuple[Callable, list[str], list[str]]] = [
    (prepare_mustc.main, ["--mustc_dir", "mustc", "--tgt_lang", "de"], ["data"]),
    (
        perturb_speed.main,
        ["--data", "data/train.en-de", "--factors", "0.9", "1.0", "--output_dir", "data/train_sp"],
        ["data/train_sp"],
    ),
    (dump_audio.main, ["--data", "data/train_sp", "--output_dir", "org/train", "--nj", "2"], ["org/train"]),
    (dump_audio.main, ["--data", "data/dev.en-de", "--output_dir", "org/dev", "--audio_format", "wav"], ["org/dev"]),
    (filter_length.main, ["--dump", "org/train", "--output_dir", "dump/train", "--tgt_lang", "de"], ["dump/train"]),
    (filter_length.main, ["--dump", "org/dev", "--output_dir", "dump/dev", "--tgt_lang", "de"], ["dump/dev"]),
    (train_bpe.main, bpe("src", "text.lc.rm.en", "en"), ["tokens/src"]),
    (train_bpe.main, bpe("tgt", "text.tc.de", "de"), ["tokens/tgt"]),
    (
        prepare_mustc.main,
        ["--mustc_dir", "archive", "--tgt_lang", "de", "--data_dir", "data_2", "--unpack_dir", "downloads"],
        ["data_2", "downloads"],
    ),
    (
        distill.main,
        [
            "--dump",
            "dump/train",
            "--output_dir",
            "dump/train_kd",
            "--work_dir",
            "exp/distill",
            "--model",
            "nllb",
            "--tgt_lang",
            "de",
            "--batch_size",
            "1",
            "--nj",
            "2",
            "--beam_size",
            "2",
        ],
        ["dump/train_kd", "exp/distill"],
    ),
    (collect_stats.main, collect("asr"), ["exp/asr_stats"]),
    (train_models.main, train("asr", "exp/asr.en-de", "asr.yaml"), ["exp/asr.en-de"]),
    (
        average_asr.main,
        ["--model_dir", "exp/asr.en-de", "--last", str(EPOCHS), "--dump", "dump/dev"],
        ["exp/asr.en-de/model.pth", "exp/asr.en-de/dev_wer.json", "exp/asr.en-de/.average.done"],
    ),
    (collect_stats.main, collect("st"), ["exp/st_stats"]),
    (
        train_models.main,
        [*train("st", "exp/st_block8.en-de", "st.yaml"), "--init_param", "exp/asr.en-de/model.pth:encoder:encoder"],
        ["exp/st_block8.en-de"],
    ),
    (
        average_st.main,
        ["--model_dirs", "exp/st_block8.en-de", "--last", str(EPOCHS), "--dump", "dump/dev", "--tgt_lang", "de"],
        [f"exp/st_block8.en-de/{name}" for name in ("model.pth", "average.json", ".average.done", "log/bleu*")],
    ),
    (train_models.main, train("st", "exp/st_offline.en-de", "st_offline.yaml"), ["exp/st_offline.en-de"]),
    (
        average_st.main,
        ["--model_dirs", "exp/st_offline.en-de", "--around_best", "1", "--dump", "dump/dev", "--tgt_lang", "de"],
        [f"exp/st_offline.en-de/{name}" for name in ("model.pth", "average.json", ".average.done", "log/bleu*")],
    ),
    (
        check_attention.main,
        [
            "--st_train_config",
            "exp/st_block8.en-de/config.yaml",
            "--st_model_file",
            "exp/st_block8.en-de/model.pth",
            "--wav_scp",
            "data/dev.en-de/wav.scp",
            "--segments",
            "data/dev.en-de/segments",
            "--text",
            "data/dev.en-de/text.tc.de",
        ],
        ["exp/st_block8.en-de/attention.json"],
    ),
    (decode_grid.main, [*GRID, "--cmd", str(RECIPE / "utils" / "run.py")], ["exp/decode"]),
    (score_grid.main, GRID, ["exp/decode/*/*/*/score"]),
    (report_simul.main, ["--exp_dir", "exp", "--output_dir", "exp/report", "--test_set", "dev"], ["exp/report"]),
    (pack_models.main, ["--model_dirs", "exp/st_block8.en-de", "--corpus", "tiny"], ["exp/packed"]),
]
DATA_STAGES = (0, 1, 2, 4, 6, 8)  # one of each program, and the preparation from an archive
MODEL_STAGES = range(9, len(STAGES))
SLOW_EVENTS = {report_simul.main: (3, 15), collect_stats.main: (3, 15, 31), average_st.main: (7, 15)}
SIZES = {train_models.main: (100, 20_000), decode_grid.main: (100, 3_000)}  # the checkpoint; a line of the log


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """A recipe directory of a dozen utterances, before its first stage, as the working directory."""
    root = tmp_path_factory.mktemp("recipe")
    release = Release(root / "mustc")
    for split in release.SPLITS:
        release.write_wav(split, "ted_1.wav", 5.0)
        release.write_wav(split, "ted_2.wav", 5.0)
        entries = [release.segment(i / 2, 0.8 + i % 3 / 4, f"ted_{1 + i % 2}.wav") for i in range(6)]
        release.write_split(split, entries)
    (root / "archive").mkdir()
    with tarfile.open(root / "archive" / "MUSTC_v1.0_en-de.tar.gz", "w:gz") as archive:
        archive.add(root / "mustc", ".")
    write_nllb(root / "nllb")
    for task, name in (("asr", "asr_block"), ("st", "st_block40"), ("st_offline", "st_offline")):
        config = yaml.safe_load((RECIPE / "conf" / "mini" / f"train_{name}.yaml").read_text(encoding="utf-8"))
        config |= {"max_epoch": EPOCHS, "keep_nbest_models": EPOCHS, "batch_bins": 20000, "freeze_param": []}
        config["encoder_conf"] |= {"output_size": 8, "linear_units": 8, "num_blocks": 1}
        if "block" in name:
            config["encoder_conf"] |= {"block_size": 8, "hop_size": 4, "look_ahead": 2}
        config["decoder_conf"] |= {"linear_units": 8, "num_blocks": 1}
        (root / f"{task}.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    grid = [
        {"search": "offline", "models": "all"},
        {"search": "ibwbs", "policy": "hold_n", "hold_n": 2, "models": "all"},
    ]
    (root / "grid.yaml").write_text(yaml.safe_dump(grid))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("PYTHONPATH", str(RECIPE.parents[1]))  # of the jobs of a decode
        yield root


def run(stage: int, event: int | None = None, before: Callable[[], None] = lambda: None) -> tuple[int, str]:
    """Exit status and output of a stage, killed at an event if one is given."""
    program, options, _ = STAGES[stage]

    def work() -> None:
        before()
        if event:
            kill_at(event)
        espnet_ext.cli.run(lambda: program(options))

    return fork(work)


def clear(stage: int) -> None:
    for pattern in STAGES[stage][2]:
        for path in Path().glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def whole(root: Path, stage: int) -> dict[str, str]:
    """What an undisturbed run of a stage leaves; earlier stages are run if they were not."""
    for earlier in range(stage + 1):
        if earlier == stage or not any(Path().glob(STAGES[earlier][2][0])):
            status, output = run(earlier)
            assert status == 0, output
    return contents(root)


def check_kills(root: Path, stage: int, events: tuple[int, ...] = EVENTS) -> int:
    """Kill a stage at one event after the other until it runs through; returns the number of kills."""
    expected = whole(root, stage)
    kills = 0
    for event in events:
        clear(stage)
        status, output = run(stage, event)
        if status == 0:
            break
        kills += 1
        assert status == KILLED or "was killed by SIGKILL" in output, output
        status, output = run(stage)
        assert status == 0, f"event {event}: {output}"
        assert contents(root) == expected, f"event {event}"
    assert run(stage)[0] == 0
    return kills


def check_full_disk(root: Path, stage: int, sizes: tuple[int, ...]) -> None:
    """Let the files of a stage not grow beyond a size: one line says so, nothing half-written stays."""
    expected = whole(root, stage)
    for size in sizes:
        clear(stage)
        status, output = run(stage, before=lambda size=size: file_size_limit(size))
        in_jobs = STAGES[stage][0] == decode_grid.main  # jobs and their job program each have an exit code and a line
        assert status == 2 or (in_jobs and status > 0), f"{size}: {output}"
        assert "Traceback" not in output
        errors = [line for line in output.splitlines() if line.startswith("error: ")]
        assert "make room, then run this again" in "".join(errors) and output.endswith(f"{errors[-1]}\n")
        assert len(errors) == 1 or in_jobs
        assert not list(root.rglob("*.tmp"))
        status, output = run(stage)
        assert status == 0, f"{size}: {output}"
        assert contents(root) == expected, size


def name(stage: int) -> str:
    return f"{stage}-{STAGES[stage][0].__module__}"


@pytest.mark.parametrize("stage", DATA_STAGES, ids=name)
def test_data_stages(recipe, stage):
    assert check_kills(recipe, stage) >= 3
    check_full_disk(recipe, stage, (100,))


@pytest.mark.slow
@pytest.mark.parametrize("stage", MODEL_STAGES, ids=name)
def test_stages_with_models(recipe, stage):
    import espnet2.bin.asr_train
    import espnet2.bin.st_train  # noqa: F401 - imported once, shared by the processes

    program = STAGES[stage][0]
    assert check_kills(recipe, stage, SLOW_EVENTS.get(program, EVENTS)) >= 2
    check_full_disk(recipe, stage, SIZES.get(program, (100,)))


@pytest.mark.slow
def test_a_decode_goes_on_after_its_last_whole_line(recipe):
    stage = [program for program, *_ in STAGES].index(decode_grid.main)
    expected = contents(recipe / "exp" / "decode")
    shutil.rmtree(recipe / "exp" / "decode")

    def kill_in_the_third_line() -> None:
        write = InstanceWriter.write

        def half(self: InstanceWriter, instance: object) -> None:
            if len(self.done) == 2:
                self._stream.write('{"index": 2, "predic')
                self._stream.flush()
                os.kill(os.getpid(), KILLED * -1)
            write(self, instance)

        InstanceWriter.write = half

    def decode_and_die() -> None:
        kill_in_the_third_line()
        espnet_ext.cli.run(lambda: decode_shard.main([*GRID, "--job", "1"]))

    status, output = fork(decode_and_die)
    assert status == 2 and "was killed by SIGKILL" in output
    assert run(stage)[0] == 0 and run(stage + 1)[0] == 0
    assert contents(recipe / "exp" / "decode") == expected
