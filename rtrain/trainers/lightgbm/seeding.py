"""LightGBM's random numbers, made to depend on nothing but the seed and the round: a resumed run draws the same.

A model does not contain the state of LightGBM's random numbers. LightGBM seeds them again only where certain
parameters change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtrain.trainers.loops.boosting.rounds import Rounds
from rtrain.trainers.loops.seeding import mixed

COLUMN_SHARES = ("feature_fraction", "feature_fraction_bynode")
CLASS_SHARES = ("pos_bagging_fraction", "neg_bagging_fraction")
"""Shares that are drawn at random where they are below 1; of the rows of a class only where there are two of them."""
XENDCG = ("rank_xendcg", "xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart")
CARRIED = ("cegb_penalty_feature_lazy", "cegb_penalty_feature_coupled")
"""Penalties that depend on which features earlier trees have used."""


def starts_again(params: Mapping[str, Any]) -> bool:
    """Return whether a resumed run has to begin with the first round, to grow the trees of an uninterrupted one.

    That is where LightGBM carries from round to round what neither a model holds nor a parameter can bring back: what
    DART has dropped, the rounds that GOSS waits before it draws, how quantized gradients are rounded, used features.
    """
    quantized = _is_on(params, "use_quantized_grad") and _is_on(params, "stochastic_rounding", usual=True)
    return (
        params.get("boosting", "gbdt") not in ("gbdt", "gbrt")
        or params.get("data_sample_strategy") == "goss"
        or quantized
        or any(params.get(name) for name in CARRIED)
    )


class Draws:
    """What LightGBM calls before each round: seeds of what is drawn in it.

    Args:
        params: Under LightGBM's main names; seeds that they name are the ones to begin with.
        rounds: Knows the round.
    """

    before_iteration, order = True, 0

    def __init__(self, params: Mapping[str, Any], rounds: Rounds) -> None:
        self._params, self._rounds = params, rounds
        own = starts_again(params)
        shares = ("bagging_fraction", *(CLASS_SHARES if params["objective"] == "binary" else ()))
        self._every = 0 if own or not _any_below_one(params, shares) else int(params.get("bagging_freq", 0))
        self._columns = not own and (_any_below_one(params, COLUMN_SHARES) or _is_on(params, "extra_trees"))
        self._ranks = not own and params["objective"] in XENDCG

    def __call__(self, env: Any) -> None:
        """Seed the round that begins."""
        progress, new = self._rounds.progress, {}
        number = progress.rounds_before + progress.step
        if self._every > 0:
            share = float(self._params.get("bagging_fraction", 1))
            # LightGBM takes the seed only if the share changes. It draws in each round, because its count of rounds
            # restarts when it is resumed; rounds that should have the same rows have the same seed.
            env.model.reset_parameter({"bagging_fraction": share * 0.75})
            new = {"bagging_fraction": share, "bagging_freq": 1, **self._seed("bagging_seed", number // self._every)}
        if self._columns:
            new |= self._seed("feature_fraction_seed", number) | self._seed("extra_seed", number)
        if self._ranks:
            # The objective takes its seed when it is created again.
            new |= {"objective": self._params["objective"], **self._seed("objective_seed", number)}
        if new:
            env.model.reset_parameter(new)

    def _seed(self, name: str, number: int) -> dict[str, int]:
        return {name: mixed(int(self._params.get(name, self._params["seed"])), number) >> 33}


def _any_below_one(params: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    return any(float(params.get(name, 1)) < 1 for name in names)


def _is_on(params: Mapping[str, Any], name: str, *, usual: bool = False) -> bool:
    return str(params.get(name, usual)).lower() in ("true", "1", "+")
