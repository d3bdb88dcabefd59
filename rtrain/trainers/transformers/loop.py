"""Train a model of transformers: the same loop on every rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch.distributed as dist

from rtrain.datasets.base import Dataset
from rtrain.trainers.loops.epochs.loop import EpochLoop
from rtrain.trainers.torch.optimization.unused import unused_named
from rtrain.trainers.torch.process_settings import training_settings
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.transformers.build import task_of
from rtrain.trainers.transformers.learner import UNUSED, TransformersLearner
from rtrain.trainers.transformers.token_splits import SplitTexts, encoded_dataset
from rtrain.trainers.transformers.tokens import load_tokenizer, open_tokenizer, train_tokenizer
from rtrain.trainers.worker import Worker


def train(worker: Worker) -> None:
    """Train until a limit is reached, a metric stops improving, or all ranks agree to stop."""
    with training_settings(worker, deterministic=True):
        ranks = TorchRanks.of(worker)
        tokenizer = make_tokenizer(worker, ranks)
        task = task_of(worker.conf, worker.data.info)
        dataset = encoded_dataset(worker.data, tokenizer, worker.conf, task)
        encoded = replace(worker, dataset=dataset)
        learner = TransformersLearner(encoded, ranks, dataset, tokenizer)
        if dataset.info.dtype != worker.data.info.dtype:
            learner.row_counts = "num_packed_rows"  # which are not rows of the dataset
        with unused_named(learner.model, UNUSED):
            EpochLoop(encoded, worker.conf, learner, ranks).run()


def make_tokenizer(worker: Worker, ranks: TorchRanks) -> Any:
    """Return the tokenizer of the checkpoint that the run resumes from, else of the config; None without texts."""
    dataset: Dataset | None = worker.dataset
    assert dataset is not None
    if dataset.info.dtype != "object":
        return None
    folder = worker.resume_dir()
    if folder is not None:
        return load_tokenizer(folder, "the checkpoint")
    tokenizer = open_tokenizer(worker.conf)
    if tokenizer is not None:
        return tokenizer
    if ranks.rank == 0:
        texts = SplitTexts(dataset.splits["train"])
        tokenizer = train_tokenizer(worker.conf.tokenizer, texts, worker.conf.max_length)
    if ranks.size == 1:
        return tokenizer
    made = [tokenizer]
    dist.broadcast_object_list(made, src=0)
    return made[0]
