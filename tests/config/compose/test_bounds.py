"""A config that would expand without bounds is refused quickly, wherever it is resolved."""

from __future__ import annotations

import pytest
import yaml
from antlr4 import InputStream
from omegaconf import OmegaConf, grammar_parser
from small_project import SCHEMAS, check, refused, write

from rtrain.cli.app import run as command
from rtrain.config.compose import bounds
from rtrain.config.compose.bounds import (
    MAX_PARSED,
    MAX_REFERENCES,
    ExpansionError,
    bounded_references,
    check_words,
)
from rtrain.config.compose.marks import symbolic_environment
from rtrain.config.compose.resolve import resolve
from rtrain.config.compose.search_space import Space, with_params, with_zip
from rtrain.config.files.limits import MAX_BYTES
from rtrain.config.session import Session
from rtrain.errors import ConfigError

LEVELS = 8


def bomb(first, refer):
    """Return variables each of which refers to the one before it, ten times."""
    return {"a0": first, **{f"a{level}": refer(level - 1) for level in range(1, LEVELS + 1)}}


TEN = range(10)
BOMBS = {
    "text": bomb("boom", lambda level: f"${{vars.a{level}}}" * 10),
    "list": bomb(["boom"], lambda level: [f"${{vars.a{level}}}"] * 10),
    "mapping": bomb({"x": 1}, lambda level: {f"k{one}": f"${{vars.a{level}}}" for one in TEN}),
    "selected": bomb("boom", lambda level: f"${{oc.select:vars.a{level}}}" * 10),
    "created": bomb("boom", lambda level: [f"${{oc.create:${{vars.a{level}}}}}"] * 10),
    "long": bomb("x" * 100_000, lambda level: f"${{vars.a{level}}}" * 10),
    "wide": bomb([1] * 20_000, lambda level: [f"${{vars.a{level}}}"] * 10),
    "nested": bomb("boom", lambda level: f"${{vars.${{oc.decode:a{level}}}}}" * 10),
}


@pytest.fixture(params=BOMBS)
def armed(request, project):
    """The config ``evil``, which is as large as a world once it is resolved."""
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits"], "vars": BOMBS[request.param]}))
    return request.param


def test_a_check_refuses_it(armed, monkeypatch):
    for name in ("REFERENCES", "VALUES", "CHARACTERS"):  # a tenth, for time's sake: the next tests take all
        monkeypatch.setattr(bounds, f"MAX_{name}", getattr(bounds, f"MAX_{name}") // 10)
    with Session("evil", [], SCHEMAS) as session, pytest.raises(ExpansionError, match=r"^vars\.a"):
        session.check()


@pytest.mark.parametrize("armed", ["text", "list"], indirect=True)
@pytest.mark.parametrize("look", ["job", "sweep"])
def test_every_look_refuses_it(look, armed):
    words = ["seed=1,2"] if look == "sweep" else []
    with Session("evil", words, SCHEMAS) as session, pytest.raises(ExpansionError):
        session.trials() if look == "sweep" else session.show_cfg(look, None, True)


@pytest.mark.parametrize("key", ["run.name", "hydra.callbacks.x", "hydra.job.name"])
def test_every_place_refuses_it(key, project):
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits"], "vars": BOMBS["text"]}))
    with Session("evil", [f"++{key}=${{vars.a8}}"], SCHEMAS) as session, pytest.raises(ExpansionError):
        session.check()


def test_what_people_write_has_room():
    cfg = OmegaConf.create({"hydra": {}, "a": 1, "b": [f"${{a}}-{one}" for one in range(MAX_REFERENCES // 2)]})
    with bounded_references():
        assert resolve(cfg)["b"][7] == "1-7"


HUGE = 150_000
MANY = 8_000
"""Characters of each of many texts."""
LONG = {
    "parts": {"x": "${vars" + ".a" * HUGE + "}"},
    "many parts": {f"x{one}": "${vars" + ".a" * (MANY // 2 - 10) + "}" for one in range(100)},
    "keys": {"x": "${vars.y}" + "[a]" * HUGE},
    "name": {"x": "${vars." + "a" * 6 * HUGE + "}"},
    "backslashes": {"x": "\\" * HUGE + "${vars.y}"},
    "decoded": {"y": "[" + "1," * HUGE + "1]", "x": "${oc.decode:${vars.y}}"},
    "decoded often": {"y": "[" + "1," * 5_000 + "1]", **{f"x{one}": "${oc.decode:${vars.y}}" for one in range(100)}},
    "aliases": {"y": "{a: &a [1, 1], b: [*a, *a]}", "x": "${oc.create:${vars.y}}"},
}


QUICK = ("parts", "keys", "decoded often")


@pytest.mark.parametrize("kind", [pytest.param(one, marks=() if one in QUICK else pytest.mark.slow) for one in LONG])
def test_a_text_that_takes_long_to_parse_is_refused(kind, project, monkeypatch):
    parsed = []

    def counting(text):
        parsed.append(len(text))
        return InputStream(text)

    if kind == "decoded often":  # parses as much as it may, twice: less is the same
        monkeypatch.setattr(bounds, "MAX_PARSED", MAX_PARSED // 5)
    monkeypatch.setattr(grammar_parser, "InputStream", counting)
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits"], "vars": LONG[kind]}))
    assert "vars" in refused("evil")
    # While it is composed, checked and explained, each time to the end of the text that is too much.
    assert sum(parsed) < 3 * (bounds.MAX_PARSED + MANY)


def test_a_prompt_may_be_long_and_a_choice_too(project):
    text = "Say [what] {you} see: $5. " * 4_000
    write(
        "configs/long.yaml",
        yaml.safe_dump({"defaults": ["digits"], "vars": {"x": text, "y": "${.z}" + "a " * 4_000, "z": 1}}),
    )
    assert check("long").resolved["vars"]["x"] == text
    with Session("digits", ["seed=choice(" + ",".join(map(str, range(10_000))) + ")"], SCHEMAS) as session:
        assert len(session.trials().axes[0].values) == 10_000


@pytest.mark.parametrize("look", ["check", "job", "info"])
@pytest.mark.parametrize("kind", ["twice", "many"])
def test_defaults_lists_don_t_grow_without_bounds(kind, look, project):
    for level in range(31):
        write(f"configs/g/e{level}.yaml", f"defaults: [e{level + 1}, e{level + 1}@x]\n" if level < 30 else "a: 1\n")
    added = [{"g": "e0"}] if kind == "twice" else [{f"g@vars.p{one}": "e30"} for one in range(3_000)]
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits", *added]}))
    with Session("evil", [], SCHEMAS) as session, pytest.raises(ExpansionError, match="defaults lists include"):
        session.check() if look == "check" else session.show_cfg(look) if look == "job" else session.show_info(
            "defaults"
        )


WORDS = {
    "choice": "choice(" + ",".join(map(str, range(100_000))) + ")",
    "list": [[1] * 9_000],
    "text": "x" * 200_000,
    "values": list(range(100_000)),
}


@pytest.mark.parametrize("kind", WORDS)
def test_what_a_file_varies_is_bounded(kind):
    with pytest.raises(ExpansionError, match=r"sweep\.params"):
        with_params(Space(fixed=(), axes=()), None, {"run.seed": WORDS[kind]}, 0)
    with pytest.raises(ExpansionError, match=r"sweep\.zip"):
        with_zip(Space(fixed=(), axes=()), {"run.seed": [WORDS[kind]], "run.name": ["x"]})


def test_overrides_of_a_file_are_bounded():
    check_words("smoke.overrides", ["a=1"] * 1_000)
    for words in ([f"a={'x' * 150_000}"], [f"a=[{'x' * 30_000}]"], ["a=" + "x" * 90_000] * 3):
        with pytest.raises(ExpansionError, match=r"smoke\.overrides"):
            check_words("smoke.overrides", words)


@pytest.mark.parametrize(
    "key", ["a" * 100_000, "a " * 50_000, "a\n" * 50_000, "a." * 50_000], ids=["a", "words", "lines", "dots"]
)
@pytest.mark.parametrize("where", ["", "hydra", "vars.x"])
def test_an_error_about_a_long_name_is_short(key, where, project):
    node = {key: 1}
    for part in reversed(where.split(".") if where else []):
        node = {part: node}
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits"], **node}))
    text = refused("evil")
    assert "characters; the maximum is 1,000" in text
    assert len(text) < 10_000
    assert max(map(len, text.splitlines())) < 1_100


def test_a_typed_name_is_cut_too(project):
    for word in ("a" * 50_000 + "=1", "run.name=" + "a/" * 20_000, "trainer=" + "b" * 50_000):
        assert len(refused("digits", word)) < 10_000


def test_references_are_counted_for_each_config_alone():
    cfg = OmegaConf.create({"hydra": {}, "a": 1, "b": "${a}"})
    for _ in range(3):
        with bounded_references():
            assert resolve(cfg)["b"] == 1


def test_bounds_outlast_blocks_that_replace_the_same_resolvers():
    cfg = OmegaConf.create({"hydra": {}, "a": "x" * (MAX_PARSED + 1), "b": "${oc.decode:${a}}"})
    with bounded_references():
        with symbolic_environment():
            pass
        with pytest.raises(ExpansionError, match="too many signs"):
            resolve(cfg)


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 400 + "]" * 400,
        "a: " + "{a: " * 400 + "1" + "}" * 400,
        "".join(f"{'  ' * level}a:\n" for level in range(400)),
        "a: " + "[" * 100_000,
        "a: '" + "${vars.b}" * 1000 + "'",
        "a: '" + "${" * 1000 + "'",
        "a: \0",
        "a: '\x07'",
    ],
    ids=["lists", "mappings", "lines", "open", "references", "braces", "nul", "bell"],
)
def test_what_no_config_needs_is_told_with_its_place(text, project):
    write("configs/evil.yaml", f"defaults: [digits]\n{text}\n")
    assert "evil.yaml:" in refused("evil")


def test_a_config_has_at_most_a_megabyte(project):
    text = "defaults: [digits]\n"
    write("configs/large.yaml", text + "#" * (MAX_BYTES - len(text)))
    assert check("large")
    write("configs/large.yaml", text + "#" * (MAX_BYTES - len(text) + 1))
    assert "1000001 bytes" in refused("large")


def test_a_folder_that_is_gone_is_told(project, monkeypatch, capsys):
    write("gone/x.yaml", "defaults: [digits]\n")
    monkeypatch.chdir("gone")
    (project / "gone/x.yaml").unlink()
    (project / "gone").rmdir()
    for words in (["fit", "x.yaml"], ["fit", "mlp", "--cfg", "job"], ["smoke", "x"], ["resume", "runs/x"]):
        assert command(words) == ConfigError("").exit_code
        assert "Traceback" not in capsys.readouterr().err
