"""What users of JAX may write, made to tell what it is given."""

import jax.numpy as jnp


def rows_per_batch(output, target):
    """Return for each row how many there are."""
    return jnp.full(len(output), float(len(output)))


def function(worker):
    """Report what the config says."""
    worker.report({"train/told": worker.conf.train_function_config["value"]}, step=1, epoch=1)


def other_function(worker):
    """Report something else."""
    worker.report({"train/other": 1.0}, step=1, epoch=1)


def hinge(output, target):
    """Return a loss that only looks at the right class."""
    return -output[jnp.arange(len(target)), target]
