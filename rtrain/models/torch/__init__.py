"""Models of PyTorch."""

from rtrain.models.torch.gpt import GPT
from rtrain.models.torch.mlp import MLP
from rtrain.models.torch.resnet import ResNet

__all__ = ["GPT", "MLP", "ResNet"]
