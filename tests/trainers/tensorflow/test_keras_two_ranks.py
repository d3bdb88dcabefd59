"""Two processes train what one process trains."""

import keras_runs
from epoch_tests import EpochsOnTwoRanks


class TestTwoRanks(EpochsOnTwoRanks):
    runs, trainer = keras_runs, "tensorflow"
