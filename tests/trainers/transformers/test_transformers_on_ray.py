"""Two Ray workers train and evaluate what one process does."""

import pytest

import rtrain

pytestmark = pytest.mark.slow

SENTENCES = [
    ("good" if row % 2 else "bad", f"the {['film', 'book', 'song'][row % 3]} number {row} is") for row in range(61)
]


@pytest.mark.parametrize(
    "words",
    [
        ["trainer.task=sequence-classification", "dataset.label=label", "evaluate=accuracy"],
        [
            *("trainer.task=masked-lm", "dataset.task=language-modeling"),
            *("trainer.global_batch_size=5", "trainer.accumulate_steps=3", "evaluate=perplexity"),
        ],
    ],
    ids=["classes", "masked, in parts"],
)
def test_two_workers_train_what_one_trains(tmp_path, words):
    rows = [f"{sentence} {word}\t{word}" for word, sentence in SENTENCES]
    (tmp_path / "texts.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    (tmp_path / "bert.yaml").write_text(
        "defaults: [{trainer: transformers}, {dataset: text}]\n"
        "dataset: {path: texts.tsv}\n"
        "trainer:\n"
        "  model: {config: {model_type: bert, hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2,\n"
        "    intermediate_size: 32, hidden_dropout_prob: 0.0, attention_probs_dropout_prob: 0.0}}\n"
        "  tokenizer: {train: wordpiece, vocab_size: 100}\n"
        "  arguments: {learning_rate: 0.01}\n"
        "  max_epochs: 2\n"
        "  global_batch_size: 15\n"
        "  eval_batch_size: 4\n"
    )
    *overrides, measured = words
    overrides = [*overrides, f"dataset.path={tmp_path}/texts.tsv"]
    one, two = (
        rtrain.fit(
            str(tmp_path / "bert.yaml"), [*overrides, f"num_workers={number}", f"run.root_dir={tmp_path}/{number}"]
        )
        for number in (0, 2)
    )
    counts = two.manifest.dataset["num_rows"]
    for name, count in counts.items():
        assert sum(worker["num_rows"][name] for worker in two.manifest.workers.values()) == count
    split = "val" if "val" in counts else "test"
    for name in ("train/epoch_loss", f"{split}/loss", f"{split}/{measured.partition('=')[2]}"):
        assert two.metrics[name] == pytest.approx(one.metrics[name], rel=1e-3), name
