"""A decoder-only transformer for language modelling: GPT-2 (Radford et al., 2019)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

WEIGHT_STD = 0.02
"""Standard deviation of new weights (Radford et al., 2018, section 4.1)."""


class GPT(nn.Module):
    """Token and position embeddings, blocks of causal attention and a feed-forward part, and a head over all tokens.

    Normalisation stands before each part and after the last block; the weights that end a residual path start smaller
    by the square root of their number (Radford et al., 2019, section 2.3). The head shares its weights with the token
    embedding (Press & Wolf, "Using the output embedding to improve language models", 2016).

    Args:
        vocab_size: Number of different tokens.
        block_size: Largest number of tokens in a row.
        num_layers: Number of blocks.
        num_heads: Heads of attention per block; a divisor of ``width``.
        width: Numbers per token between the blocks.
        dropout: Share of activations that are zeroed while training.
        bias: Whether linear layers and normalisations have one, as in GPT-2.

    Raises:
        ValueError: ``num_heads`` doesn't divide ``width``.
    """

    def __init__(
        self,
        vocab_size: int,
        block_size: int,
        num_layers: int = 4,
        num_heads: int = 4,
        width: int = 128,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if width % num_heads != 0:
            raise ValueError(f"num_heads={num_heads} does not divide width={width}")
        self.block_size, self.num_heads = block_size, num_heads
        self.tokens = nn.Embedding(vocab_size, width)
        self.positions = nn.Embedding(block_size, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, num_heads, dropout, bias) for _ in range(num_layers))
        self.norm = nn.LayerNorm(width, bias=bias)
        self.head = nn.Linear(width, vocab_size, bias=False)
        self._start()
        self.head.weight = self.tokens.weight

    def _start(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=WEIGHT_STD)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        for block in self.blocks:
            assert isinstance(block, Block)
            for last in (block.attention.leave, block.leave):
                nn.init.normal_(last.weight, std=WEIGHT_STD / math.sqrt(2 * len(self.blocks)))

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens, (rows, length) int64, to scores of the token after each: (rows, length, vocab_size).

        Raises:
            ValueError: The rows are longer than ``block_size``.
        """
        length = x.shape[1]
        if length > self.block_size:
            raise ValueError(f"rows have {length} tokens, but block_size is {self.block_size}")
        out = self.dropout(self.tokens(x) + self.positions(torch.arange(length, device=x.device)))
        for block in self.blocks:
            out = block(out)
        scores: Tensor = self.head(self.norm(out))
        return scores

    def tensor_parallel_plan(self, num_ranks: int) -> dict[str, str]:
        """Return how each layer is split over ``num_ranks``: attention by heads, the rest as in Megatron-LM.

        Shoeybi et al., "Megatron-LM: training multi-billion parameter language models using model parallelism" (2019),
        section 3: only the two ends of each residual path exchange anything.

        Raises:
            ValueError: The heads can't be shared evenly.
        """
        if self.num_heads % num_ranks != 0:
            raise ValueError(f"{self.num_heads} heads can't be shared by {num_ranks} workers")
        return {
            "tokens": "rowwise",
            "blocks.*.attention.enter": "colwise",
            "blocks.*.attention.leave": "rowwise",
            "blocks.*.enter": "colwise",
            "blocks.*.leave": "rowwise",
            "head": "colwise_gather",
        }


class Block(nn.Module):
    """Attention between places, then two layers at each place; both are added to what comes in."""

    def __init__(self, width: int, num_heads: int, dropout: float, bias: bool) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width, bias=bias)
        self.attention = Attention(width, num_heads, dropout, bias)
        self.norm = nn.LayerNorm(width, bias=bias)
        self.enter = nn.Linear(width, 4 * width, bias=bias)
        self.leave = nn.Linear(4 * width, width, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, length, width) to the same shape."""
        x = x + self.dropout(self.attention(self.attention_norm(x)))
        inner = functional.gelu(self.enter(self.norm(x)), approximate="tanh")
        out: Tensor = x + self.dropout(self.leave(inner))
        return out


class Attention(nn.Module):
    """Causal attention with several heads (Vaswani et al., "Attention is all you need", 2017, section 3.2).

    The outputs of ``enter`` are ordered by head, then query, key and value: a contiguous part of them is some whole
    heads, so that tensor parallelism can share them.
    """

    def __init__(self, width: int, num_heads: int, dropout: float, bias: bool) -> None:
        super().__init__()
        self.head_width, self.share_dropped = width // num_heads, dropout
        self.enter = nn.Linear(width, 3 * width, bias=bias)
        self.leave = nn.Linear(width, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, length, width) to the same shape; a place sees itself and those before it."""
        rows, length, _ = x.shape
        heads = self.enter(x).view(rows, length, -1, 3, self.head_width)
        query, key, value = heads.permute(3, 0, 2, 1, 4)
        dropped = self.share_dropped if self.training else 0.0
        seen = functional.scaled_dot_product_attention(query, key, value, dropout_p=dropped, is_causal=True)
        out: Tensor = self.leave(seen.transpose(1, 2).flatten(2))
        return out
