"""What a checkpoint says of new texts: the metrics of its run, and names of tokens and tags."""

import json

import pytest
import yaml
from transformers_runs import BERT, GPT, sentences

import rtrain

CASES = {
    "causal-lm": {"model": GPT, "packing": False},
    "packed": {"model": GPT, "packing": True, "task": "causal-lm"},
    "masked-lm": {"model": BERT},
    "token-classification": {"model": BERT},
}


@pytest.mark.parametrize("case", CASES)
def test_texts_are_measured_as_in_training_and_predicted_by_name(tmp_path, case):
    keys = {"task": case, **CASES[case]}
    model, task = keys.pop("model"), keys["task"]
    write_texts(tmp_path / "texts.jsonl", task)
    label = "tags" if task == "token-classification" else None
    config = {
        "defaults": [{"trainer": "transformers"}, {"dataset": "text"}],
        "dataset": {"path": str(tmp_path / "texts.jsonl"), "label": label, "limit": 80},
        "trainer": {
            **keys,
            "model": {"config": model},
            "tokenizer": {"train": "wordpiece", "vocab_size": 60},
            "max_length": 12,
            "max_epochs": 1,
            "num_threads": 1,
        },
        "scaling": {"num_workers": 0},
    }
    (tmp_path / "texts.yaml").write_text(yaml.safe_dump(config))
    run = rtrain.fit(str(tmp_path / "texts.yaml"), [f"run.root_dir={tmp_path}/runs"])
    found = rtrain.evaluate(run.path)
    assert set(found) == {"num_rows", "loss", "accuracy"} | ({"perplexity"} if task.endswith("-lm") else set())
    for name in set(found) - {"num_rows"}:
        assert found[name] == pytest.approx(run.metrics[f"test/{name}"], rel=1e-4), name
    assert rtrain.predict(run.path, tmp_path / "out.jsonl") == 100
    first = json.loads((tmp_path / "out.jsonl").read_text().partition("\n")[0])
    assert first["id"] == 0
    if task == "token-classification":
        assert len(first["prediction"]) == len(first["text"])
        assert set(first["prediction"]) <= {"thing", "other"}
    else:
        assert not any(token.isdecimal() for token in first["prediction"])


def write_texts(path, task):
    rows = sentences(task, 100, seed=0)
    lines = [{"id": number, "text": text} for number, text in enumerate(rows["x"])]
    if task == "token-classification":
        for line, tags in zip(lines, rows["y"], strict=True):
            line["tags"] = ["thing" if tag else "other" for tag in tags]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
