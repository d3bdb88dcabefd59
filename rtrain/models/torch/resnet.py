"""Residual networks (He et al. 2015, arXiv:1512.03385), for small images and for 224 pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

Norm = Callable[[int], nn.Module]
GROUPS = 8


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut (He et al. 2015, figure 5 left)."""

    expansion = 1

    def __init__(self, in_channels: int, width: int, stride: int, norm: Norm) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(in_channels, width, 3, stride, padding=1, bias=False),
            norm(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            norm(width),
        )
        self.shortcut = _shortcut(in_channels, width, stride, norm)
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, in_channels, h, w) to (rows, width, h / stride, w / stride)."""
        out: Tensor = self.activation(self.residual(x) + self.shortcut(x))
        return out


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions and a shortcut (He et al. 2015, figure 5 right); the stride is on the 3x3."""

    expansion = 4

    def __init__(self, in_channels: int, width: int, stride: int, norm: Norm) -> None:
        super().__init__()
        out_channels = width * self.expansion
        self.residual = nn.Sequential(
            nn.Conv2d(in_channels, width, 1, bias=False),
            norm(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, padding=1, bias=False),
            norm(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, out_channels, 1, bias=False),
            norm(out_channels),
        )
        self.shortcut = _shortcut(in_channels, out_channels, stride, norm)
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, in_channels, h, w) to (rows, 4 * width, h / stride, w / stride)."""
        out: Tensor = self.activation(self.residual(x) + self.shortcut(x))
        return out


BLOCKS: dict[str, type[BasicBlock] | type[Bottleneck]] = {"basic": BasicBlock, "bottleneck": Bottleneck}


class ResNet(nn.Module):
    """A residual network with one stage per entry of ``layers``; each stage but the first halves the image.

    ResNet-18 is ``layers=[2, 2, 2, 2], width=64, stem="imagenet"``; ResNet-50 is ``[3, 4, 6, 3]`` with bottlenecks.

    Args:
        in_channels: Channels of the images.
        num_classes: Outputs per image.
        layers: Blocks per stage.
        width: Channels of the first stage; they double at each further stage.
        block: ``basic`` or ``bottleneck``.
        stem: ``small`` (one 3x3 convolution, for 8 to 64 pixels) or ``imagenet`` (7x7 and pooling, for 224).
        norm: ``batch`` or ``group`` (8 groups: the same result for any number of workers).

    Raises:
        ValueError: ``block``, ``stem`` or ``norm`` is unknown, or ``width`` can't be cut into groups.
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        layers: Sequence[int] = (2, 2, 2, 2),
        width: int = 64,
        block: str = "basic",
        stem: str = "small",
        norm: str = "batch",
    ) -> None:
        super().__init__()
        if block not in BLOCKS:
            raise ValueError(f"block must be basic or bottleneck, not {block!r}")
        make_norm = _norm(norm, width)
        self.stem = _stem(stem, in_channels, width, make_norm)
        stages: list[nn.Module] = []
        channels = width
        for number, depth in enumerate(layers):
            for position in range(depth):
                stride = 2 if number > 0 and position == 0 else 1
                stages.append(BLOCKS[block](channels, width * 2**number, stride, make_norm))
                channels = width * 2**number * BLOCKS[block].expansion
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(channels, num_classes)
        self.apply(_initialize)
        self._start_as_identity()

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, in_channels, h, w) to (rows, num_classes)."""
        features: Tensor = self.stages(self.stem(x))
        out: Tensor = self.head(features.mean((2, 3)))
        return out

    def _start_as_identity(self) -> None:
        """Zero the last norm of each block, so that training starts with shortcuts only (Goyal et al. 2017)."""
        for module in self.modules():
            if isinstance(module, (BasicBlock, Bottleneck)):
                weight = module.residual[-1].weight
                assert isinstance(weight, Tensor)
                nn.init.zeros_(weight)


def _norm(name: str, width: int) -> Norm:
    if name == "batch":
        return nn.BatchNorm2d
    if name != "group":
        raise ValueError(f"norm must be batch or group, not {name!r}")
    if width % GROUPS:
        raise ValueError(f"width must be a multiple of {GROUPS} for norm=group, not {width}")
    return lambda channels: nn.GroupNorm(GROUPS, channels)


def _stem(name: str, in_channels: int, width: int, norm: Norm) -> nn.Module:
    if name == "small":
        convolution = nn.Conv2d(in_channels, width, 3, padding=1, bias=False)
        return nn.Sequential(convolution, norm(width), nn.ReLU(inplace=True))
    if name != "imagenet":
        raise ValueError(f"stem must be small or imagenet, not {name!r}")
    convolution = nn.Conv2d(in_channels, width, 7, stride=2, padding=3, bias=False)
    return nn.Sequential(convolution, norm(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2, padding=1))


def _shortcut(in_channels: int, out_channels: int, stride: int, norm: Norm) -> nn.Module:
    if stride == 1 and in_channels == out_channels:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(in_channels, out_channels, 1, stride, bias=False), norm(out_channels))


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
