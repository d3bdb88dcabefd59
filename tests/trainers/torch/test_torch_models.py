"""The models that rtrain brings, and the options of its config groups."""

from pathlib import Path

import pytest
import torch
import yaml
from torch_runs import EXACT, SGD, RecordingChannel, assert_same, fit, make_conf, small_dataset, token_dataset

import rtrain
from rtrain.config.targets.builder import Builder
from rtrain.models.torch import MLP, ResNet
from rtrain.trainers.torch.build import fill_from_dataset
from rtrain.trainers.torch.schedules import warmup_cosine

OPTIONS = Path(rtrain.__file__).parent.parent / "configs" / "trainer"


def options(group):
    return sorted((OPTIONS / group).glob("*.yaml"))


def read(path):
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize("path", options("model"), ids=lambda path: path.stem)
def test_every_model_option_builds(path):
    images = small_dataset(shape=(3, 64, 64), num_train=2, num_test=2).info
    tokens = token_dataset().info
    info, rows = (tokens, torch.zeros(2, 8).long()) if path.stem == "gpt" else (images, torch.zeros(2, 3, 64, 64))
    with torch.device("meta"):
        model = Builder().build(fill_from_dataset(read(path), info), "trainer.model")
        assert model(rows.to("meta")).shape == ((2, 8, 7) if path.stem == "gpt" else (2, 3))


@pytest.mark.parametrize("path", options("optimizer"), ids=lambda path: path.stem)
def test_every_optimizer_option_trains_and_resumes(tmp_path, path):
    conf = make_conf(optimizer=read(path), max_epochs=2)
    _, expected = fit(tmp_path / "a", conf)
    fit(tmp_path / "b", conf, channel=RecordingChannel(stop_after=2))
    assert_same(expected, fit(tmp_path / "b", conf)[1], **EXACT)


@pytest.mark.parametrize("path", options("scheduler"), ids=lambda path: path.stem)
@pytest.mark.parametrize("interval", ["step", "epoch"])
def test_every_scheduler_option_trains_and_resumes(tmp_path, path, interval):
    conf = make_conf(scheduler=read(path), scheduler_interval=interval, max_epochs=3)
    first, expected = fit(tmp_path / "a", conf)
    fit(tmp_path / "b", conf, channel=RecordingChannel(stop_after=5))
    second, found = fit(tmp_path / "b", conf)
    assert_same(expected, found, **EXACT)
    assert first.metrics["train/lr"] == second.metrics["train/lr"]


@pytest.mark.parametrize("path", options("loss"), ids=lambda path: path.stem)
def test_every_loss_option_is_valid(path):
    Builder().check_node(read(path), "trainer.loss")


@pytest.mark.parametrize(("name", "weights"), [("resnet18", 11_689_512), ("resnet50", 25_557_032)])
def test_the_large_resnets_have_the_known_number_of_weights(name, weights):
    node = {**read(OPTIONS / "model" / f"{name}.yaml"), "in_channels": 3, "num_classes": 1000}
    with torch.device("meta"):
        model = Builder().build(node, "trainer.model")
    assert sum(parameter.numel() for parameter in model.parameters()) == weights


@pytest.mark.parametrize("block", ["basic", "bottleneck"])
@pytest.mark.parametrize("stem", ["small", "imagenet"])
@pytest.mark.parametrize("norm", ["batch", "group"])
def test_a_resnet_starts_with_its_shortcuts_and_passes_gradients(block, stem, norm):
    model = ResNet(1, 5, layers=[1, 2], width=8, block=block, stem=stem, norm=norm)
    model(torch.randn(4, 1, 32, 32)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("keys", [{"block": "fancy"}, {"stem": "big"}, {"norm": "layer"}])
def test_unknown_parts_of_a_resnet_are_refused(keys):
    with pytest.raises(ValueError, match=next(iter(keys))):
        ResNet(1, 5, **keys)


def test_an_unknown_activation_is_refused():
    with pytest.raises(ValueError, match="activation"):
        MLP(4, 2, activation="relo")


def test_warmup_cosine_rises_and_falls():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=SGD["lr"])
    schedule = warmup_cosine(optimizer, num_training_steps=10, num_warmup_steps=4, final_share=0.1)
    rates = []
    for _ in range(11):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates[:5] == pytest.approx([0.02, 0.04, 0.06, 0.08, 0.1])
    assert rates[4:] == sorted(rates[4:], reverse=True)
    assert rates[10] == pytest.approx(0.01)
