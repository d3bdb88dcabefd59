"""Models that ship with the torch trainer."""

from rtrain.trainers.torch.models.gpt import GPT
from rtrain.trainers.torch.models.mlp import MLP
from rtrain.trainers.torch.models.resnet import ResNet

__all__ = ["GPT", "MLP", "ResNet"]
