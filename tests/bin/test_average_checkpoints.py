import pytest
import torch

from espnet_ext.bin.average_checkpoints import main
from espnet_ext.errors import UserError


@pytest.fixture
def exp_dir(tmp_path):
    for epoch in (1, 2, 3, 10):
        state = {
            "weight": torch.full((2, 2), float(epoch)),
            "half": torch.tensor([epoch, 2 * epoch], dtype=torch.float16),
            "steps": torch.tensor(100 * epoch),
        }
        torch.save(state, tmp_path / f"{epoch}epoch.pth")
    torch.save({"weight": torch.zeros(1)}, tmp_path / "checkpoint.pth")
    (tmp_path / "10epoch.pth").rename(tmp_path / "4epoch.pth")
    return tmp_path


def run(exp_dir, count, rule="--last"):
    main([rule, str(count), "--exp_dir", str(exp_dir), "--output", str(exp_dir / "model.pth")])
    return torch.load(exp_dir / "model.pth", weights_only=True)


def test_the_mean_of_the_last_epochs_by_hand_in_each_tensors_own_type(exp_dir):
    state = run(exp_dir, 3)
    torch.testing.assert_close(state["weight"], torch.full((2, 2), 5.0))
    torch.testing.assert_close(state["half"], torch.tensor([5.0, 10.0], dtype=torch.float16))
    assert state["steps"].dtype == torch.int64 and state["steps"].item() == 500


def test_half_precision_does_not_overflow_in_the_sum(exp_dir):
    for epoch in (3, 4):
        state = torch.load(exp_dir / f"{epoch}epoch.pth", weights_only=True)
        torch.save(state | {"half": torch.full((2,), 60000.0, dtype=torch.float16)}, exp_dir / f"{epoch}epoch.pth")
    assert run(exp_dir, 2)["half"].tolist() == [60000.0, 60000.0]


def test_fewer_checkpoints_than_asked(exp_dir):
    with pytest.raises(UserError, match="4 checkpoints"):
        run(exp_dir, 5)


def test_an_epoch_that_was_not_kept(exp_dir):
    (exp_dir / "3epoch.pth").unlink()
    with pytest.raises(UserError, match=r"3epoch\.pth: not kept"):
        run(exp_dir, 2)
    assert not (exp_dir / "model.pth").exists()


@pytest.mark.parametrize("change", [{"extra": torch.zeros(1)}, {"weight": torch.zeros(3)}], ids=["name", "shape"])
def test_different_parameter_sets(exp_dir, change):
    state = torch.load(exp_dir / "4epoch.pth", weights_only=True)
    torch.save(state | change, exp_dir / "4epoch.pth")
    with pytest.raises(UserError, match=f"parameter {next(iter(change))} differs"):
        run(exp_dir, 2)


def test_a_broken_checkpoint_or_directory_is_named(exp_dir):
    path = exp_dir / "4epoch.pth"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(UserError, match=r"4epoch\.pth: not a whole checkpoint"):
        run(exp_dir, 2)
    with pytest.raises(UserError, match="no such training directory"):
        run(exp_dir / "nowhere", 2)
    with pytest.raises(UserError, match="at least 1"):
        run(exp_dir, 0)


@pytest.mark.parametrize(("best", "mean"), [(3, 3.0), (1, 2.0), (2, 2.0), (5, 4.0)])
def test_epochs_around_the_best_one_lie_inside_the_training(exp_dir, best, mean):
    """Epochs 1 to 5 hold their own numbers."""
    for epoch in range(1, 6):
        torch.save({"weight": torch.full((2,), float(epoch))}, exp_dir / f"{epoch}epoch.pth")
    (exp_dir / "valid.loss.best.pth").symlink_to(f"{best}epoch.pth")
    torch.testing.assert_close(run(exp_dir, 3, "--around_best")["weight"], torch.full((2,), mean))


def test_epochs_around_the_best_one_need_one_best_and_an_odd_number(exp_dir):
    with pytest.raises(UserError, match="there are: none"):
        run(exp_dir, 3, "--around_best")
    for name in ("valid.loss.best.pth", "valid.acc.best.pth"):
        (exp_dir / name).symlink_to("2epoch.pth")
    with pytest.raises(UserError, match=r"there are: valid\.acc\.best\.pth, valid\.loss\.best\.pth"):
        run(exp_dir, 3, "--around_best")
    with pytest.raises(UserError, match="--around_best 2: must be at least 1 and odd"):
        run(exp_dir, 2, "--around_best")


@pytest.mark.parametrize("name", ["4epoch.pth", "1epoch.pth", "latest.pth"])
def test_no_epoch_is_replaced_by_the_mean(exp_dir, name):
    (exp_dir / "latest.pth").symlink_to("4epoch.pth")
    before = (exp_dir / name).read_bytes()
    with pytest.raises(UserError, match=f"output: .*{name} is an input"):
        main(["--last", "2", "--exp_dir", str(exp_dir), "--output", str(exp_dir / name)])
    assert (exp_dir / name).read_bytes() == before
