"""Settings of the digits ResNet by a joblib loop over a plain function. Usage: sweep_joblib.py EPOCHS SEEDS."""

import sys

from joblib import Parallel, delayed
from sweep_model import LRS, epochs


def train(setting: dict[str, float], num_epochs: int) -> float:
    return max(epochs(**setting, num_epochs=num_epochs))


if __name__ == "__main__":
    num_epochs, num_seeds = map(int, sys.argv[1:])
    settings = [{"lr": lr, "seed": seed} for lr in LRS for seed in range(1, num_seeds + 1)]
    found = Parallel(n_jobs=2)(delayed(train)(setting, num_epochs) for setting in settings)
    print(max(found))
