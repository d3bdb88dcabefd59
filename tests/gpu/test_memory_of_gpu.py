"""What a run says whose model asks for more memory than a GPU has."""

import pytest
from gpu_runs import DEVICE, IN_PROCESS_AND_ON_A_WORKER, fit

from rtrain.errors import TrainingError
from rtrain.trainers.known_errors import LESS_GPU_MEMORY, LESS_MEMORY

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]
OF_GPUS = (LESS_GPU_MEMORY,) if DEVICE == "cuda" else (LESS_MEMORY,)
OF_ANY_MEMORY = (LESS_GPU_MEMORY, LESS_MEMORY)
"""JAX does not say whose memory was not enough."""


@IN_PROCESS_AND_ON_A_WORKER
@pytest.mark.parametrize(
    ("config", "model", "hints"),
    [
        ("mlp", "trainer.model={_target_: models.TooLarge, num_classes: auto}", OF_GPUS),
        ("jax", "trainer.model={_target_: models.TooLargeOfJax, num_classes: auto}", OF_ANY_MEMORY),
    ],
    ids=["torch", "jax"],
)
def test_a_model_that_is_too_large_for_the_gpu_ends_in_a_hint(project, config, model, hints, num_workers):
    with pytest.raises(TrainingError) as caught:
        fit(project, config, model, num_workers=num_workers)
    assert any(hint in caught.value.hint for hint in hints)


def test_the_process_trains_again_after_it_ran_out_of_memory(project):
    with pytest.raises(TrainingError):
        fit(project, "mlp", "trainer.model={_target_: models.TooLarge, num_classes: auto}")
    assert fit(project, "mlp", "trainer.max_epochs=1").status == "succeeded"
