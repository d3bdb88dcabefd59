"""From texts to tokens: tokenizers, rows of tokens, and batches of equal length."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from rtrain.datasets.base import Columns, objects
from rtrain.errors import ConfigError
from rtrain.trainers.transformers.config import Conf, TokenizerConf
from rtrain.trainers.transformers.hub import NOT_THERE, local_only
from rtrain.trainers.transformers.token_cache import Arrays, Texts, cached

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


def train_tokenizer(conf: TokenizerConf, texts: Texts, max_length: int) -> Any:
    """Return a tokenizer made of texts, or of lists of words; it may be cached."""
    made = cached(texts, {"train": asdict(conf)}, lambda: [{"json": _bytes_of(_trained(conf, texts))}])
    tokenizer = Tokenizer.from_str(made["json"].tobytes().decode())
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=max_length, **SPECIAL)


def _bytes_of(tokenizer: Tokenizer) -> np.ndarray:
    return np.frombuffer(tokenizer.to_str().encode(), np.uint8)


def _trained(conf: TokenizerConf, texts: Texts) -> Tokenizer:
    make = {"bpe": _bytes, "wordpiece": _pieces, "characters": _characters}[str(conf.train)]
    tokenizer = make(_Lines(texts, conf.lowercase), conf.vocab_size)
    if conf.lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    return tokenizer


@dataclass(frozen=True)
class _Lines:
    """Each text or list of words as one str, as often as wanted."""

    texts: Texts
    lowercase: bool

    def __iter__(self) -> Iterator[str]:
        for row in chain.from_iterable(self.texts):
            text = row if isinstance(row, str) else " ".join(row)
            yield text.lower() if self.lowercase else text


def _bytes(texts: Iterable[str], vocab_size: int) -> Tokenizer:
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


def _pieces(texts: Iterable[str], vocab_size: int) -> Tokenizer:
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


def _characters(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Every letter for itself."""
    letters = sorted({letter for text in texts for letter in text})
    words = [*SPECIAL.values(), *letters][:vocab_size]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=SPECIAL["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


def encoded_language(texts: np.ndarray, tokenizer: Any, conf: Conf, task: str) -> Columns:
    """Return rows of tokens, and targets, for texts to model; see ``token_splits.encoded_dataset``."""
    if task == "causal-lm" and conf.packing:
        return packed(joined(texts, tokenizer), conf.max_length)
    rows = tokenize(texts, tokenizer, conf.max_length + (task == "causal-lm"))
    return with_targets([np.asarray(row, np.int64) for row in rows["input_ids"]], None, task)


def with_targets(ids: Sequence[np.ndarray], y: np.ndarray | None, task: str) -> Columns:
    """Return rows of tokens with their targets: those of a language model are the tokens."""
    if task == "causal-lm":
        return {"x": objects([row[:-1] for row in ids]), "y": objects([row[1:] for row in ids])}
    x = objects(ids)
    return {"x": x, "y": x if task == "masked-lm" or y is None else y}


def identity(tokenizer: Any) -> Any:
    """Return all of a tokenizer that decides which tokens it makes; each use changes how it cuts and fills rows."""
    made = json.loads(tokenizer.backend_tokenizer.to_str())
    kept = {name: value for name, value in made.items() if name not in ("truncation", "padding")}
    return [type(tokenizer).__name__, kept, tokenizer.special_tokens_map, tokenizer.truncation_side]


def tokens_of(texts: np.ndarray, tokenizer: Any, max_length: int) -> Arrays:
    """Return the tokens of all texts one after another, and how many those of each one are.

    Of lists of words, ``words`` has for the first token of each word the word's number in its row, and -1 for others.
    """
    rows = tokenize(texts, tokenizer, max_length)
    ids = rows["input_ids"]
    lengths = np.asarray([len(row) for row in ids], np.int64)
    found = {"tokens": np.fromiter(chain.from_iterable(ids), np.int64), "lengths": lengths}
    if not _are_words(texts):
        return found
    words = [_words(rows, row, int(length)) for row, length in enumerate(lengths)]
    return {**found, "words": np.concatenate(words)}


def tokenize(texts: np.ndarray, tokenizer: Any, max_length: int) -> Any:
    """Return the tokens of each text, or list of words."""
    return tokenizer(list(texts), truncation=True, max_length=max_length, is_split_into_words=_are_words(texts))


def _are_words(texts: np.ndarray) -> bool:
    return bool(len(texts)) and not isinstance(texts[0], str)


def _words(rows: Any, row: int, length: int) -> np.ndarray:
    words = np.full(length, -1, np.int64)
    for word, place in first_tokens(rows, row).items():
        words[place] = word
    return words


def tags_of(words: np.ndarray, tags: np.ndarray) -> np.ndarray:
    """Return the targets of the tokens of a row: the first token of a word has its tag.

    Args:
        words: (tokens,) as ``tokens_of`` has them.
        tags: (words of the row,) int64.
    """
    found = np.full(len(words), IGNORED, np.int64)
    found[words >= 0] = tags[words[words >= 0]]
    return found


def first_tokens(rows: Any, row: int) -> dict[int, int]:
    """Return the place of the first token of each word that was not cut off."""
    places: dict[int, int] = {}
    for place, word in enumerate(rows.word_ids(row)):
        if word is not None:
            places.setdefault(word, place)
    return places


def joined(texts: np.ndarray, tokenizer: Any) -> np.ndarray:
    """Return the tokens of all texts, each with an end."""
    end = [tokenizer.eos_token_id] if tokenizer.eos_token_id is not None else []
    ids = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    return np.fromiter((token for row in ids for token in (*row, *end)), np.int64)


def packed(every: np.ndarray, length: int) -> Columns:
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
