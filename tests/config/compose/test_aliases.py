"""What the user's words stand for."""

import pytest

from rtrain.config.compose.aliases import expand_word


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (
            "trainer.loss={_target_: torch.nn.MSELoss}",
            ["trainer.loss=null", "++trainer.loss={_target_: torch.nn.MSELoss}"],
        ),
        ("trainer.steps=[{_target_: torch.nn.Flatten}]", ["trainer.steps=[{_target_: torch.nn.Flatten}]"]),
    ],
)
def test_a_node_is_replaced_as_a_whole_and_so_is_a_list_of_nodes(word, expected):
    assert expand_word(word) == expected
