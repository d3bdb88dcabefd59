"""A secret is planted in each place in each form, and looked for in all that is written, shown and said."""

from __future__ import annotations

import base64

import pytest
import yaml
from small_project import SCHEMAS, refused, write

from rtrain.config.secrets.masked import mask_word, secrets_in_text
from rtrain.config.session import Session
from rtrain.errors import ConfigError

FORMS = {"text": "S3cret-abc123", "number": 7261726155, "bytes": b"S3cret-abc123"}
PLACES = {
    "a key": {"api_token": "SECRET"},
    "a mapping": {"credentials": {"user": "bob", "pw": "SECRET", "list": ["x", "SECRET", {"deep": "SECRET"}]}},
    "a mapping in a list": {"api_key": [{"inner": ["SECRET"]}]},
    "a reference": {"api_token": "SECRET", "login": "${vars.api_token}"},
    "a part": {"api_token": "SECRET", "header": "Bearer ${vars.api_token}"},
    "through a mapping": {"db": {"password": "SECRET"}, "sub": "${vars.db}", "one": "${vars.sub.password}"},
    "by a resolver": {"db": {"password": "SECRET"}, "values": "${oc.dict.values:vars.db}"},
    "beside it": {"x": "SECRET", "credentials": {"pw": "${vars.x}"}, "y": "${vars.x}"},
    "through two": {"api_token": "SECRET", "a": "${vars.api_token}", "b": "-${vars.a}-"},
}


def planted(data, value):
    """Return data with a value in the place of SECRET."""
    if isinstance(data, dict):
        return {key: planted(one, value) for key, one in data.items()}
    if isinstance(data, list):
        return [planted(one, value) for one in data]
    return value if data == "SECRET" else data


def tells(text: str) -> bool:
    """Tell whether a text holds one of the forms."""
    return any(one in text for one in ("S3cret", "7261726155", base64.b64encode(FORMS["bytes"]).decode()))


def all_told(config: str, words: list[str]) -> list[str]:
    """Return all that is shown and written of a config."""
    with Session(config, words, SCHEMAS) as session:
        shown = [session.show_cfg(*what) for what in (("job", None, False), ("job", None, True), ("all", None, False))]
        composed, folder = session.run(lambda composed, folder: (composed, folder))
    files = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert len(files) == 3
    return [*shown, *files, composed.yaml, str(composed.resolved), str(composed.command)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", PLACES)
def test_a_secret_of_a_file_is_written_nowhere(place, form, project):
    write("configs/planted.yaml", yaml.safe_dump({"defaults": ["digits"], "vars": planted(PLACES[place], FORMS[form])}))
    assert not [text for text in all_told("planted", []) if tells(text)]


WORDS = [
    r"+vars={api_key: 'abc\'S3cret-tail99'}",
    r"+vars.api_key=abc\,S3cret",
    r'+vars.api_key="a\"S3cret"',
    "+vars.api_key=str([1,S3cret])",
    "+vars={api_key: {inner: [S3cret]}}",
    "+vars.credentials={user: x, pw: S3cret, n: 7261726155}",
    "+vars.credentials.deep.one=S3cret",
    "+vars={list: [{passwords: [a, S3cret]}]}",
    "+vars={text: '{api_token: S3cret}'}",
    "+vars={api_key: S3cret-abc123, header: 'Bearer ${vars.api_key}'}",
]


@pytest.mark.parametrize("word", WORDS)
def test_a_secret_that_is_typed_is_written_nowhere(word, project):
    assert not [text for text in all_told("digits", [word]) if tells(text)]


def test_a_secret_of_a_sweep_is_not_in_what_refuses_it_without_one(project):
    word = "+sweep.params={vars: ['{api_token: S3cret}', '{api_token: S3cret-2}']}"
    assert not tells(refused("digits", word))


@pytest.mark.parametrize(
    "word", ["x={api_key: ''S3cret}", "api_key@x=S3cret", "x={api_key: S3cret", "api_key=(a,S3cret)"]
)
@pytest.mark.parametrize("before", ["", "+", "vars.", "++vars."])
def test_words_that_can_not_be_read_lose_their_value(word, before, project):
    assert not tells(mask_word(before + word))
    assert not tells(refused("digits", before + word))


def test_what_is_decoded_from_a_variable_is_known(project, monkeypatch):
    monkeypatch.setenv("SETTINGS", "{user: bob, password: S3cret-abc123}")
    monkeypatch.setenv("CREDS", "{user: b0bby99, list: [S3cret-2222]}")
    words = ["+vars.a='${oc.decode:${oc.env:SETTINGS}}'", "+vars.b='${oc.decode:${oc.env:CREDS}}'"]
    with Session("digits", words, SCHEMAS) as session:
        redact = session.check().redact
    assert redact("S3cret-abc123 S3cret-2222 b0bby99 bob") == "*** *** *** bob"
    assert secrets_in_text('{"api_key": "S3cret", "user": "bob"}') == ["S3cret"]


BROKEN = {
    "an unknown key": "defaults: [digits]\nrun: {api_token: S3cret}\n",
    "a key twice": "vars:\n  api_token: S3cret\n  api_token: S3cret\n",
    "no YAML": "vars:\n  api_token: S3cret: x\n",
    "no colon": "vars:\n  api_token S3cret\n  x: 1\n",
    "a tab": "vars:\n  api_token: S3cret\n\tx: 1\n",
    "a broken reference": "defaults: [digits]\nvars: {api_token: '${vars.x S3cret'}\n",
    "a line above": "defaults: [digits]\nvars:\n  api_token: S3cret\nnope: 1\n",
    "a list above": "defaults: [digits]\nvars:\n  api_keys:\n  - S3cret\nnope: 1\n",
    "a block above": "defaults: [digits]\nvars:\n  private_key: |\n    S3cret\nnope: 1\n",
    "a wrong type": "defaults: [digits]\nvars: {api_token: S3cret-abc123}\nrun: {seed: '${vars.api_token}'}\n",
    "a wrong choice": "defaults: [digits]\nvars: {api_token: S3cret}\ntrainer: {precision: '${vars.api_token}'}\n",
    "a target": "defaults: [digits]\nvars: {api_key: S3cret.abc123}\ntrainer: {model: {_target_: '${vars.api_key}'}}\n",
    "two mistakes": "defaults: [digits]\nvars: {api_token: S3cret-abc}\n"
    "trainer: {precision: '${vars.api_token}', max_epochs: '${vars.api_token}'}\n",
    "a name": "defaults: [digits]\nvars: {api_token: S3cret-abc}\nrun: {name: 'x-${vars.api_token}'}\n",
    "a folder": "defaults: [digits]\nvars: {api_token: S3cret-abc}\nhydra: {run: {dir: 'runs/${vars.api_token}'}}\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_no_error_tells_a_secret(text, project):
    write("configs/broken.yaml", text)
    assert not tells(refused("broken"))


@pytest.mark.parametrize(
    "words",
    [
        ["+vars.x=S3cret-1,S3cret-2", "+vars.api_key='${vars.x}'"],
        ["+vars.api_key=S3cret-1,S3cret-2"],
        ["+vars.credentials.user=S3cret-1,S3cret-2"],
        ["+vars={api_key: S3cret-1},{api_key: S3cret-2}"],
    ],
)
def test_no_secret_is_swept(words, project):
    with pytest.raises(ConfigError, match="it can't be varied") as raised, Session("digits", words, SCHEMAS) as session:
        session.trials()
    assert not tells(str(raised.value))


def test_an_ordinary_word_stays_where_nothing_refers_to_it(project):
    write("configs/plain.yaml", "defaults: [digits]\nvars: {api_key: accuracy, metric: accuracy}\n")
    with Session("plain", [], SCHEMAS) as session:
        assert session.check().resolved["vars"] == {"api_key": "***", "metric": "accuracy"}
