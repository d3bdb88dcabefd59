"""Which methods of a callback are taken for called ones under a wrong name, and which are a user's own."""

from __future__ import annotations

import functools
import inspect

import pytest

import rtrain
from rtrain.callback_methods import meant_methods, public_methods
from rtrain.callbacks import check_callback
from rtrain.errors import ConfigError

CONTRACTS = {"driver": rtrain.Callback, "worker": rtrain.WorkerCallback}
OTHER_WORDS = {
    "driver": """start finish run_started run_ended saved checkpoint_saved save_checkpoint failed attempt_failure
        evaluate validation_end events on_end epoch_end train_begin before_save""",
    "worker": """epoch_start epoch_finished train_start fit_end begin_epoch before_step after_batch batch_end
        save step epoch train checkpoint checkpoint_saved end_save evaluate validation_end started ended on_fit_end""",
}
OWN = """plot freeze notify send post log log_metrics report save_weights save_report epoch_loss best_step max_epochs
    should_stop get_lr reset stop is_done steps_per_epoch write_checkpoint_table test_plot load"""


def taken(self, *arguments): ...


def check(contract, **methods):
    check_callback("key.0", {"_target_": "own.Own"}, type("Own", (contract,), methods), contract, "fail")


@pytest.mark.parametrize(("place", "name"), [(place, one) for place in CONTRACTS for one in OTHER_WORDS[place].split()])
def test_other_words_for_a_called_method_are_refused(place, name):
    with pytest.raises(ConfigError, match=rf"key\.0: nothing calls the method {name} of own\.Own"):
        check(CONTRACTS[place], **{name: taken})


@pytest.mark.parametrize("place", CONTRACTS)
def test_every_called_method_is_meant_by_each_order_of_its_words_and_by_parts(place):
    called = public_methods(CONTRACTS[place])
    for name in called:
        check(CONTRACTS[place], **{name: taken})
        first, _, rest = name.partition("_")
        for other in {f"{rest}_{first}", first, rest} - {"", *called, f"_{first}"}:
            assert name in meant_methods(other, called)


@pytest.mark.parametrize("place", CONTRACTS)
@pytest.mark.parametrize("name", OWN.split())
def test_a_method_of_the_user_is_not_refused(place, name):
    check(CONTRACTS[place], **{name: taken})


def test_a_method_that_the_class_itself_uses_may_have_any_name():
    def uses(self, training):
        self.save(training)

    def by_name(self, training):
        getattr(self, "save")(training)  # noqa: B009

    def inside(self, training):
        return [self.save(one) for one in (training,)]

    def decorated(function):
        return functools.wraps(function)(lambda *arguments: function(*arguments))

    for one in (uses, by_name, inside, decorated(uses)):
        check(rtrain.WorkerCallback, epoch_end=one, save=taken)
    for one in (staticmethod(uses), classmethod(uses), property(lambda self: self.save(None))):
        check(rtrain.WorkerCallback, own=one, save=taken)
    check(type("Mixed", (type("Mixin", (), {"own": uses}), rtrain.WorkerCallback), {}), save=taken)
    check(rtrain.WorkerCallback, epoch_end=lambda self, training: self.on_batch(training), on_batch=taken)
    with pytest.raises(ConfigError, match="nothing calls the method save"):
        check(rtrain.WorkerCallback, epoch_end=taken, save=uses)


@pytest.mark.parametrize("place", CONTRACTS)
def test_a_method_takes_the_arguments_of_its_call(place):
    contract = CONTRACTS[place]

    def none(self): ...
    def many(self, one, two, three): ...
    def by_keyword(self, *, training): ...
    def with_more(self, *arguments, **more): ...

    @functools.wraps(none)
    def wrapped(self, *arguments): ...

    for name in public_methods(contract):
        for wrong in (none, many, by_keyword):
            with pytest.raises(ConfigError, match=rf"the method {name} of own\.Own") as raised:
                check(contract, **{name: wrong})
            assert f"def {name}{inspect.signature(taken_names(contract, name))}:" in raised.value.hint
        for right in (with_more, wrapped, getattr(contract, name)):
            check(contract, **{name: right})


def taken_names(contract, name):
    """Return a function with the arguments of a method, without annotations."""
    names = ", ".join(inspect.signature(getattr(contract, name)).parameters)
    return eval(f"lambda {names}: None")
