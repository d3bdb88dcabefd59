"""Settings of Ray that only the environment can carry."""

import os

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_TRAIN_METRICS_ENABLED": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # relative paths in user code keep their meaning
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "A worker died or was killed|Raylet is terminated",  # rtrain says it in its own error
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_TRAIN_ENABLE_PRINT_PATCH": "0",  # what user code prints goes where rtrain takes secrets out of it, only
}


def quieten() -> None:
    """Set them in this process, before it starts a cluster or joins one; a user's own value wins."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
