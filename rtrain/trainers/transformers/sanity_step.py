"""The first step of a transformers training, tried on the driver with the first rows."""

from __future__ import annotations

from dataclasses import replace

import torch

from rtrain.datasets.base import EpochPlan, ResidentSplit
from rtrain.trainers.base import Job
from rtrain.trainers.sanity_check import is_at_hand, tried, try_rows
from rtrain.trainers.sanity_worker import sanity_worker
from rtrain.trainers.torch.memory_limit import small_models
from rtrain.trainers.torch.process_settings import torch_settings
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.transformers.build import task_of
from rtrain.trainers.transformers.config import Conf
from rtrain.trainers.transformers.learner import TransformersLearner
from rtrain.trainers.transformers.loop import make_tokenizer
from rtrain.trainers.transformers.token_splits import encoded_dataset
from rtrain.trainers.worker import Worker


def try_first_step(job: Job) -> None:
    """Build a model from scratch, take its first step, and an evaluation, with the first rows.

    Weights that were trained before fit their own sizes, and take long to read; texts in streams are not read.

    Raises:
        RtrainError: It fails with these rows; names its key.
    """
    worker = sanity_worker(job)
    conf: Conf = worker.conf
    is_text = worker.data.info.dtype == "object"
    if conf.model.pretrained is not None or (is_text and not is_at_hand(worker.data.splits["train"])):
        return
    with torch_settings(worker, deterministic=True):
        try_rows(worker, conf.rows_per_step(1), lambda rows: _first_step(rows, worker))


@small_models()  # a larger one is left to the workers
def _first_step(rows: ResidentSplit, worker: Worker) -> None:
    conf, alone = replace(worker.conf, packing=False), TorchRanks(rank=0, size=1, device=torch.device("cpu"))
    few, info = replace(worker.data, splits={"train": rows}), worker.data.info
    small = replace(worker, conf=conf, dataset=few)
    tokenizer = make_tokenizer(small, alone)
    dataset = encoded_dataset(few, tokenizer, conf, task_of(conf, info))
    learner = TransformersLearner(small, alone, dataset, tokenizer)
    plan = EpochPlan(rank=0, world_size=1, global_batch_size=rows.num_rows, seed=worker.run.seed, shuffle=False)
    batch = next(iter(dataset.splits["train"].batches(plan)))
    shapes = "texts" if info.dtype == "object" else f"rows of shape {info.input_shape}"
    with tried(f"trainer.model.config: {conf.model.config['model_type']}", info, shapes):
        learner.train_step(batch, 0)
        learner.evaluate([batch])
