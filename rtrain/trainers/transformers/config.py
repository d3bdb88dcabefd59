"""What a config may say to the transformers trainer; each field's docstring is its documentation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rtrain.config.did_you_mean import alike
from rtrain.config.needs import SEVERAL_WORKERS, Need, Rules
from rtrain.config.value_types.texts import one_of
from rtrain.trainers.loops.custom.conf import TrainLoopConf, loop_needs
from rtrain.trainers.loops.epochs.conf import EpochsConf
from rtrain.trainers.loops.epochs.too_late import schedules_of

TASKS = (
    "causal-lm",
    "masked-lm",
    "sequence-classification",
    "token-classification",
    "image-classification",
    "regression",
)
TRAINED = Need(
    met=lambda way: way.trainer.tokenizer.train is not None,
    otherwise="no tokenizer is trained",
    instead="Train one: trainer.tokenizer.train=wordpiece",
    keys=("trainer.tokenizer.train", "trainer.tokenizer.pretrained"),
)
CAUSAL = Need(
    met=lambda way: way.trainer.task in ("auto", "causal-lm"),
    otherwise="trainer.task does not predict the next token",
    instead="It is for trainer.task=causal-lm",
    keys=("trainer.task",),
)
MASKED = Need(
    met=lambda way: way.trainer.task == "masked-lm",
    otherwise="trainer.task masks no tokens",
    instead="It is for trainer.task=masked-lm",
    keys=("trainer.task",),
)
TEXTS = Need(
    met=lambda way: way.info is None or way.info.dtype == "object",
    otherwise="the rows of the dataset aren't texts",
    instead="Leave it out",
    keys=("dataset",),
    of_rows=True,
)
CONTINUED = Need(
    met=lambda way: way.info is None or way.info.task == "language-modeling",
    otherwise="the dataset has labels, so next tokens are not predicted",
    instead="Leave it out; or, to train on the text alone: dataset.label=null",
    keys=("dataset", "trainer.task"),
    of_rows=True,
)


@dataclass(kw_only=True)
class ModelConf:
    """A model from scratch, or one that was trained before; give one of the two."""

    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = (("config", "pretrained"),)

    config: dict[str, Any] | None = field(default_factory=dict)
    """Configuration of a model with random weights: ``model_type`` and its own keys, e.g. ``hidden_size``. Sizes that
    the dataset and the tokenizer know are filled in. null takes back what a config says, to give ``pretrained``."""

    pretrained: str | None = None
    """Local folder, or name on the Hugging Face hub, of a model with trained weights."""


@dataclass(kw_only=True)
class TokenizerConf:
    """How texts become tokens; nothing given: by the tokenizer of the pretrained model."""

    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = (("pretrained", "train"),)
    needs: ClassVar[Rules] = (TRAINED.of("vocab_size", "lowercase"),)

    pretrained: str | None = None
    """Local folder, or name on the Hugging Face hub, of a tokenizer."""

    train: Annotated[str, *one_of("wordpiece", "bpe", "characters")] | None = None
    """Train a tokenizer on the texts of the train split, offline."""

    vocab_size: Annotated[int, Field(ge=10)] = 2000
    """Maximum number of tokens of a trained tokenizer."""

    lowercase: bool = False
    """Whether a trained tokenizer converts texts to lower case."""

    def __post_init__(self) -> None:
        if self.pretrained and self.train:
            raise ValueError("pretrained and train contradict each other: set only one")


@dataclass(kw_only=True)
class Conf(TrainLoopConf, EpochsConf):
    """Trains models of Hugging Face transformers on texts or images, from scratch or fine-tuned."""

    foreign: ClassVar[tuple[str, ...]] = ("torch", "rtrain.models.torch", "rtrain.trainers.torch")
    """Modules whose classes this trainer can't use: options of config groups that build them are refused."""
    needs: ClassVar[Rules] = (
        *loop_needs("num_threads", "arguments"),
        *EpochsConf.needs,
        schedules_of("arguments"),
        TEXTS.of("max_length", "packing", "tokenizer"),
        CAUSAL.of("packing"),
        CONTINUED.of("packing"),
        MASKED.of("mask_share"),
        SEVERAL_WORKERS.of("arguments.ddp_find_unused_parameters", "arguments.ddp_bucket_cap_mb"),
    )
    follows: ClassVar[Rules] = (*TrainLoopConf.follows, *EpochsConf.follows)

    task: Annotated[str, *one_of("auto", *TASKS)] = "auto"
    """What the model learns; ``auto``: the task of the dataset; a language is learned by next-token prediction."""

    model: ModelConf = field(default_factory=ModelConf)
    """The model."""

    tokenizer: TokenizerConf = field(default_factory=TokenizerConf)
    """The tokenizer; images and datasets of tokens need none."""

    max_length: Annotated[int, Field(ge=2)] = 128
    """Maximum number of tokens per row; longer texts are cut, unless ``packing`` joins them."""

    packing: bool = True
    """causal-lm: join all texts and cut them into rows of ``max_length`` tokens; false: a row per text, padded."""

    mask_share: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """masked-lm: share of the tokens that are to be guessed; of them 80 % are masked, 10 % random, 10 % unchanged."""

    arguments: dict[str, Any] = field(default_factory=dict)
    """``TrainingArguments`` about optimizer, schedule, precision and loss, e.g. ``{learning_rate: 5e-5}``. Those about
    steps, evaluations and checkpoints are other keys of rtrain, and refused here. With ``train_loop``: its arguments by
    name."""

    lora: dict[str, Any] | None = None
    """Train low-rank adapters only: arguments of peft's ``LoraConfig``, e.g. ``{r: 8}``. Without ``target_modules``:
    peft's default for the model, or ``all-linear`` if peft has none. null: train all weights."""

    merge_lora: bool = False
    """Also write the model with its adapters merged in, as ``merged/`` in each checkpoint."""

    callbacks: list[Any] = field(default_factory=list)
    """Callbacks on each worker, by ``_target_``: of transformers, or classes that inherit ``rtrain.WorkerCallback``."""

    num_threads: Annotated[int, Field(ge=1)] | None = None
    """Threads of each worker; null: as many as it has cores."""

    @classmethod
    def parameters(cls) -> dict[str, str]:
        """Return the full key of each of the ``TrainingArguments`` that rtrain follows, by its name."""
        from rtrain.trainers.transformers.arguments import FOLLOWED

        return {name: f"trainer.arguments.{name}" for name in FOLLOWED}

    def __post_init__(self) -> None:
        if self.train_loop is not None:
            return
        self.check_limits()
        if bool(self.model.config) == bool(self.model.pretrained):
            raise ValueError("set either model.config (from scratch) or model.pretrained (a folder or hub name)")
        if self.model.config and "model_type" not in self.model.config:
            near = alike("model_type", self.model.config)
            meant = f"; {near!r} is not its name" if near is not None else ""
            raise ValueError(f"model.config needs model_type, e.g. bert, gpt2, llama or vit{meant}")
        if self.merge_lora and self.lora is None:
            raise ValueError("merge_lora needs lora")
