import pytest
import torch
from step import Step
from train_models import Training, epoch_line, gpu_options, is_whole, prepare_directory

LINE = (
    "[host] 2026-01-01 00:00:00,000 (trainer:350) INFO: 3epoch results: [train] iter_time=0.010, loss=80.5, acc=0.61, "
    "time=51.79 seconds, total_count=164, [valid] loss=95.2, acc=0.57, bleu=nan, time=2.26 seconds, total_count=11"
)


def test_an_epoch_is_one_short_line():
    assert epoch_line(LINE) == "epoch 3  train loss 80.5  train acc 0.61  valid loss 95.2  valid acc 0.57"
    assert epoch_line("[host] INFO: 3epoch:train:1-100batch: loss=3") is None


@pytest.fixture
def training(tmp_path):
    directory = tmp_path / "st"
    config = tmp_path / "conf.yaml"
    config.write_text("max_epoch: 3\nbest_model_criterion: [[valid, acc, max]]", encoding="utf-8")
    result = Training(config, directory, Step(directory / ".done", {}, [config]))
    prepare_directory(result)
    return result


def test_the_number_of_epochs_can_be_changed_and_is_part_of_the_settings(training):
    changed = Training(training.config, training.directory, training.step, {"max_epoch": 1})
    assert changed.settings["max_epoch"] == 1 and training.settings["max_epoch"] == 3
    assert changed.options[2:4] == ["--max_epoch", "1"] and "--max_epoch" not in training.options


def save_epoch(training, number):
    """As ESPnet does after an epoch: the checkpoint, then the epoch's file."""
    model = {"weight": torch.full((100,), float(number))}
    stats = {epoch: {"valid": {"acc": 1 / epoch}} for epoch in range(1, number + 1)}
    checkpoint = {"model": model, "reporter": {"epoch": number, "stats": stats}}
    torch.save(checkpoint, training.directory / "checkpoint.pth")
    torch.save(model, training.directory / f"{number}epoch.pth")


def test_an_interrupted_training_goes_on_after_its_last_whole_epoch(training, capsys):
    save_epoch(training, 1)
    save_epoch(training, 2)
    prepare_directory(training)
    assert "goes on after epoch 2" in capsys.readouterr().out
    assert set(training.epochs()) == {1, 2}


@pytest.mark.parametrize("fault", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-20])])
def test_the_file_of_the_epoch_is_made_from_the_checkpoint_if_the_kill_came_between_them(training, fault, capsys):
    save_epoch(training, 1)
    save_epoch(training, 2)
    fault(training.directory / "2epoch.pth")
    prepare_directory(training)
    assert "goes on after epoch 2" in capsys.readouterr().out
    state = torch.load(training.directory / "2epoch.pth", weights_only=True)
    assert state.keys() == {"weight"} and float(state["weight"][0]) == 2
    links = {name: (training.directory / f"{name}.pth").readlink().name for name in ("latest", "valid.acc.best")}
    assert links == {"latest": "2epoch.pth", "valid.acc.best": "1epoch.pth"}


@pytest.mark.parametrize("name", ["checkpoint.pth", "1epoch.pth"])
def test_a_broken_checkpoint_is_not_believed_and_nothing_is_deleted(training, name, tmp_path, capsys):
    save_epoch(training, 1)
    save_epoch(training, 2)
    path = training.directory / name
    path.write_bytes(path.read_bytes()[:-20])
    assert not is_whole(path)
    prepare_directory(training)
    (aside,) = tmp_path.glob("st.before-*")
    assert (aside / "1epoch.pth").exists()
    assert f"starts anew; what was trained before is now {aside}" in capsys.readouterr().out
    assert training.epochs() == {} and not (training.directory / "checkpoint.pth").exists()


def test_a_model_of_another_configuration_is_moved_aside(training, tmp_path, capsys):
    save_epoch(training, 1)
    training.config.write_text("max_epoch: 4", encoding="utf-8")
    other = Training(training.config, training.directory, Step(training.step.marker, {}, [training.config]))
    prepare_directory(other)
    assert other.epochs() == {}
    (aside,) = tmp_path.glob("st.before-*")
    assert (aside / "1epoch.pth").exists() and str(aside) in capsys.readouterr().out


@pytest.mark.parametrize(("gpus", "batch_bins", "accum_grad"), [(2, 200, 2), (3, 200, 2), (4, 400, 1), (8, 400, 1)])
def test_more_gpus_share_the_update_of_one_and_none_holds_more(gpus, batch_bins, accum_grad):
    options = gpu_options({"batch_bins": 100, "accum_grad": 4}, gpus)
    expected = {"--ngpu": gpus, "--multiprocessing_distributed": "true"}
    expected |= {"--batch_bins": batch_bins, "--accum_grad": accum_grad}
    assert dict(zip(options[::2], options[1::2], strict=True)) == {key: str(value) for key, value in expected.items()}
    assert batch_bins / gpus <= 100
    assert gpu_options({}, 1) == ["--ngpu", "1"]
