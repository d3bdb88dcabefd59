"""The known word that a wrong one was probably meant to be."""

import pytest

from rtrain.config.did_you_mean import closest, nearest_or_all


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("resnet34", ["resnet", "resnet18", "resnet50"], None),
        ("resnet19", ["resnet18", "resnet50"], None),
        ("l3", ["l1", "l2"], None),
        ("resnt50", ["resnet", "resnet18", "resnet50"], "resnet50"),
        ("ResNet-50", ["resnet18", "resnet50"], "resnet50"),
        ("resnet5", ["resnet18", "resnet50"], "resnet50"),
        ("mlogloss1", ["mlogloss", "merror"], "mlogloss"),
        ("sdg", ["adam", "sgd"], "sgd"),
    ],
)
def test_numbers_are_part_of_a_names_meaning(word, known, meant):
    assert closest(word, known) == meant


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("city", [" city", "age"], "did you mean: ' city'"),
        ("city", ["city ", "age"], "did you mean: 'city '"),
        ("zip", [" city", "age\t"], r"available: ' city', 'age\t'"),
        ("cty", ["city", "age"], "did you mean: city"),
    ],
)
def test_blanks_around_a_name_can_be_seen(word, known, said):
    assert nearest_or_all(word, known) == said
