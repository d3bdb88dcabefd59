"""Weights that can't be loaded into the model of a run are refused before it starts."""

import shutil
from dataclasses import replace

import pytest
from pretrained_models import TASKS, adapting, pretrained
from safetensors.torch import load_file, save_file
from transformers_runs import BERT, dataset, fit, make_conf

import rtrain
from rtrain.config.schema import RtrainConf
from rtrain.errors import ConfigError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.workers import make_job
from rtrain.trainers.trained import CheckpointMetadata
from rtrain.trainers.transformers.checks import empty_model
from rtrain.trainers.transformers.config import ModelConf, TokenizerConf
from rtrain.trainers.transformers.learner import WEIGHTS
from rtrain.trainers.transformers.plugin import Plugin

TASK = "sequence-classification"
QUERY = {"r": 2, "target_modules": ["query"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A base, and runs on it: adapters (one of them merged, too), and a whole model."""
    folder = tmp_path_factory.mktemp("runs")
    base = pretrained(folder / "base")
    data, conf = adapting(TASK, base, QUERY, max_epochs=1)
    fit(folder / "adapters", conf, data)
    fit(folder / "merging", replace(conf, merge_lora=True), data)
    fit(folder / "whole", replace(conf, lora=None), data)
    return folder


def conf_with(folder, lora, **keys):
    return replace(adapting(TASK, folder / "base", lora)[1], lora=lora, **keys)


def check(conf, init=None, lora=None, data=None):
    """Check a config; ``lora``: the adapters of the run that wrote the checkpoint ``init``."""
    job = make_job(RtrainConf(trainer=conf), data or dataset(), "transformers")
    Plugin().check(job)
    if init is not None:
        job.conf.run.init_from = str(init)
        wrote = CheckpointMetadata(trainer={"type": "transformers", "lora": lora}, dataset=None, info=None)
        Plugin().check_init(job, wrote)


@pytest.mark.parametrize("what", TASKS)
def test_weights_of_the_same_model_fit_for_every_task(tmp_path, what):
    data, conf = adapting(what, pretrained(tmp_path / "base", TASKS[what]), max_epochs=1)
    scratch = make_conf(what.partition(",")[0], max_epochs=1)
    for name, one in (("adapters", conf), ("whole", replace(conf, lora=None)), ("scratch", scratch)):
        fit(tmp_path / name, one, data)
        check(one, latest_checkpoint(tmp_path / name), one.lora, data)


def test_a_checkpoint_without_weights_is_told(folder, tmp_path):
    with pytest.raises(ConfigError, match=r"run\.init_from: .* has no model\.safetensors"):
        check(conf_with(folder, None), tmp_path)


def test_adapters_are_no_weights_of_a_whole_model(folder):
    with pytest.raises(ConfigError, match=r"run\.init_from: .* holds adapters .* trains a whole model") as raised:
        check(conf_with(folder, None), latest_checkpoint(folder / "adapters"), QUERY)
    assert "try: trainer.lora={r:2,target_modules:[query]}" in raised.value.hint
    assert "merge_and_unload" in raised.value.hint
    merging = latest_checkpoint(folder / "merging")
    with pytest.raises(ConfigError) as raised:
        check(conf_with(folder, None), merging, QUERY)
    assert f"trainer.model.pretrained={merging}/merged" in raised.value.hint


def test_a_whole_model_is_no_adapters(folder):
    checkpoint = latest_checkpoint(folder / "whole")
    with pytest.raises(ConfigError, match=r"run\.init_from: .* holds a whole model, .* trains adapters") as raised:
        check(conf_with(folder, QUERY), checkpoint)
    assert f"trainer.model.pretrained={checkpoint}" in raised.value.hint
    check(conf_with(folder, QUERY, model=ModelConf(config=None, pretrained=str(checkpoint))))


@pytest.mark.parametrize(
    ("key", "now", "before"),
    [
        ("r", 8, 2),
        ("target_modules", ["query", "key"], "[query]"),
        ("target_modules", ["key"], "[query]"),
        ("use_dora", True, "false"),
        ("modules_to_save", ["LayerNorm"], "null"),
    ],
)
def test_adapters_of_other_shapes_are_told_with_both_values(folder, key, now, before):
    with pytest.raises(ConfigError, match=rf"trainer\.lora\.{key} is .*, and was .* in its run\.") as raised:
        check(conf_with(folder, {**QUERY, key: now}), latest_checkpoint(folder / "adapters"), QUERY)
    assert raised.value.hint.startswith(f"try: trainer.lora.{key}={before}\n")


@pytest.mark.parametrize("change", [{"lora_alpha": 4}, {"lora_dropout": 0.5}, {"init_lora_weights": False}], ids=str)
def test_arguments_of_adapters_that_shape_no_weight_may_change(folder, change):
    check(conf_with(folder, {**QUERY, **change}), latest_checkpoint(folder / "adapters"), QUERY)


def test_weights_of_another_model_are_told(folder, tmp_path):
    checkpoint, other = latest_checkpoint(folder / "whole"), pretrained(tmp_path / "other", intermediate_size=48)
    check(conf_with(folder, None), checkpoint)
    for more in ({"intermediate_size": 48}, {"num_hidden_layers": 2}):
        other = pretrained(tmp_path / "other", **more)
        with pytest.raises(
            ConfigError, match=r"run\.init_from: its weights are those of another model: bert\..* there"
        ):
            check(conf_with(folder, None, model=ModelConf(config=None, pretrained=str(other))), checkpoint)


def test_a_tokenizer_that_is_yet_to_be_trained_leaves_its_sizes_open(tmp_path):
    fit(tmp_path, make_conf(max_epochs=1), dataset())
    check(make_conf(), latest_checkpoint(tmp_path))
    with pytest.raises(ConfigError, match="those of another model"):
        check(make_conf(model={**BERT, "intermediate_size": 48}), latest_checkpoint(tmp_path))


@pytest.mark.parametrize("inside", ["", "adapter"])
def test_a_checkpoint_of_adapters_is_no_pretrained_model(folder, inside):
    place = latest_checkpoint(folder / "adapters") / inside
    with pytest.raises(ConfigError, match=rf"pretrained: .* holds adapters .* {folder}/base, not a whole") as raised:
        check(conf_with(folder, QUERY, model=ModelConf(config=None, pretrained=str(place))))
    assert "merge_and_unload" in raised.value.hint


def test_a_folder_without_weights_is_no_pretrained_model(tmp_path):
    pretrained(tmp_path / "base")
    (tmp_path / "base" / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"trainer\.model\.pretrained: .* has no weights"):
        check(conf_with(tmp_path, None))


def test_adapters_that_were_merged_in_python_are_a_pretrained_model(folder, tmp_path):
    from rtrain.testing.workers import newest
    from rtrain.trainers.transformers.predictor import load_predictor

    data, conf = adapting(TASK, folder / "base", QUERY)
    model = load_predictor(newest(folder / "adapters", conf, data)).model
    model.merge_and_unload().save_pretrained(tmp_path / "merged")
    tokenizer = TokenizerConf(pretrained=str(latest_checkpoint(folder / "adapters")))
    check(replace(conf, model=ModelConf(config=None, pretrained=str(tmp_path / "merged")), tokenizer=tokenizer))


def test_nothing_is_written_for_weights_that_do_not_fit(tmp_path):
    words = ["num_workers=0", "dataset.limit=40", "epochs=1", "trainer.model.config.hidden_size=16"]
    first = rtrain.fit("transformers", [*words, f"run.root_dir={tmp_path}/first"])
    for more in ("trainer.model.config.intermediate_size=48", "trainer.lora={target_modules:[q_proj]}"):
        with pytest.raises(ConfigError, match=r"^run\.init_from"):
            rtrain.fit("transformers", [*words, more, f"run.root_dir={tmp_path}/next", f"run.init_from={first.path}"])
    assert not (tmp_path / "next").exists()


def test_adapters_on_a_checkpoint_of_a_run_are_told_that_they_need_it_and_those_on_a_copy_are_not(folder, tmp_path):
    def notices(place, **keys):
        conf = conf_with(folder, QUERY, model=ModelConf(config=None, pretrained=str(place)), **keys)
        return " ".join(Plugin().notices(make_job(RtrainConf(trainer=conf), dataset(), "transformers")))

    checkpoint, merged = latest_checkpoint(folder / "whole"), latest_checkpoint(folder / "merging") / "merged"
    for run in ("whole", "merging"):
        (folder / run / "manifest.json").write_text("{}")
    for number, (place, inner) in enumerate([(checkpoint, "."), (merged.parent, "merged")]):
        copy = shutil.copytree(place, tmp_path / str(number) / "checkpoints" / place.name)
        assert notices(copy / inner) == "", "no run removes it"
        link = tmp_path / f"link-{number}"
        link.symlink_to(place / inner, target_is_directory=True)
        assert "its run may remove" in notices(link)
    assert f"need {checkpoint}, which its run may remove" in notices(checkpoint)
    assert f"need {merged}, which its run may remove" in notices(merged)
    assert "trainer.merge_lora=true" in notices(checkpoint)
    assert "trainer.merge_lora=true" not in notices(checkpoint, merge_lora=True)
    assert notices(folder / "base") == ""
    conf = conf_with(folder, None, model=ModelConf(config=None, pretrained=str(checkpoint)))
    assert not Plugin().notices(make_job(RtrainConf(trainer=conf), dataset(), "transformers"))


@pytest.mark.parametrize("task", ["causal-lm", "masked-lm"])
def test_tied_weights_may_have_the_other_of_their_names(tmp_path, task):
    data, conf = dataset(task), make_conf(task, max_epochs=1)
    fit(tmp_path, conf, data)
    checkpoint = latest_checkpoint(tmp_path)
    tied = empty_model(conf, data.info).all_tied_weights_keys
    weights = load_file(checkpoint / WEIGHTS)
    assert tied
    save_file(
        {next((one for one in tied if tied[one] == name), name): weights[name] for name in weights},
        checkpoint / WEIGHTS,
    )
    check(conf, checkpoint, None, data)
