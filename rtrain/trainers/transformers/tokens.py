"""From texts to tokens: tokenizers, rows of tokens, and batches of equal length."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from rtrain.datasets.base import Columns, Dataset, ResidentSplit, concatenated, objects
from rtrain.errors import ConfigError, DatasetError
from rtrain.trainers.transformers.config import Conf, TokenizerConf
from rtrain.trainers.transformers.hub import NOT_THERE, local_only
from rtrain.trainers.transformers.token_cache import Arrays, Cache, cached, uncached

SPECIAL = {
    "unk_token": "[UNK]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
    "eos_token": "[EOS]",
}
IGNORED = -100
"""Target of a place that is not predicted."""


def open_tokenizer(conf: Conf) -> Any:
    """Return the tokenizer that was made before, or None if one is to be trained.

    Raises:
        ConfigError: It does not exist, or has no fast version.
    """
    name = conf.tokenizer.pretrained or (None if conf.tokenizer.train else conf.model.pretrained)
    if conf.tokenizer.train is not None:
        return None
    if name is None:
        raise ConfigError(
            "trainer.tokenizer is not chosen.",
            "Set trainer.tokenizer.pretrained, or train one on the dataset: trainer.tokenizer.train=wordpiece",
        )
    return load_tokenizer(name, f"trainer.{'tokenizer' if conf.tokenizer.pretrained else 'model'}.pretrained")


def load_tokenizer(name: str | Path, where: str, found: Any = None) -> Any:
    """Return a tokenizer from a folder or the hub; no code of its repository is run.

    Args:
        name: Folder, or name on the hub.
        where: For messages.
        found: The tokenizer, if it has been read another way.
    """
    try:
        tokenizer = found or AutoTokenizer.from_pretrained(name, trust_remote_code=False, **local_only(str(name)))
    except (OSError, ValueError) as error:
        problem = NOT_THERE if local_only(str(name)) else str(error)
        raise ConfigError(f"{where}: there is no tokenizer at {name}: {problem}") from error
    if not tokenizer.is_fast:
        raise ConfigError(f"{where}: the tokenizer of {name} has no fast version.")
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):  # transformers makes up an empty one
        raise ConfigError(
            f"{where}: there is no tokenizer at {name}.",
            "Set another one with trainer.tokenizer.pretrained, or train one: trainer.tokenizer.train=wordpiece",
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token or SPECIAL["pad_token"]
    return tokenizer


def train_tokenizer(conf: TokenizerConf, rows: np.ndarray, max_length: int) -> Any:
    """Return a tokenizer made of texts, or of lists of words; it may be cached."""
    made = cached(rows, {"train": asdict(conf)}, lambda: {"json": _bytes_of(_trained(conf, rows))})
    tokenizer = Tokenizer.from_str(made["json"].tobytes().decode())
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=max_length, **SPECIAL)


def _bytes_of(tokenizer: Tokenizer) -> np.ndarray:
    return np.frombuffer(tokenizer.to_str().encode(), np.uint8)


def _trained(conf: TokenizerConf, rows: Iterable[Any]) -> Tokenizer:
    texts = [row if isinstance(row, str) else " ".join(row) for row in rows]
    texts = [text.lower() for text in texts] if conf.lowercase else texts
    make = {"bpe": _bytes, "wordpiece": _pieces, "characters": _characters}[str(conf.train)]
    tokenizer = make(texts, conf.vocab_size)
    if conf.lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    return tokenizer


def _bytes(texts: Sequence[str], vocab_size: int) -> Tokenizer:
    """Pairs of bytes that come often (Sennrich et al., 2016), as GPT-2 has them."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _pieces(texts: Sequence[str], vocab_size: int) -> Tokenizer:
    """Pieces of words, as BERT has them."""
    learning = Tokenizer(models.WordPiece(unk_token=SPECIAL["unk_token"]))
    learning.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    # The trainer numbers inner letters in an order that changes from run to run, unless they are there before.
    inner = sorted({f"##{letter}" for text in texts for letter in text if not letter.isspace()})
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=[*SPECIAL.values(), *inner], show_progress=False
    )
    learning.train_from_iterator(texts, trainer)
    tokenizer = Tokenizer(models.WordPiece(learning.get_vocab(), unk_token=SPECIAL["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _characters(texts: Sequence[str], vocab_size: int) -> Tokenizer:
    """Every letter for itself."""
    letters = sorted({letter for text in texts for letter in text})
    words = [*SPECIAL.values(), *letters][:vocab_size]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=SPECIAL["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


def encoded_dataset(dataset: Dataset, tokenizer: Any, conf: Conf, task: str) -> Dataset:
    """Return the dataset with rows of tokens in place of texts; of long texts they may be cached.

    ``x`` and ``y`` are (rows,) of dtype object, int64 arrays of each row's own length; packed rows are all as long.
    """
    if dataset.info.dtype != "object":
        return dataset
    splits = {}
    for name, split in dataset.splits.items():
        rows = encoded(concatenated(list(split.own_rows(0, 1))), tokenizer, conf, task, cached)
        if len(rows["x"]) == 0:
            raise DatasetError(
                f"the texts of the split '{name}' don't fill one row of {conf.max_length} tokens.",
                "Lower trainer.max_length, or add more text.",
            )
        splits[name] = ResidentSplit(rows)
    num_rows = {name: split.num_rows for name, split in splits.items()}
    info = replace(dataset.info, num_rows=num_rows)
    if task == "causal-lm" and conf.packing:
        info = replace(info, dtype="int64", input_shape=(conf.max_length,))
    return replace(dataset, info=info, splits=splits)


def encoded(columns: Columns, tokenizer: Any, conf: Conf, task: str, cache: Cache = uncached) -> Columns:
    """Return rows of tokens, and targets, for texts; see ``encoded_dataset``."""
    texts, how = columns["x"], {"tokenizer": _identity(tokenizer)}
    if task == "causal-lm" and conf.packing:
        joined = cache(texts, {**how, "joined": True}, lambda: {"tokens": _joined(texts, tokenizer)})
        return _packed(joined["tokens"], conf.max_length)
    if task == "token-classification":  # tags need the words of the tokens
        rows = tokenize(texts, tokenizer, conf.max_length)
        return {"x": objects(list(map(_int64, rows["input_ids"]))), "y": objects(_tags(rows, columns["y"]))}
    length = conf.max_length + (task == "causal-lm")
    found = cache(texts, {**how, "max_length": length}, lambda: _flat(texts, tokenizer, length))
    ids = [found["tokens"][begin:end] for begin, end in pairwise([0, *found["ends"].tolist()])]
    if task == "causal-lm":
        return {"x": objects([row[:-1] for row in ids]), "y": objects([row[1:] for row in ids])}
    return {"x": objects(ids), "y": objects(ids) if task == "masked-lm" else columns["y"]}


def _int64(row: Sequence[int]) -> np.ndarray:
    return np.asarray(row, np.int64)


def _identity(tokenizer: Any) -> Any:
    """Return all of a tokenizer that decides which tokens it makes; each use changes how it cuts and fills rows."""
    made = json.loads(tokenizer.backend_tokenizer.to_str())
    kept = {name: value for name, value in made.items() if name not in ("truncation", "padding")}
    return [type(tokenizer).__name__, kept, tokenizer.special_tokens_map, tokenizer.truncation_side]


def _flat(texts: np.ndarray, tokenizer: Any, max_length: int) -> Arrays:
    """Return the tokens of all texts one after another, and where those of each one end."""
    ids = tokenize(texts, tokenizer, max_length)["input_ids"]
    ends = np.cumsum([len(row) for row in ids], dtype=np.int64)
    return {"tokens": np.fromiter(chain.from_iterable(ids), np.int64), "ends": ends}


def tokenize(texts: np.ndarray, tokenizer: Any, max_length: int) -> Any:
    """Return the tokens of each text, or list of words."""
    words = bool(len(texts)) and not isinstance(texts[0], str)
    return tokenizer(list(texts), truncation=True, max_length=max_length, is_split_into_words=words)


def _tags(rows: Any, tags: np.ndarray) -> list[np.ndarray]:
    """Give the tag of a word to its first token."""
    found = []
    for row, of_words in enumerate(tags):
        places = np.full(len(rows["input_ids"][row]), IGNORED, np.int64)
        for word, place in first_tokens(rows, row).items():
            places[place] = of_words[word]
        found.append(places)
    return found


def first_tokens(rows: Any, row: int) -> dict[int, int]:
    """Return the place of the first token of each word that was not cut off."""
    places: dict[int, int] = {}
    for place, word in enumerate(rows.word_ids(row)):
        if word is not None:
            places.setdefault(word, place)
    return places


def _joined(texts: np.ndarray, tokenizer: Any) -> np.ndarray:
    """Return the tokens of all texts, each with an end."""
    end = [tokenizer.eos_token_id] if tokenizer.eos_token_id is not None else []
    ids = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    return np.fromiter((token for row in ids for token in (*row, *end)), np.int64)


def _packed(every: np.ndarray, length: int) -> Columns:
    """Cut tokens into rows; what doesn't fill a row is left out."""
    count = max(0, len(every) - 1) // length
    return {
        "x": every[: count * length].reshape(count, length),
        "y": every[1 : count * length + 1].reshape(-1, length),
    }


def padded(rows: Sequence[np.ndarray], value: int) -> np.ndarray:
    """Return (rows, length of the longest) int64."""
    found = np.full((len(rows), max((len(row) for row in rows), default=1) or 1), value, np.int64)
    for index, row in enumerate(rows):
        found[index, : len(row)] = row
    return found


def masked(rows: Sequence[np.ndarray], tokenizer: Any, share: float, seed: tuple[int, ...]) -> tuple[Any, Any]:
    """Return rows with some tokens masked, and targets there (Devlin et al., 2018).

    What is masked depends on ``seed`` and on the row alone, so that any number of workers masks the same.
    """
    inputs, targets = [], []
    special = np.asarray(sorted(tokenizer.all_special_ids))
    for row in rows:
        rng = np.random.default_rng((*seed, zlib.crc32(row.tobytes())))
        free = np.flatnonzero(~np.isin(row, special))
        chosen = rng.permutation(free)[: max(1, round(share * len(free)))]
        target = np.full(len(row), IGNORED, np.int64)
        target[chosen] = row[chosen]
        changed, fate = row.copy(), rng.random(len(chosen))
        changed[chosen[fate < 0.8]] = tokenizer.mask_token_id
        random = chosen[fate >= 0.9]
        changed[random] = rng.integers(0, len(tokenizer), len(random))
        inputs.append(changed)
        targets.append(target)
    return inputs, targets
