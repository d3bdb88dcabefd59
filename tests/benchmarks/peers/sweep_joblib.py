"""Sixteen settings of the digits ResNet by a joblib loop over a plain function. Usage: sweep_joblib.py EPOCHS."""

import sys

from joblib import Parallel, delayed
from sweep_model import SETTINGS, epochs


def train(setting: dict[str, float], num_epochs: int) -> float:
    return max(epochs(**setting, num_epochs=num_epochs))


if __name__ == "__main__":
    found = Parallel(n_jobs=2)(delayed(train)(setting, int(sys.argv[1])) for setting in SETTINGS)
    print(max(found))
