"""What is shown of a config, and what is said of its mistakes, tells no secret."""

from __future__ import annotations

import pytest
import yaml
from small_project import SCHEMAS, check, refused, write

from rtrain.config.session import Session

SECRETS = {
    "HF_TOKEN": "hf-T0ken-5f5f5f",
    "SHORT_TOKEN": "zq1",
    "ODD_NAME": "zqPARAM12345678",
    "LITERAL": "L1teral-s3cret",
    "PASSWORD": "Us3r-s3cret-55c2",
    "SIGNATURE": "S1gnature-s3cret-b3b3",
}
URL = f"http://me:{SECRETS['PASSWORD']}@host/x.csv?X-Amz-Signature={SECRETS['SIGNATURE']}"
VARS = {
    "hf_token": "${oc.env:HF_TOKEN}",
    "short_token": "${oc.env:SHORT_TOKEN}",
    "plain": "Bearer ${oc.env:ODD_NAME}",
    "again": "${vars.plain}!",
    "list": ["${vars.hf_token}", "x"],
    "api_key": SECRETS["LITERAL"],
    "url": URL,
    "shown": "${oc.env:SHOWN_NAME}",
}


@pytest.fixture
def keyed(project, monkeypatch):
    """The config ``keyed``, with a secret in each form, literal and out of the environment."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SHOWN_NAME", "plain words")
    hydra = {"callbacks": {"x": {"_target_": "models.Net", "width": "${vars.again}"}}}
    write("configs/keyed.yaml", yaml.safe_dump({"defaults": ["digits"], "vars": VARS, "hydra": hydra}))


def told(text: str) -> list[str]:
    """Return which secrets a text tells."""
    return [name for name, value in SECRETS.items() if value in text]


@pytest.mark.parametrize("resolve", [False, True])
@pytest.mark.parametrize(
    "package", [None, "vars", "vars.hf_token", "vars.again", "vars.url", "vars.list", "vars.api_key"]
)
def test_cfg_shows_none(package, resolve, keyed):
    with Session("keyed", [f"+vars.b.client_secret={SECRETS['LITERAL']}"], SCHEMAS) as session:
        shown = session.show_cfg("job", package, resolve)
    assert not told(shown)
    if resolve and package in (None, "vars"):
        assert yaml.safe_load(shown).get("vars", yaml.safe_load(shown))["shown"] == "plain words"


@pytest.mark.parametrize("what", ["all", "config", "defaults", "searchpath"])
def test_info_shows_none(what, keyed):
    with Session("keyed", [f"+vars.b.client_secret={SECRETS['LITERAL']}"], SCHEMAS) as session:
        assert not told(session.show_info(what))


@pytest.mark.parametrize("name", ["ODD_NAME", "SHORT_TOKEN"])
@pytest.mark.parametrize("value", ["${{oc.env:{name}}}", "${{vars.own}}"])
@pytest.mark.parametrize("key", ["trainer.max_epochs", "scaling.use_gpu", "trainer.precision", "run.storage"])
def test_a_wrong_type_names_the_variable(key, value, name, keyed):
    said = refused("keyed", f"{key}='{value.format(name=name)}'", f"+vars.own=${{oc.env:{name}}}")
    assert key in said
    assert not told(said)


@pytest.mark.parametrize("key", ["trainer.optimizer._target_", "trainer.model._target_", "+hydra.callbacks.y._target_"])
def test_a_wrong_target_names_the_variable(key, keyed):
    for name in ("ODD_NAME", "HF_TOKEN"):
        said = refused("keyed", f"{key}=${{oc.env:{name}}}")
        assert f"oc.env:{name}" in said
        assert not told(said)


@pytest.mark.parametrize("key", ["run.name", "run.root_dir", "hydra.run.dir"])
def test_no_folder_is_named_by_a_secret(key, keyed):
    said = refused("keyed", f"{key}=runs-${{oc.env:HF_TOKEN}}")
    assert "HF_TOKEN" in said
    assert not told(said)
    assert check("keyed", "run.name=${oc.env:USER_NAME,me}").conf.run.name == "me"
