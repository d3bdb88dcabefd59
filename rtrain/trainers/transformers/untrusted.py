"""What is read of a checkpoint that another account wrote: numbers and names, and no path, address or code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from huggingface_hub import snapshot_download
from transformers import CONFIG_MAPPING, PreTrainedTokenizerFast

from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import read_state
from rtrain.trainers.trained import TRUST

_MODEL_TYPES = """
albert bert bloom camembert convnext convnextv2 deberta deberta-v2 deit dinov2 distilbert electra ernie falcon gemma
gemma2 gemma3_text gpt2 gpt_bigcode gpt_neo gpt_neox gptj granite llama mistral mixtral mobilebert mobilenet_v2
mobilevit modernbert mpnet olmo olmo2 opt phi phi3 qwen2 qwen3 regnet rembert resnet roberta roberta-prelayernorm
roformer segformer smollm3 squeezebert stablelm starcoder2 swin swinv2 vit xlm-roberta xlm-roberta-xl
"""
MODEL_TYPES = frozenset(_MODEL_TYPES.split())
"""Models that are built of their configuration alone; others fetch parts, or ask other libraries for them."""
UNWANTED = (
    "auto_map",
    "quantization_config",
    "backbone",
    "use_kernels",
    "kernel_config",
    "trust_remote_code",
    "gguf",
    "adapter",
    "configuration_files",
    "transformers_weights",
    "fusion_config",
    "distributed_config",
)
"""Parts of the names of keys that ask for code, other files or other libraries."""
WAYS = (None, "eager", "sdpa", "flex_attention", "grouped_mm", "batched_mm")
"""Values of ``attn_implementation`` and the like; others are fetched from the hub."""
TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
SIDES = ("padding_side", "truncation_side")
_LORA_KEYS = """
alpha_pattern bias exclude_modules fan_in_fan_out inference_mode layers_pattern layers_to_transform lora_alpha
lora_dropout modules_to_save peft_type r rank_pattern target_modules task_type use_dora use_rslora
"""
LORA_KEYS = frozenset(_LORA_KEYS.split())
_ABOUT_LORA = ("auto_mapping", "base_model_name_or_path", "init_lora_weights", "peft_version", "revision")
"""Keys of no effect on a model whose weights are there."""
_PATTERNS = ("target_modules", "exclude_modules", "layers_pattern", "modules_to_save", "rank_pattern", "alpha_pattern")
"""Keys whose texts peft uses as regular expressions, some of which never end."""
_NAME = re.compile(r"[\w.-]+")


def load_config(folder: Path) -> Any:
    """Return the configuration of the model, made of what was checked: the file is read once, by one parser.

    Raises:
        CheckpointError: The model is none of those that are known to be built of it alone.
    """
    stored = read_state(folder, "config.json")
    if "model_type" not in stored:
        raise CheckpointError(f"{folder}/config.json names no model_type.")
    for key, value in _items(stored):
        if not _is_plain(key, value):
            raise CheckpointError(
                f"{folder} was written by another account: {key}={value!r} in its config.json could run code.",
                TRUST,
            )
    return CONFIG_MAPPING[stored["model_type"]].from_dict(stored)


def _is_plain(key: str, value: Any) -> bool:
    if key == "model_type":
        return value in MODEL_TYPES
    if "_implementation" in key:
        return value in WAYS
    return not (value and any(one in key for one in UNWANTED))


def load_tokenizer(folder: Path) -> Any:
    """Return the tokenizer in ``tokenizer.json``, with its special tokens.

    Raises:
        CheckpointError: There is none.
    """
    stored = read_state(folder, "tokenizer_config.json")
    tokens = {name: _token(stored[name]) for name in TOKENS if stored.get(name) is not None}
    sides = {name: stored[name] for name in SIDES if stored.get(name) in ("left", "right")}
    length = stored.get("model_max_length")
    more = {"model_max_length": int(length)} if isinstance(length, int) else {}
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise CheckpointError(f"{folder} has no tokenizer.json.")
    return PreTrainedTokenizerFast(tokenizer_file=str(path), **tokens, **sides, **more)


def lora_config(folder: Path) -> Any:
    """Return the configuration of adapters.

    Raises:
        CheckpointError: It asks for more than adapters of numbers.
    """
    from peft import LoraConfig

    stored, usual = read_state(folder, "adapter_config.json"), LoraConfig().to_dict()
    for key, value in stored.items():
        if key not in LORA_KEYS and key not in _ABOUT_LORA and value != usual.get(key):
            raise CheckpointError(
                f"{folder} was written by another account, and its adapters set {key}={value!r}.", TRUST
            )
    if stored.get("peft_type") != "LORA":
        raise CheckpointError(f"{folder} contains no LoRA adapters.")
    for key in _PATTERNS:
        value = stored.get(key)
        if not all(isinstance(one, str) and _NAME.fullmatch(one) for one in _texts(value)):
            message = (
                f"{folder} was written by another account: {key}={value!r:.200} is a pattern, not names of modules."
            )
            raise CheckpointError(message, TRUST)
    return LoraConfig(**{key: stored[key] for key in LORA_KEYS & stored.keys() if key != "peft_type"})


@contextmanager
def plain_weights(place: str, revision: str | None, config: Any) -> Iterator[Path]:
    """Yield a folder with the safetensors of a pretrained model that is on this machine, and with no other file of it.

    Args:
        place: Folder, or name on the hub.
        revision: Its commit there.
        config: What was checked, for which they are.

    Raises:
        OSError, ValueError: It was not downloaded.
    """
    folder = Path(place)
    if not folder.is_dir():
        folder = Path(snapshot_download(place, revision=revision, local_files_only=True))
    with TemporaryDirectory() as scratch:
        config.save_pretrained(scratch)
        for file in folder.glob("model*.safetensors*"):
            if file.is_file():
                (Path(scratch) / file.name).symlink_to(file.absolute())
        yield Path(scratch)


def _texts(value: Any) -> list[Any]:
    """Return the texts of a key of adapters: one, those of a list, or the keys of a mapping."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | Mapping) else [value]


def _items(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield each key and value at any depth."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield str(key), value
            yield from _items(value)
    elif isinstance(node, list):
        for one in node:
            yield from _items(one)


def _token(value: Any) -> str:
    return str(value["content"] if isinstance(value, Mapping) else value)
