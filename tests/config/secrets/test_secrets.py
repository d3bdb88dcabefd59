"""No secret reaches a file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf
from small_project import SCHEMAS, check, each_trial, refused, write

from rtrain.config.secrets.masked import mask_value, mask_word
from rtrain.config.secrets.names import is_secret
from rtrain.config.secrets.urls import secrets_in_url, without_secrets
from rtrain.config.session import Session
from rtrain.errors import ConfigError

WORDS = [
    "+vars.hf_token=s3cret",
    "+vars.nested={api_key: s3cret, size: 3}",
    "+vars.url=https://me:s3cret@example.org/x",
    "+hydra.job.env_set.MY_PASSWORD=s3cret",
]


def test_the_task_sees_the_true_values_and_no_file_does(project):
    with Session("digits", WORDS, SCHEMAS) as session:
        vars_, folder = session.run(lambda composed, folder: (composed.conf.vars, folder))
    assert vars_["hf_token"] == "s3cret"
    assert vars_["nested"]["api_key"] == "s3cret"
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    assert len(files) == 3
    assert not [path for path in files if "s3cret" in path.read_text()]


def test_a_sweep_keeps_them_too(project):
    words = [*WORDS, "lr=0.1,0.2"]
    with Session("digits", words, SCHEMAS) as session:
        seen = each_trial(session, lambda composed, folder: composed.conf.vars["hf_token"])
    assert seen == ["s3cret", "s3cret"]
    files = list((project / "runs").rglob("*"))
    assert not [path for path in files if "s3cret" in path.name or (path.is_file() and "s3cret" in path.read_text())]


def test_the_record_masks_them(project):
    composed = check("digits", *WORDS)
    assert composed.resolved["vars"] == {
        "hf_token": "***",
        "nested": {"api_key": "***", "size": 3},
        "url": "https://***@example.org/x",
    }
    assert "s3cret" not in composed.yaml + " ".join(composed.overrides)
    assert composed.conf.vars["url"] == "https://me:s3cret@example.org/x"


def test_environment_variables_stay_symbolic(project, monkeypatch):
    monkeypatch.setenv("RTRAIN_TEST_VALUE", "12")
    words = [
        "+vars.a=${oc.env:RTRAIN_TEST_VALUE}",
        "+vars.b=x-${vars.a}-${oc.env:NOT_SET,fallback}",
        "run.seed='${oc.decode:${oc.env:RTRAIN_TEST_VALUE}}'",
        "+vars.c=${run.seed}",
    ]
    composed = check("digits", *words)
    assert composed.conf.vars == {"a": "12", "b": "x-12-fallback", "c": 12}
    assert composed.conf.run.seed == 12
    assert composed.resolved["vars"]["b"] == "x-${oc.env:RTRAIN_TEST_VALUE}-${oc.env:NOT_SET,fallback}"
    assert composed.resolved["run"]["seed"] == "${oc.decode:${oc.env:RTRAIN_TEST_VALUE}}"
    assert composed.resolved["vars"]["c"] == "${oc.decode:${oc.env:RTRAIN_TEST_VALUE}}"
    again = check(write("again.yaml", composed.yaml))
    assert (again.conf, again.yaml) == (composed.conf, composed.yaml)


def test_a_resolver_that_remembers_does_not_tell_a_variable(project, monkeypatch):
    monkeypatch.setenv("RTRAIN_TEST_VALUE", "s3cret")
    OmegaConf.register_new_resolver("with_dash", lambda text: f"-{text}", use_cache=True)
    try:
        composed = check("digits", "+vars.a='${with_dash:${oc.env:RTRAIN_TEST_VALUE}}'")
    finally:
        OmegaConf.clear_resolver("with_dash")
    assert composed.conf.vars == {"a": "-s3cret"}
    assert composed.resolved["vars"] == {"a": "-${oc.env:RTRAIN_TEST_VALUE}"}


def test_text_that_looks_like_a_reference_survives_the_written_config(project):
    write("configs/odd.yaml", "defaults: [digits]\nvars: {prompt: 'costs \\${price}'}\n")
    composed = check("odd")
    assert composed.conf.vars["prompt"] == "costs ${price}"
    assert yaml.safe_load(composed.yaml)["vars"]["prompt"] == "costs \\${price}"
    assert check(write("again.yaml", composed.yaml)).conf == composed.conf


def test_error_screens_mask_them(project):
    assert "s3cret" not in refused("digits", "+vars.token=s3cret", "num_workers=-1", "nothing.password=s3cret")
    assert "s3cret" not in refused("digits", "+vars.token=s3cret", "lr=0.1,0.2")


@pytest.mark.parametrize("word", ["+vars.url=s3://me:s3cret@b/x?a=1", "+vars.token=[s3cret", "s3://me:s3cret@b/x"])
def test_a_word_that_can_not_be_read_is_shown_without_them(project, word):
    assert "s3cret" not in refused("digits", word)


@pytest.mark.parametrize(
    "key", ["token", "hf_token", "HF_TOKEN", "client_secret", "secret_key", "db_password", "api_key"]
)
def test_keys_named_like_secrets(key):
    assert is_secret(key)


@pytest.mark.parametrize(
    "key", ["num_tokens", "max_tokens", "tokenizer", "pad_token", "eos_token", "token_dim", "secretary"]
)
def test_keys_that_only_sound_like_secrets(key):
    assert not is_secret(key)


def test_words():
    assert mask_word("+vars.token=abc") == "+vars.token='***'"
    assert mask_word("vars={keys: {my_token: abc}, size: 3}") == "vars={keys: {my_token: '***'}, size: 3}"
    assert mask_word("vars={passwords: [abc, def], size: 3}") == "vars={passwords: ['***', '***'], size: 3}"
    assert mask_word("vars={token: abc, size: 3}") == "vars={token: '***', size: 3}"
    assert mask_word("x.url=s3://key:abc@bucket/p") == "x.url=s3://bucket/p"
    assert mask_word("x.url=s3://key:a/b@bucket/p") == "x.url=s3://bucket/p"
    assert (
        mask_word("'x.url=https://h/p?X-Amz-Date=1&X-Amz-Signature=abc'")
        == "'x.url=https://h/p?X-Amz-Date=1&X-Amz-Signature=***'"
    )
    assert mask_word("vars.token=${oc.env:HF_TOKEN}") == "vars.token=${oc.env:HF_TOKEN}"


@pytest.mark.parametrize(
    "url",
    [
        "abfs://container@account.dfs.core.windows.net/x",
        "gs://anonymous@bucket/x",
        "http://host:8000/a@b.csv",
        "s3://bucket/a@b?region=here",
        "https://host/x?version=1&page_token_count=2",
    ],
)
def test_urls_without_a_secret_stay_whole(url):
    assert without_secrets(url) == url


@pytest.mark.parametrize(
    "name",
    ["sig", "X-Amz-Signature", "X-Amz-Security-Token", "X-Goog-Signature", "access_token", "secret_key", "account_key"],
)
def test_signatures_are_masked(name):
    assert without_secrets(f"https://host/x?v=1&{name}=abc%2F&w=2") == f"https://host/x?v=1&{name}=***&w=2"


@pytest.mark.parametrize(
    ("key", "value"), [("token", "s3cret"), ("keys.api_key", "s3cret"), ("url", "'https://h/x?sig=s3cret'")]
)
def test_no_run_goes_on_with_a_mask(key, value, project):
    Path("run").mkdir()
    Path("run/manifest.json").write_text("{}")
    written = write("run/config.yaml", check("digits", f"++vars.{key}={value}").yaml)
    with pytest.raises(ConfigError) as raised:
        check(written)
    assert f"vars.{key}" in raised.value.message
    assert "=..." in raised.value.hint
    assert check(written, f"++vars.{key}=given").conf.vars[key.partition(".")[0]] in ("given", {"api_key": "given"})


def test_a_mask_is_a_text_where_no_run_wrote_it(project):
    assert check("digits", "+vars.line='***'").conf.vars == {"line": "***"}


@pytest.mark.parametrize(
    "part",
    ["://", "s3://a:", "://a", "a", "a:[", "a:'", "'a", "a: {", " ", "?a", "://1:2", "token", "token:[", 'a-:"@'],
)
def test_no_text_takes_long(part):
    text = part * (400_000 // len(part))
    assert mask_word(f"vars.x={text}")
    assert isinstance(secrets_in_url(text), list)


def test_words_with_secrets_in_lists_of_mappings():
    assert mask_word("vars={all: [{token: abc}], line: 'my token: abc'}") == (
        "vars={all: [{token: '***'}], line: 'my token: abc'}"
    )


@pytest.mark.parametrize(
    "key",
    ["accessToken", "secretKey", "account_key", "connection_string", "Authorization", "hf_tokens", "token_", "hfToken"],
)
def test_other_spellings_of_secrets(key):
    assert is_secret(key)


@pytest.mark.parametrize("key", ["numTokens", "maxTokens", "padToken", "tokens", "token_ids", "tokenTypeIds", "keys"])
def test_other_spellings_of_what_is_none(key):
    assert not is_secret(key)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("${oc.env:NOPE,default-66secret}", "${oc.env:NOPE,***}"),
        ("${oc.env:NOPE,${oc.env:OTHER,default-66secret}}", "${oc.env:NOPE,${oc.env:OTHER,***}}"),
        ("${oc.env:NOPE,null}", "${oc.env:NOPE,null}"),
        ("${oc.decode:${oc.env:NOPE,66}}", "${oc.decode:${oc.env:NOPE,***}}"),
        ("Bearer ${oc.env:NOPE}", "Bearer ${oc.env:NOPE}"),
        ("${vars.y}tail-77secret", "***"),
        ("${oc.env:A}${oc.env:B}", "***"),
        ("${oc.env:A}-77secret-${oc.env:B}", "***"),
        ("${vars.y}", "${vars.y}"),
        ("", ""),
    ],
)
def test_a_reference_shows_no_literal(value, shown):
    assert mask_value("token", value) == shown
    assert "66" not in mask_word(f"vars={{token: {value}, a: 1}}")
    assert "77" not in mask_word(f"+vars.token={value}")


def test_the_default_of_a_variable_is_a_secret_in_texts(project):
    composed = check("digits", "+vars.token='${oc.env:NOPE,default-66secret}'")
    assert composed.resolved["vars"] == {"token": "${oc.env:NOPE,***}"}
    assert composed.redact("it is default-66secret") == "it is ***"


def test_what_a_secret_refers_to_is_masked_in_the_record(project):
    composed = check("digits", "+vars.x=hunter2hunter2", "+vars.all=[{password: '${vars.x}'}]", "+vars.y=other")
    assert composed.resolved["vars"] == {"x": "***", "all": [{"password": "***"}], "y": "other"}
    assert "hunter2" not in composed.yaml


WAYS = {
    "a reference": ["+vars.x=hunter2hunter2", "+vars.password='${vars.x}'"],
    "a part": ["+vars.x=hunter2hunter2", "+vars.password='pre-${vars.x}-post'"],
    "in turn": ["+vars.x=hunter2hunter2", "+vars.y='${vars.x}'", "+vars.all=[{password: '${vars.y}'}]"],
    "from its side": ["+vars.x=hunter2hunter2", "+vars.password='${.x}'"],
    "in a mapping": ["+vars={x: {y: hunter2hunter2}}", "+vars.password='${vars.x.y}'"],
    "an item": ["+vars.x=[a,hunter2hunter2]", "+vars.password='${vars.x[1]}'"],
    "a URL": ["+vars.x=hunter2hunter2", "+vars.url='https://me:${vars.x}@example.org/'"],
    "a signature": ["+vars.x=hunter2hunter2", "+vars.url='https://example.org/?sig=${vars.x}&a=b'"],
    "a default": ["+vars.x=hunter2hunter2", "+vars.password='${oc.env:NOT_SET,${vars.x}}'"],
    "a number": ["+vars.x=72617261", "+vars.password='${vars.x}'"],
}


@pytest.mark.parametrize("words", WAYS.values(), ids=WAYS)
def test_what_a_secret_refers_to_is_written_nowhere(project, words):
    secret = "72617261" if "72617261" in words[0] else "hunter2hunter2"
    with Session("digits", words, SCHEMAS) as session:
        shown = [session.show_cfg(*what) for what in (("job", None, False), ("job", None, True), ("all", None, False))]
        composed, folder = session.run(lambda composed, folder: (composed, folder))
    hydra = [path.read_text() for path in folder.glob(".hydra/*")]
    assert len(hydra) == 3
    for text in (*shown, *hydra, composed.yaml, str(composed.resolved), str(composed.overrides)):
        assert secret not in text
    assert secret in str(composed.conf.vars)


@pytest.mark.parametrize("words", WAYS.values(), ids=WAYS)
def test_nor_in_the_files_of_a_sweep(project, words):
    secret = "72617261" if "72617261" in words[0] else "hunter2hunter2"
    with Session("digits", [*words, "run.seed=1,2"], SCHEMAS) as session:
        trials = session.trials()
        trials.folder.mkdir(parents=True)
        trials.save()
    for path in trials.folder.iterdir():
        assert secret not in path.read_text()


def test_values_that_no_secret_refers_to_stay(project):
    words = ["+vars.x=hunter2hunter2", "+vars.other='${vars.x}'", "+vars.password=abc", "+vars.y=abc"]
    with Session("digits", words, SCHEMAS) as session:
        shown = session.show_cfg("job", "vars", False)
        composed = session.check()
    assert "hunter2hunter2" in shown
    assert composed.resolved["vars"]["x"] == composed.resolved["vars"]["other"] == "hunter2hunter2"
    assert composed.resolved["vars"]["y"] == "abc"
