"""Wrong inputs: what is written, and what is typed. Each has its expected screen in ``tests/golden/config``."""

from __future__ import annotations

from dataclasses import dataclass, field

from small_project import write

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{one}: &{one} [{','.join([f'*{before}'] * 9)}]\n" for before, one in zip("abcdef", "bcdefg", strict=True)
)


@dataclass(frozen=True)
class Wrong:
    """Files to write first, then the words after ``rtrain fit``."""

    words: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        for path, text in self.files.items():
            write(path, text)


def words(*typed: str) -> Wrong:
    return Wrong(typed)


def yaml(text: str, *typed: str, path: str = "configs/bad.yaml") -> Wrong:
    return Wrong((path, *typed), {path: text})


def option(path: str, text: str, *typed: str) -> Wrong:
    return Wrong(typed, {path: text})


HEAD = "defaults: [trainer: torch, dataset: digits]\n"
MODEL = "trainer:\n  model: {_target_: models.Net}\n"

CASES: dict[str, Wrong] = {
    # words of the command
    "word_unknown_at_root": words("digits", "num_wrokers=8"),
    "word_unknown_section": words("digits", "scalin.num_workers=8"),
    "word_unknown_in_section": words("digits", "scaling.num_wrokers=8"),
    "word_unknown_in_plugin": words("digits", "trainer.max_epoch=5"),
    "word_unknown_deep": words("digits", "run.checkpoint.kep=5"),
    "word_unknown_in_free_node": words("digits", "optimizer.momentm=0.5"),
    "word_unknown_in_unchecked_node": words("digits", "trainer.own.lr=0.1"),
    "word_short_name_of_another_trainer": yaml(
        "trainer: {type: xgboost}\ndataset: {type: digits}\n", "trainer.max_epochs=5"
    ),
    "word_mapping_for_a_list": words("digits", "dataset.columns={_target_: a.B}"),
    "file_unknown_without_cousin": yaml("trainer: {type: xgboost}\ndataset: {type: digits, zzzzz: 1}\n"),
    "word_no_list": words("digits", "dataset.columns=test"),
    "word_unknown_without_cousin": words("digits", "zzz=1"),
    "word_belongs_elsewhere": words("digits", "momentum=0.5"),
    "word_wrong_type": words("digits", "num_workers=eight"),
    "word_wrong_type_in_plugin": words("digits", "trainer.max_epochs=2.5"),
    "word_wrong_bool": words("digits", "use_gpu=maybe"),
    "word_null": words("digits", "batch_size=null"),
    "word_out_of_range": words("digits", "num_workers=-1"),
    "word_out_of_range_in_plugin": words("digits", "epochs=0"),
    "word_not_a_choice": words("digits", "trainer.precision=fp8"),
    "word_cross_field": words("digits", "epochs=2000"),
    "word_section_as_scalar": words("digits", "scaling=5"),
    "word_plus_typo": words("digits", "+scaling.typo=1"),
    "word_plus_typo_in_plugin": words("digits", "+trainer.max_epoch=1"),
    "word_plus_on_existing": words("digits", "+run.seed=1"),
    "word_delete_unknown": words("digits", "~trainer.schedulr"),
    "word_without_value": words("digits", "num_workers"),
    "word_without_key": words("digits", "=8"),
    "word_with_a_colon": words("digits", "lr:0.1"),
    "word_with_a_space": words("digits", "lr 0.1"),
    "word_with_two_equals": words("digits", "lr==0.1"),
    "word_unclosed": words("digits", "dataset.columns=[a,b"),
    "word_scalar_for_optional_section": words("digits", "trainer.stop_early=5"),
    "word_true_for_optional_section": words("digits", "trainer.stop_early=true"),
    "word_text_for_section": words("digits", "cluster=auto"),
    "word_class_for_option": words("digits", "optimizer=torch.optim.RMSprop"),
    "word_option_for_class": words("digits", "optimizer._target_=AdamW"),
    "word_data_for_option": words("digits", "dataset=t.csv"),
    "word_percent": words("digits", "dataset.split=20"),
    "word_whole_float": words("digits", "epochs=10.0"),
    "word_thousands": words("digits", "epochs=1k", "trainer.gradient_clip=1"),
    "word_duration": words("digits", "scaling.resize_seconds=5q"),
    "word_unreadable": words("digits", "run.name=a b: [c"),
    "word_ends_with_a_comma": words("digits", "lr=0.1,"),
    "word_trainer_of_another_config": words("digits", "trainer=xgboost"),
    "word_sweep_without_multirun": words("digits", "lr=0.1,0.2"),
    "word_unknown_option": words("digits", "optimizer=sdg"),
    "word_unknown_dataset": words("digits", "dataset=digit"),
    "word_unknown_group": words("digits", "+trainr=torch"),
    "word_group_of_plugin_unknown": words("digits", "trainer/optimzer=sgd"),
    "word_number_for_group": words("digits", "trainer=5"),
    "word_unknown_type": words("inline", "trainer.type=xgbost"),
    "word_bad_name": words("digits", "name=a/b"),
    "several_words": words("digits", "num_workers=-1", "epochs=0", "+run.sed=3"),
    "missing_searchpath": words("digits", "hydra.searchpath=[confgs]"),
    # the file
    "file_missing": words("configs/digit.yaml"),
    "file_missing_folder": words("confgs/digits.yaml"),
    "file_missing_folder_builtin": words("confgs/ready.yaml", "lr=0.1"),
    "file_missing_builtin": words("configs/ready.yaml"),
    "name_missing": words("digit"),
    "name_empty": words(""),
    "file_yml": Wrong(("configs/old.yml",), {"configs/old.yml": HEAD}),
    "file_yaml_is_yml": Wrong(("configs/old.yaml",), {"configs/old.yml": HEAD}),
    "file_folder": Wrong(("configs",), {"configs/.pre-commit-config.yaml": ""}),
    "file_not_yaml": words("models.py"),
    "file_empty": yaml(""),
    "file_only_comment": yaml("# nothing yet\n"),
    "file_list": yaml("- a\n- b\n"),
    "file_scalar": yaml("hello\n"),
    "file_syntax": yaml("trainer:\n  model: [1, 2\nrun:\n  seed: 1\n"),
    "file_indentation": yaml("trainer:\n  max_epochs: 1\n   batch_size: 2\n"),
    "file_colon_in_value": yaml("run:\n  name: a: b\n"),
    "file_tabs": yaml("run:\n\tseed: 1\n"),
    "file_special_character": yaml("run:\n  name: @home\n"),
    "file_duplicate_key": yaml(HEAD + "run:\n  seed: 1\n  name: x\n  seed: 2\n"),
    "file_alias_bomb": yaml(BOMB),
    "file_alias_loop": yaml("vars: &v\n  inner: *v\n"),
    "file_too_big": yaml("#" + "x" * 1_000_001),
    "file_unknown_at_root": yaml(HEAD + MODEL + "scalling:\n  num_workers: 2\n"),
    "file_unknown_in_section": yaml(HEAD + MODEL + "scaling:\n  num_worker: 2\n"),
    "file_unknown_in_plugin": yaml(HEAD + MODEL + "  max_epoch: 2\n"),
    "file_unknown_inline": yaml("trainer:\n  type: torch\n  epoch: 2\n  model: {_target_: models.Net}\n"),
    "file_unknown_deep": yaml(HEAD + MODEL + "run:\n  checkpoint:\n    every_epoch: 2\n"),
    "file_wrong_type": yaml(HEAD + MODEL + "run:\n  seed: abc\n"),
    "file_scalar_for_section": yaml(HEAD + MODEL + "run: abc\n"),
    "file_list_for_section": yaml(HEAD + MODEL + "run: [abc]\n"),
    "file_list_for_scalar": yaml(HEAD + MODEL + "run:\n  name: [a, b]\n"),
    "file_out_of_range": yaml(HEAD + MODEL + "run:\n  seed: -1\n"),
    "file_short_name_out_of_range": yaml(HEAD + MODEL + "num_workers: -1\n"),
    "file_short_name_twice": yaml(HEAD + MODEL + "num_workers: 1\nscaling:\n  num_workers: 2\n"),
    "file_option_as_value": yaml(HEAD + MODEL + "optimizer: adamw\n"),
    "file_smoke_unknown_bound": yaml(HEAD + MODEL + "smoke:\n  expect: {test/loss: {maximum: 1}}\n"),
    "file_smoke_no_bound": yaml(HEAD + MODEL + "smoke:\n  expect: {test/loss: {}}\n"),
    "file_smoke_crossed_bounds": yaml(HEAD + MODEL + "smoke:\n  expect: {test/loss: {min: 2, max: 1}}\n"),
    "file_no_trainer": yaml("run:\n  seed: 1\n"),
    "file_no_type": yaml("trainer:\n  max_epochs: 1\n"),
    "file_unknown_type": yaml("trainer:\n  type: xgbost\n  num_rounds: 3\n"),
    "file_unknown_dataset_type": yaml("trainer: {type: xgboost}\ndataset:\n  type: digitz\n"),
    "file_missing_values": yaml("trainer:\n  type: torch\n  batch_size: ???\ndataset:\n  type: csv\n  path: ???\n"),
    "defaults_unknown_option": yaml("defaults:\n  - trainer: torhc\n"),
    "defaults_unknown_group": yaml("defaults:\n  - trainr: torch\n"),
    "defaults_unknown_config": yaml("defaults:\n  - digts\n"),
    "defaults_no_list": yaml("defaults: torch\n"),
    "defaults_two_keys": yaml("defaults:\n  - {trainer: torch, dataset: digits}\n"),
    "defaults_override_of_nothing": yaml("defaults:\n  - trainer: xgboost\n  - override scheduler: cosine\n"),
    "option_unknown_key": option("configs/trainer/bad.yaml", "type: torch\nmax_epoch: 1\n", "digits", "trainer=bad"),
    "option_unknown_type": option("configs/trainer/bad.yaml", "type: toch\nmax_epochs: 1\n", "digits", "trainer=bad"),
    "option_without_type": option("configs/trainer/bad.yaml", "max_epochs: 1\n", "digits", "trainer=bad"),
    "option_out_of_range": option("configs/dataset/bad.yaml", "type: digits\nsplit: 1.5\n", "digits", "dataset=bad"),
    "option_syntax": option("configs/dataset/bad.yaml", "type: [\n", "digits", "dataset=bad"),
    "option_yml": option("configs/dataset/bad.yml", "type: digits\n", "digits", "dataset=bad"),
    "option_section": option("configs/scaling/bad.yaml", "num_worker: 1\n", "digits", "scaling=bad"),
    # references
    "reference_missing": yaml(HEAD + MODEL + "run:\n  name: ${vars.nothing}\n"),
    "reference_cycle": yaml(HEAD + MODEL + "vars:\n  a: ${vars.b}\n  b: ${vars.a}\n"),
    "reference_unknown_resolver": yaml(HEAD + MODEL + "vars:\n  a: ${nothing:1}\n"),
    "reference_environment": yaml(HEAD + MODEL + "vars:\n  a: ${oc.env:RTRAIN_NOT_SET}\n"),
    "reference_syntax": yaml(HEAD + MODEL + "vars:\n  a: ${vars.\n"),
    "reference_wrong_type": yaml(HEAD + MODEL + "vars: {a: text}\nrun:\n  seed: ${vars.a}\n"),
    # targets
    "target_forbidden": words("digits", "model={_target_: os.system, command: ls}"),
    "target_forbidden_nested": yaml(
        HEAD + "trainer:\n  model:\n    _target_: models.Net\n    width:\n      _target_: subprocess.run\n"
    ),
    "target_not_a_path": words("digits", "model={_target_: Net}"),
    "target_dunder": words("digits", "model={_target_: torch.__builtins__.exec}"),
    "target_number": words("digits", "model={_target_: 5}"),
    "target_misspelt": yaml(HEAD + "trainer:\n  model:\n    _taregt_: models.Net\n"),
    "target_callback": words("digits", "+hydra.callbacks.x._target_=os.getcwd"),
    "package_unknown": words("digits", "--package", "trainr"),
}
