"""Each key of each dataset source has an effect on each kind of data that the source reads, or is refused by name."""

import re
from contextlib import chdir

import pytest
from named_tests import exists
from source_cases import BUILT_IN, CASES
from source_files import write_files
from source_rows import ALLOWED, conf_of, idle, load, train

from rtrain.config.targets.builder import Builder
from rtrain.datasets.registry import confs, load_source
from rtrain.errors import DatasetError
from rtrain.prediction.opening import DATA_KEYS

ROWS = [pytest.param(name, row, id=f"{name}-{row.key}") for name, case in CASES.items() for row in case.rows]


LOADED = {}
"""The datasets that others are compared with."""


def loaded(source, keys):
    key = source, repr(keys)
    if key not in LOADED:
        LOADED[key] = load(source, keys)
    return LOADED[key]


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """A folder with all data, which all paths begin in."""
    path = tmp_path_factory.mktemp("data")
    write_files(path)
    with chdir(path):
        yield path


def test_each_source_has_a_case():
    assert {case.source for case in CASES.values()} == set(confs())


@pytest.mark.parametrize("name", CASES)
def test_each_key_that_is_not_declared_idle_has_a_row(name):
    case = CASES[name]
    conf = conf_of(case.source, case.keys)
    wanted = set(keys_of(conf)) - set(idle(conf))
    assert wanted - {row.key for row in case.rows} == set()
    assert {row.key for row in case.rows} - set(keys_of(conf)) == set()


def keys_of(conf, where=""):
    """Yield the keys of a conf, those of its sections one by one."""
    for key, value in vars(conf).items():
        yield from keys_of(value, f"{where}{key}.") if hasattr(value, "__dataclass_fields__") else [f"{where}{key}"]


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_a_key_acts_or_is_refused(name, row):
    source, keys = CASES[name].source, {**CASES[name].keys, **row.given}
    if row.test is not None:
        assert exists(row.test), row.test
    elif row.look is None:
        loaded(source, keys)
        assert re.search(row.because, refusal(source, {**keys, row.key: row.value}))
    elif row.because is not None:
        assert re.search(row.because, refusal(source, keys))
        load(source, {**keys, row.key: row.value})
    else:
        base = row.look(loaded(source, keys))
        assert base != row.look(load(source, {**keys, row.key: row.value}))


@pytest.mark.parametrize(
    ("name", "row"), [one for one in ROWS if one.values[1].look is train and one.values[1].key in DATA_KEYS]
)
def test_other_data_has_another_fingerprint(name, row):
    source, keys = CASES[name].source, {**CASES[name].keys, **row.given}
    other = load(source, {**keys, row.key: row.value})
    assert loaded(source, keys).info.fingerprint != other.info.fingerprint


@pytest.mark.parametrize("name", CASES)
def test_no_row_tells_a_dataset_from_its_repetition(name):
    source, keys, rows = CASES[name].source, CASES[name].keys, CASES[name].rows
    again = load(source, keys)
    looks = {row.look for row in rows if row.look is not None and not row.given}
    assert again.info.fingerprint == loaded(source, keys).info.fingerprint
    assert [look.__name__ for look in looks if look(loaded(source, keys)) != look(again)] == []


def refusal(source, keys):
    with pytest.raises(DatasetError) as raised:
        load(source, keys)
    return str(raised.value)


@pytest.mark.parametrize("name", [name for name in CASES if name not in BUILT_IN])
def test_all_rows_are_given_to_predict(name):
    source, keys = CASES[name].source, {key: value for key, value in CASES[name].keys.items() if key != "memory"}
    trained = load(source, keys)
    reader = load_source(source, Builder(allow=ALLOWED)).open_rows(trained.conf, trained.dataset.encoding)
    assert reader is not None
    count = sum(len(chunk.x) for piece in reader.pieces for chunk in reader.read(piece))
    assert count == sum(trained.info.num_rows.values())
