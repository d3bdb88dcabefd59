"""Which modules are sharded, or computed a second time: patterns, lists in lists, and the order of what is nested."""

import random

import pytest
from safetensors.torch import load_file
from torch import nn
from torch_runs import assert_same, fit, fit_rank, make_conf, small_dataset

import rtrain
from rtrain.errors import ConfigError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.trainers.torch.config import StrategyConf
from rtrain.trainers.torch.strategies.blocks import blocks_of, innermost_first, matches, recomputed_blocks


class Block(nn.Module):
    def __init__(self, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return x


def grow(rng, depth):
    """A random tree of blocks, sequences, lists, dicts and layers."""
    kinds = [Block, nn.Sequential, nn.ModuleList, nn.ModuleDict] if depth else [nn.Linear]
    kind = rng.choice(kinds)
    if kind is nn.Linear:
        return nn.Linear(2, 2)
    children = [grow(rng, rng.randrange(depth)) for _ in range(rng.randrange(1, 4))]
    named = {f"part{number}": child for number, child in enumerate(children)}
    if kind is Block:
        return Block(**named)
    return nn.Sequential(*children) if kind is nn.Sequential else kind(named if kind is nn.ModuleDict else children)


@pytest.mark.parametrize("seed", range(40))
def test_blocks_of_any_tree_can_be_called_and_hold_no_other_block(seed):
    model = Block(body=grow(random.Random(seed), 5))
    blocks = blocks_of(model, StrategyConf())
    lists = [name for name, module in model.named_modules() if isinstance(module, nn.ModuleList)]
    for name, block in blocks.items():
        assert not isinstance(block, nn.ModuleList | nn.ModuleDict)
        assert any(name.startswith(f"{one}.") for one in lists)
        assert not any(other.startswith(f"{name}.") for other in blocks)
    covered = [name for name, one in model.named_modules() if isinstance(one, nn.Linear)]
    covered = [name for name in covered if any(name.startswith(f"{one}.") for one in lists)]
    assert all(any(f"{name}.".startswith(f"{block}.") for block in blocks) for name in covered)


@pytest.mark.parametrize("seed", range(40))
def test_a_pattern_names_modules_of_its_own_depth_and_inner_ones_come_first(seed):
    rng = random.Random(seed)
    model = Block(body=grow(rng, 5))
    callable_ = [name for name, one in model.named_modules() if name and type(one).forward is not nn.Module.forward]
    chosen = rng.sample(callable_, min(len(callable_), 4))
    names = {id(module): name for name, module in model.named_modules()}
    found = [names[id(one)] for one in innermost_first(blocks_of(model, StrategyConf(blocks=chosen)))]
    assert sorted(found) == sorted(chosen)
    for place, name in enumerate(found):
        assert not any(name.startswith(f"{earlier}.") for earlier in found[:place])


@pytest.mark.parametrize(
    ("name", "pattern", "expected"),
    [
        ("layers.0", "layers.*", True),
        ("layers.0.attn", "layers.*", False),
        ("layers.0.attn", "layers.*.attn", True),
        ("layers", "layers.*", False),
        ("encoder.layer.3", "*.layer.[0-3]", True),
        ("layers_0", "layers*", True),
    ],
)
def test_a_star_stays_between_two_dots(name, pattern, expected):
    assert matches(name, pattern) is expected


def test_a_container_that_is_named_is_refused_with_its_members():
    with pytest.raises(ConfigError) as error:
        blocks_of(Block(layers=nn.ModuleList([nn.Linear(2, 2)])), StrategyConf(blocks=["layers"]))
    assert "[layers.*]" in error.value.hint


def test_a_block_with_two_names_is_one_block():
    shared = nn.Linear(2, 2)
    model = Block(first=nn.ModuleList([shared, nn.Linear(2, 2)]), second=nn.ModuleList([shared]))
    assert list(blocks_of(model, StrategyConf())) == ["first.0", "first.1"]


def test_every_second_block_is_computed_again():
    layers = nn.ModuleList([Block(attn=nn.Linear(2, 2), ff=nn.Sequential(nn.Linear(2, 2))) for _ in range(4)])
    model = Block(layers=layers)
    for blocks in ([], ["layers.*"]):
        options = StrategyConf(blocks=blocks, activation_checkpointing=2)
        assert recomputed_blocks(model, options) == [layers[1], layers[3]]


class Nested(nn.Module):
    """Blocks in a list of lists, each of which has layers in a list of its own."""

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList(nn.ModuleList([Stage(), Stage()]) for _ in range(2))
        self.stem, self.head = nn.Linear(64, 16), nn.Linear(16, 3)

    def forward(self, x):
        x = self.stem(x.flatten(1))
        for stage in self.stages:
            for block in stage:
                x = block(x)
        return self.head(x)


class Stage(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16), nn.Linear(16, 16)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return x


@pytest.mark.parametrize("blocks", [[], ["stages.*.*", "stages.*.*.layers.*"]], ids=["lists", "nested"])
def test_two_workers_shard_lists_of_lists_and_blocks_inside_of_blocks(world, tmp_path, blocks):
    model = {"_target_": f"{__name__}.Nested"}
    keys = {"model": model, "max_epochs": 1, "global_batch_size": 64}
    options = StrategyConf(blocks=blocks, activation_checkpointing=2)
    world.run(_fit, str(tmp_path / "two"), make_conf(strategy="fsdp", strategy_options=options, **keys))
    rtrain.consolidate(latest_checkpoint(tmp_path / "two"), tmp_path / "whole.safetensors")
    _, expected = fit(tmp_path / "one", make_conf(**keys), dataset=small_dataset())
    assert_same(expected, load_file(tmp_path / "whole.safetensors"), rtol=1e-3, atol=1e-5)


@pytest.fixture(autouse=True)
def allowed_as_before(monkeypatch):
    from rtrain.config.targets import allow_list

    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {__name__})


def _fit(rank, folder, conf):
    from rtrain.config.targets import allow_list

    allow_list.FRAMEWORKS = allow_list.FRAMEWORKS | {__name__}
    return fit_rank(rank, folder, conf, dataset=small_dataset())
