"""Where a training in epochs is, as checkpoints of before have it."""

import json

from rtrain.trainers.loops.epochs.progress import EpochProgress
from rtrain.trainers.loops.progress import FILE_NAME


def test_a_checkpoint_without_weights_counted_rows(tmp_path):
    of_before = {"step": 3, "rows": 40, "skipped_rows": 0, "loss_sum": 20.0, "window_loss_sum": 5.0, "window_rows": 7}
    (tmp_path / FILE_NAME).write_text(json.dumps(of_before))
    found = EpochProgress.load(tmp_path)
    assert (found.rows, found.loss_sum, found.loss_weight) == (40, 20, 40)
    assert (found.window_loss_sum, found.window_weight) == (0, 0)
    found.save(tmp_path)
    assert EpochProgress.load(tmp_path) == found


def test_rows_of_no_weight_count_nothing_after_a_resume(tmp_path):
    EpochProgress(rows=48).save(tmp_path)
    assert EpochProgress.load(tmp_path).loss_weight == 0
