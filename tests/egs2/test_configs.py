"""The training configurations: what they hold, and that models of their full size train."""

import inspect
import json
import subprocess
import sys

import average_asr
import pytest
import torch
import yaml
from conftest import RECIPE, dump_for_training

CONFS = {"mustc": RECIPE / "conf", "mini": RECIPE / "conf" / "mini"}
FAMILIES = {"block": ("block20", "block32", "block40"), "offline": ("offline",)}
GEOMETRY = {"block_size", "hop_size", "look_ahead"}
UPDATES = 535  # an epoch of the mini corpus in batches of 300,000 samples
SIZES = ("output_size", "linear_units", "attention_heads")


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def parts(task, config):
    """(key, settings, the class that takes them) of every `*_conf` of a configuration."""
    from espnet2.tasks import abs_task, st

    classes = {"optim": abs_task.optim_classes[config["optim"]], "model": st.ESPnetSTModel}
    classes["scheduler"] = abs_task.scheduler_classes[config["scheduler"]]
    classes |= {c.name: c.get_class(config.get(c.name, c.default)) for c in task.class_choices_list}
    return [(key, conf, classes[key.removesuffix("_conf")]) for key, conf in config.items() if key.endswith("_conf")]


def test_every_key_is_one_that_espnet_knows():
    from espnet2.tasks.asr import ASRTask
    from espnet2.tasks.st import STTask

    paths = sorted((RECIPE / "conf").rglob("train_*.yaml"))
    assert len(paths) == 2 * (2 + 4)
    for path in paths:
        task = {"asr": ASRTask, "st": STTask}[path.name.split("_")[1]]
        config = read(path)
        assert config.keys() <= task.get_default_config().keys(), path
        for key, conf, made in parts(task, config):
            assert conf.keys() <= inspect.signature(made).parameters.keys(), f"{path}: {key}"


@pytest.mark.parametrize("conf", CONFS.values(), ids=CONFS)
def test_a_family_differs_in_its_blocks_alone_and_fits_its_asr_model(conf):
    numbers = {20: (8, 8), 32: (12, 12), 40: (16, 16)}
    for family, names in FAMILIES.items():
        asr, *models = (read(conf / f"train_{name}.yaml") for name in (f"asr_{family}", *(f"st_{n}" for n in names)))
        for model in (asr, *models):
            encoder = model["encoder_conf"]
            if family == "block" and model is not asr:
                assert numbers[encoder["block_size"]] == (encoder["hop_size"], encoder["look_ahead"])
            for name in GEOMETRY:
                encoder.pop(name, None)
        assert all(model == models[0] for model in models)
        for key in ("encoder", "encoder_conf", "decoder_conf", "frontend_conf"):
            assert asr[key] == models[0][key]


def test_every_epoch_is_kept_and_the_annealing_of_mini_is_about_as_long_as_its_training():
    for path in (RECIPE / "conf").rglob("train_*.yaml"):
        config = read(path)
        assert config["keep_nbest_models"] >= config["max_epoch"], path
    for path in CONFS["mini"].glob("train_*.yaml"):
        config = read(path)
        assert config["batch_bins"] == 300000
        assert 1 <= config["scheduler_conf"]["max_steps"] / (UPDATES * config["max_epoch"]) <= 1.2, path


def test_the_papers_models():
    """Paper 1, section 4; StreamAtt, appendix C: also the update of 4 GPUs x 40,000 frames x 2."""
    block, offline = (read(CONFS["mustc"] / f"train_st_{name}.yaml") for name in ("block40", "offline"))
    for config, sizes in ((block, (12, 6, 256, 2048, 4)), (offline, (12, 6, 512, 2048, 8))):
        encoder, decoder = config["encoder_conf"], config["decoder_conf"]
        assert (encoder["num_blocks"], decoder["num_blocks"], *(encoder[k] for k in SIZES)) == sizes
        assert config["frontend_conf"]["n_mels"] == 80
        assert config["scheduler_conf"]["warmup_steps"] == 25000
        assert config["model_conf"]["lsm_weight"] == 0.1
    assert block["model_conf"]["st_mtlalpha"] == 0.3
    assert offline["encoder_conf"]["cnn_module_kernel"] == 31
    assert offline["optim_conf"]["lr"] == 5e-3 and offline["patience"] == 15
    assert offline["batch_bins"] * offline["accum_grad"] == 4 * 40000 * 2 * 160


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("block", "4000 4000 10  encoder:encoder 0.9 1.0 1.1"),
        ("offline", "5000 8000  7  0.9 1.0 1.1"),
    ],
)
def test_the_papers_settings_of_the_recipe(family, settings):
    """Paper 1, section 4; StreamAtt, section 4 and appendix C."""
    names = "nbpe_src nbpe_tgt average_last average_around_best asr_init speed_perturb_factors"
    shown = " ".join(f"${{{name}:-}}" for name in names.split())
    script = f'. ./recipe.sh; . ./recipe_{family}.sh; echo "{shown}"'
    done = subprocess.run(["bash", "-euc", script], cwd=CONFS["mustc"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{settings}\n"


@pytest.fixture
def dumped(tmp_path):
    """A minute or two of the mini corpus, in the place of noise."""
    import make_mini_corpus
    import prepare_mustc

    make_mini_corpus.main(["--output_dir", str(tmp_path / "mini"), "--hours", "0.03", "--test_talks", "1"])
    options = ["--mustc_dir", str(tmp_path / "mini"), "--tgt_lang", "de", "--data_dir", str(tmp_path / "data")]
    prepare_mustc.main(options)
    dump_for_training(tmp_path / "data", tmp_path, nbpe=100)
    return tmp_path


@pytest.fixture
def dry_run(dumped, start):
    """Trains full-size models of a family for two updates; gives the directories of the ASR and the ST models."""

    def finish(program, task, *options):
        output, _ = (process := start(program, task, *options)).communicate()
        assert process.returncode == 0, output
        return output

    def write(name, **changes):
        config = read(CONFS["mustc"] / f"train_{name}.yaml") | {"max_epoch": 1, "num_iters_per_epoch": 2}
        config |= {"batch_bins": 200000, "accum_grad": 1, "num_workers": 0, "use_tensorboard": False, **changes}
        (dumped / f"{name}.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        return f"{name}.yaml"

    def run(family, nbpe_src, nbpe_tgt):
        for side, size in (("src", nbpe_src), ("tgt", nbpe_tgt)):
            path = dumped / "tokens" / side / "tokens.txt"
            *tokens, end = path.read_text(encoding="utf-8").split()
            unused = [f"<unused{number}>" for number in range(size - len(tokens) - 1)]
            path.write_text("".join(f"{token}\n" for token in (*tokens, *unused, end)), encoding="utf-8")
        for task in ("asr", "st"):
            config = write(f"{task}_{FAMILIES[family][0] if task == 'st' else family}")
            finish("collect_stats.py", task, "--config", config, "--output_dir", f"stats_{task}", "--nj", "1")
        asr = write(f"asr_{family}")
        finish("train_models.py", "asr", "--stats_dir", "stats_asr", "--model", asr, "exp/asr")
        models = [("--model", write(f"st_{name}"), f"exp/{name}") for name in FAMILIES[family]]
        init = ("--init_param", "exp/asr/1epoch.pth:encoder:encoder")
        output = finish("train_models.py", "st", "--stats_dir", "stats_st", *sum(models, ()), *init)
        assert output.count(" tensors loaded, 0 skipped, 0 missing") == len(models)
        return dumped / "exp" / "asr", [dumped / directory for _, _, directory in models]

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "vocabularies", "millions"), [("block", (4000, 4000), 30), ("offline", (5000, 8000), 119)]
)
def test_full_size_models_train_and_translate(dry_run, dumped, family, vocabularies, millions):
    """The Conformer has about 115 million parameters in the paper, whose subsampling is smaller."""
    key = (dumped / "dump" / "dev.en-de" / "wav.scp").read_text(encoding="utf-8").split()[0]
    (dumped / "keys").write_text(f"{key}\n", encoding="utf-8")
    asr, models = dry_run(family, *vocabularies)
    average_asr.main(["--model_dir", str(asr), "--last", "1", "--dump", str(dumped / "dump" / "dev.en-de")])
    assert json.loads((asr / "dev_wer.json").read_text(encoding="utf-8"))["WER"] > 0
    for model in models:
        weights = torch.load(model / "1epoch.pth", weights_only=True)
        assert round(sum(tensor.numel() for tensor in weights.values()) / 1e6) == millions
        options = ["--st_train_config", f"{model}/config.yaml", "--st_model_file", f"{model}/1epoch.pth"]
        options += ["--data_path_and_name_and_type", "dump/dev.en-de/wav.scp,speech,sound", "--key_file", "keys"]
        options += ["--output_dir", f"{model}/decode", "--search", "ibwbs", "--policy", "hold_n", "--tgt_lang", "de"]
        command = [sys.executable, "-m", "espnet_ext.bin.st_inference_simul", *options]
        subprocess.run(command, cwd=dumped, check=True)
        assert (model / "decode" / "text").read_text(encoding="utf-8").split()[0] == key
