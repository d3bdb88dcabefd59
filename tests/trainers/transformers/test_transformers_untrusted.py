"""What is read of a checkpoint of another account's: no code, path or address in its configuration counts."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from attacks import pickles, watched
from pretrained_models import adapting, pretrained
from transformers import CONFIG_MAPPING
from transformers_runs import dataset, fit, make_conf

from rtrain.config.targets.builder import Builder
from rtrain.errors import CheckpointError
from rtrain.testing.workers import newest
from rtrain.trainers.transformers import untrusted
from rtrain.trainers.transformers.predictor import load_predictor
from rtrain.trainers.transformers.untrusted import MODEL_TYPES

TASKS = {"sequence-classification": {}, "causal-lm": {"lora": {"r": 2}}}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Checkpoints by task, the second one with adapters."""
    found = {}
    for task, keys in TASKS.items():
        folder, conf = tmp_path_factory.mktemp(task), make_conf(task, max_steps=1, **keys)
        fit(folder, conf, dataset(task))
        found[task] = newest(folder, conf, dataset(task))
    return found


def stolen(trained, folder):
    """Return a copy of a checkpoint as somebody else's."""
    return replace(trained, folder=shutil.copytree(trained.folder, folder / "stolen"), builder=Builder(trusted=False))


def change(file, **values):
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


@pytest.mark.parametrize("task", TASKS)
def test_a_model_of_somebody_else_predicts_the_same(trained, tmp_path, task):
    x = dataset(task).splits["val"].columns["x"]
    before = load_predictor(trained[task]).predict(x)
    copy = stolen(trained[task], tmp_path)
    with watched() as events:
        found = load_predictor(copy).predict(x)
    np.testing.assert_array_equal(found, before)
    assert not events


@pytest.mark.parametrize(
    "values",
    [
        {"auto_map": {"AutoModelForSequenceClassification": "evil.Net"}},
        {"auto_map": {"AutoConfig": "evil/repo--evil.Conf"}},
        {"configuration_files": ["config.4.0.0.json"]},
        {"model_type": "timm_wrapper"},
        {"model_type": "evil"},
        {"_attn_implementation": "evil/kernel"},
        {"attn_implementation": "kernels-community/flash-attn"},
        {"experts_implementation": "evil/kernel:run"},
        {"text_config": {"_attn_implementation": "evil/kernel"}},
        {"text_config": {"model_type": "evil"}},
        {"quantization_config": {"quant_method": "bitsandbytes"}},
        {"use_timm_backbone": True},
        {"backbone_config": {"model_type": "resnet"}},
    ],
    ids=str,
)
def test_a_configuration_that_asks_for_more_is_refused(trained, tmp_path, values):
    evil = stolen(trained["sequence-classification"], tmp_path)
    (evil.folder / "evil.py").write_text("raise SystemExit\n")
    change(evil.folder / "config.json", **values)
    with watched() as events, pytest.raises(CheckpointError) as raised:
        load_predictor(evil)
    assert "--trust" in raised.value.hint
    assert not events


@pytest.mark.parametrize("name", ["config.json", "adapter/adapter_config.json"])
@pytest.mark.parametrize(
    "later", [{"hidden_size": 24, "r": 3}, {"_attn_implementation": "evil/kernel", "r": 3}], ids=str
)
def test_what_was_checked_is_what_the_model_is_built_of(trained, tmp_path, monkeypatch, name, later):
    x = dataset("causal-lm").splits["val"].columns["x"]
    before = load_predictor(trained["causal-lm"]).predict(x)
    evil = stolen(trained["causal-lm"], tmp_path)
    read = untrusted.read_state

    def read_and_changed(folder, file):
        found = read(folder, file)
        change(folder / file, **later)
        return found

    monkeypatch.setattr(untrusted, "read_state", read_and_changed)
    np.testing.assert_array_equal(load_predictor(evil).predict(x), before)


@pytest.mark.parametrize(
    "values",
    [
        {"peft_type": "PROMPT_TUNING"},
        {"megatron_core": "evil", "megatron_config": {"a": 1}},
        {"corda_config": {"cache_file": "evil.pt"}},
        {"loftq_config": {"loftq_bits": 4}},
        {"layer_replication": [[0, 1], [0, 1]]},
        {"runtime_config": {"ephemeral_gpu_offload": True}},
        {"path": "evil"},
    ],
    ids=str,
)
def test_adapters_that_ask_for_more_are_refused(trained, tmp_path, values):
    evil = stolen(trained["causal-lm"], tmp_path)
    change(evil.folder / "adapter" / "adapter_config.json", **values)
    with watched() as events, pytest.raises(CheckpointError):
        load_predictor(evil)
    assert not events


BOMB = "(.*)*(.*)*(.*)*!"


@pytest.mark.parametrize(
    "values",
    [
        {"target_modules": BOMB},
        {"target_modules": ["c_attn", BOMB]},
        {"exclude_modules": BOMB},
        {"exclude_modules": [BOMB]},
        {"layers_pattern": [BOMB], "layers_to_transform": [0]},
        {"layers_pattern": BOMB, "layers_to_transform": [0]},
        {"modules_to_save": [BOMB]},
        {"rank_pattern": {BOMB: 2}},
        {"alpha_pattern": {BOMB: 2}},
        {"target_modules": [3]},
        {"target_modules": {"a|b": 1}},
        {"rank_pattern": [BOMB]},
    ],
    ids=str,
)
def test_adapters_name_modules_and_no_patterns(trained, tmp_path, values):
    evil = stolen(trained["causal-lm"], tmp_path)
    change(evil.folder / "adapter" / "adapter_config.json", **values)
    with pytest.raises(CheckpointError, match=next(iter(values))) as raised:
        load_predictor(evil)
    assert "--trust" in raised.value.hint


@pytest.mark.parametrize(
    "lora",
    [{"r": 2, "target_modules": "all-linear"}, {"r": 2, "target_modules": ["c_attn"], "rank_pattern": {"c_attn": 3}}],
)
def test_adapters_that_name_modules_are_read_whoever_wrote_them(tmp_path, lora):
    conf, data = make_conf("causal-lm", max_steps=1, lora=lora), dataset("causal-lm")
    fit(tmp_path, conf, data)
    found = newest(tmp_path, conf, data)
    x = data.splits["val"].columns["x"]
    np.testing.assert_array_equal(load_predictor(stolen(found, tmp_path)).predict(x), load_predictor(found).predict(x))


def test_of_the_tokenizer_no_file_code_or_class_is_named(trained, tmp_path):
    task, secret = "sequence-classification", tmp_path / "secret.json"
    secret.write_text("{}")
    x = dataset(task).splits["val"].columns["x"]
    before = load_predictor(trained[task]).predict(x)
    evil = stolen(trained[task], tmp_path)
    change(
        evil.folder / "tokenizer_config.json",
        auto_map={"AutoTokenizer": ["evil.Tokens", None]},
        tokenizer_class="BertJapaneseTokenizer",
        tokenizer_file=str(secret),
        vocab_file=str(secret),
        mecab_kwargs={"mecab_option": f"-r {secret}"},
        chat_template="{{ ''.__class__ }}",
    )
    with watched() as events:
        np.testing.assert_array_equal(load_predictor(evil).predict(x), before)
    assert not events


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "tokenizer.json"])
@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "nonsense"])
def test_files_of_another_kind_are_told(trained, tmp_path, name, text):
    evil = stolen(trained["sequence-classification"], tmp_path)
    (evil.folder / name).write_text(text)
    with pytest.raises(Exception):  # noqa: B017, PT011 (the tokenizers library has no type of its own)
        load_predictor(evil)


def test_listed_models_exist():
    assert not MODEL_TYPES - set(CONFIG_MAPPING)


@pytest.fixture
def adapters(tmp_path):
    """A checkpoint of adapters on a pretrained model, as somebody else's, and what it predicts."""
    data, conf = adapting("causal-lm", pretrained(tmp_path / "base", "gpt2"), max_steps=1)
    fit(tmp_path / "run", conf, data)
    own, x = newest(tmp_path / "run", conf, data), data.splits["val"].columns["x"]
    return stolen(own, tmp_path), x, load_predictor(own).predict(x)


def test_adapters_of_somebody_else_read_numbers_of_their_base_alone(adapters, tmp_path, monkeypatch):
    found, x, before = adapters
    base, scratch = tmp_path / "base", tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    (base / "evil.py").write_text("raise SystemExit\n")
    change(base / "config.json", auto_map={"AutoModelForCausalLM": "evil.Net"}, model_type="evil")
    change(base / "generation_config.json", custom_generate="evil")
    adapter = {"base_model_name_or_path": "evil/repository", "peft_type": "LORA"}
    (base / "adapter_config.json").write_text(json.dumps(adapter))
    (base / "pytorch_model.bin").write_bytes(next(pickles(1, f"touch {tmp_path}/it-ran")))
    with watched() as events:
        predicted = load_predictor(found).predict(x)
    np.testing.assert_array_equal(predicted, before)
    assert not [event for event in events if str(scratch) not in event]
    assert not list(scratch.iterdir())
    assert not (tmp_path / "it-ran").exists()


def test_a_base_of_pickles_is_not_opened_for_somebody_else(adapters, tmp_path):
    found, _, _ = adapters
    (tmp_path / "base" / "model.safetensors").unlink()
    (tmp_path / "base" / "pytorch_model.bin").write_bytes(next(pickles(1, f"touch {tmp_path}/it-ran")))
    with watched() as events, pytest.raises(CheckpointError, match="can't be loaded"):
        load_predictor(found)
    assert not [event for event in events if event.startswith(("pickle", "socket", "subprocess", "os."))]


@pytest.mark.parametrize("name", ["evil/repository", "../../evil", "http://127.0.0.1:1/evil", "evil"])
def test_nothing_is_downloaded_for_somebody_else(adapters, name):
    found, _, _ = adapters
    change(found.folder / "base.json", pretrained=name, folder=None, revision="0" * 40)
    for named in (name, "evil/other"):  # what the config says is of the same hand
        there = replace(found, conf=replace(found.conf, model=replace(found.conf.model, pretrained=named)))
        with watched() as events, pytest.raises(CheckpointError) as raised:
            load_predictor(there)
        assert not [event for event in events if event.startswith(("socket", "urllib"))]
        assert raised.value.hint is not None


@pytest.mark.parametrize(
    "values",
    [{"sha256": "0" * 64}, {"sha256": 3}, {"folder": 3}, {"pretrained": None}],
    ids=str,
)
def test_a_base_that_is_named_wrongly_is_told(adapters, values):
    found, _, _ = adapters
    change(found.folder / "base.json", **values)
    with pytest.raises(CheckpointError):
        load_predictor(found)


@pytest.mark.parametrize("key", ["transformers_weights", "fusion_config", "distributed_config"])
def test_a_configuration_chooses_no_files_and_patches(adapters, key):
    found, _, _ = adapters
    change(found.folder / "config.json", **{key: {"evil": True}})
    with pytest.raises(CheckpointError, match=key):
        load_predictor(found)
