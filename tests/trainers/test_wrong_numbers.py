"""Numbers that can't be are refused by each trainer before anything is written."""

import pytest

import rtrain
from rtrain.errors import ConfigError

WARMUP = (
    "{_target_: optax.warmup_cosine_decay_schedule, init_value: 0, peak_value: -1, warmup_steps: 1, decay_steps: 9}"
)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("mlp", ("trainer.optimizer.lr=inf",)),
        ("mlp", ("trainer.optimizer.weight_decay=nan",)),
        ("mlp", ("scheduler=cosine", "trainer.scheduler.T_max=-5")),
        ("mlp", ("scheduler=step", "trainer.scheduler.step_size=0")),
        ("mlp", ("trainer.clip_norm=inf",)),
        ("jax", ("trainer.optimizer.learning_rate=-1",)),
        ("jax", ("trainer.optimizer.weight_decay=-1",)),
        ("jax", (f"trainer.optimizer.learning_rate={WARMUP}",)),
        ("keras", ("trainer.optimizer.learning_rate=inf",)),
        ("transformers", ("trainer.arguments.learning_rate=-1",)),
        ("transformers", ("+trainer.arguments.adam_beta1=1",)),
        ("lightning", ("trainer.module.lr=inf",)),
        ("xgboost", ("+trainer.params.eta=nan",)),
        ("lightgbm", ("+trainer.params.lambda_l1=inf",)),
        ("sklearn", ("+trainer.estimator.min_samples_leaf=nan",)),
    ],
    ids=lambda one: one if isinstance(one, str) else one[-1].partition("=")[0],
)
def test_a_number_that_can_not_be_is_refused_with_its_key(config, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as raised:
        rtrain.fit(config, [*words, "num_workers=0"])
    assert words[-1].partition("=")[0].lstrip("+") in str(raised.value)
    assert "must be" in str(raised.value)
    assert list(tmp_path.iterdir()) == []
