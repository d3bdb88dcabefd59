"""The transformers trainer keeps the contract of every trainer."""

import json
import shutil

import pytest

import rtrain
from rtrain.errors import CheckpointError
from rtrain.testing.damage import replace_file
from rtrain.testing.trainer_contract import TrainerContract


class TestTransformers(TrainerContract):
    config = "transformers"
    overrides = (
        "dataset.limit=400",
        "trainer.max_epochs=2",
        "trainer.model.config.hidden_size=16",
        "trainer.model.config.intermediate_size=32",
        "trainer.num_threads=1",
    )
    trainer = "transformers"
    framework = "transformers"

    def test_code_beside_the_weights_is_not_run(self, run, tmp_path):
        """Whoever trusts a checkpoint trusts its pickles, and gets no code that its configuration names."""
        folder = shutil.copytree(run.best_checkpoint, tmp_path / "stolen")
        code = f"import pathlib; pathlib.Path({str(tmp_path / 'it-ran')!r}).touch()"
        (folder / "evil.py").write_text(code)
        classes = dict.fromkeys(("AutoConfig", "AutoTokenizer", "AutoModelForSequenceClassification"), "evil.Net")
        config = json.loads((folder / "config.json").read_text())
        content = json.dumps({**config, "auto_map": classes, "trust_remote_code": True})
        replace_file(folder, "config.json", content.encode())
        rtrain.evaluate(folder, trust=True)
        content = json.dumps({**config, "auto_map": classes, "model_type": "evil"})
        replace_file(folder, "config.json", content.encode())
        with pytest.raises(CheckpointError):
            rtrain.evaluate(folder, trust=True)
        assert not (tmp_path / "it-ran").exists()

    def test_code_of_the_hub_is_not_fetched_for_attention(self, run, tmp_path):
        folder = shutil.copytree(run.best_checkpoint, tmp_path / "stolen")
        config = json.loads((folder / "config.json").read_text())
        replace_file(folder, "config.json", json.dumps({**config, "attn_implementation": "evil/kernel"}).encode())
        with pytest.raises(CheckpointError, match="code from the hub"):
            rtrain.evaluate(folder, trust=True)
