"""Names of secrets, and names that only sound like some; URLs with secrets, and honest ones."""

from __future__ import annotations

import itertools

import pytest

from rtrain.config.secrets.masked import mask_value, mask_word
from rtrain.config.secrets.names import is_secret
from rtrain.config.secrets.urls import secrets_in_url, without_secrets

SPELLINGS = {
    "snake": "_".join,
    "kebab": "-".join,
    "upper": lambda words: "_".join(words).upper(),
    "camel": lambda words: words[0] + "".join(map(str.capitalize, words[1:])),
    "acronym": lambda words: words[0].upper() + "".join(map(str.capitalize, words[1:])),
    "numbered": lambda words: f"{'_'.join(words)}2",
}
SECRET = [
    "password",
    "passwd",
    "passphrase",
    "token",
    "pwd",
    "jwt",
    "dsn",
    "secret",
    "api_key",
    "access_key",
    "private_key",
    "signing_key",
    "credentials",
]
OTHERS = [
    "tokens",
    "tokenizer",
    "token_ids",
    "pad_token",
    "eos_token",
    "keys",
    "key",
    "keyboard",
    "monkey",
    "secretary",
    "keyed_by",
    "passes",
    "path",
]
FIRST = ("db", "my", "hf", "service")


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", SECRET)
def test_names_of_secrets(name, spelling):
    for first in FIRST:
        assert is_secret(SPELLINGS[spelling]([first, *name.split("_")])), first
    alone = SPELLINGS[spelling](name.split("_"))
    assert is_secret(alone) or alone == "PWD"


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", OTHERS)
def test_names_that_only_sound_like_secrets(name, spelling):
    for first in ("num", "max", "my", "model"):
        assert not is_secret(SPELLINGS[spelling]([first, *name.split("_")])), first


@pytest.mark.parametrize("name", ["PGPASS", "PGPASSWORD", "GITHUB_PAT", "HFToken", "apikey", "APIKey", "token2"])
def test_names_of_their_own(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "cwd", "max_token", "num_token", "cls_token", "one_pass"])
def test_names_of_no_secrets(name):
    assert not is_secret(name)


PASSWORDS = (
    "S3cret-Zq9",
    "12/S3cret-Zq9",
    "443/S3cret-Zq9",
    "p@S3cret-Zq9",
    "a S3cret-Zq9",
    "a'S3cret-Zq9",
    'a"\nS3cret-Zq9',
)
REST = ("", "/x.csv", ":80/x?v=1")


@pytest.mark.parametrize(("password", "rest"), list(itertools.product(PASSWORDS, REST)))
def test_passwords_of_urls(password, rest):
    url = f"https://me:{password}@host{rest}"
    assert without_secrets(url) == f"https://host{rest}"
    assert secrets_in_url(url) == [password]


@pytest.mark.parametrize("scheme", ["http", "s3", "git+https", "postgresql", "redis"])
@pytest.mark.parametrize("password", ["12/S3cret-Zq9", "70000/S3cret-Zq9", "p%2FS3cret-Zq9", "p@/S3cret-Zq9"])
def test_passwords_of_urls_in_texts(scheme, password):
    """Urllib, pip and git take ``12`` for the port of a host, and print the URL in their errors."""
    url = f"{scheme}://me:{password}@host"
    texts = [f"{url} failed, ask me@x.org", f"see {url} and {url}/x@2", f"no {url}/x.git@v1.0", f"'{url}'"]
    for text in texts:
        assert "S3cret" not in without_secrets(text)
        assert password in secrets_in_url(text)
    for harmless in ("host/path@2", "host:8080/path@2", "host.com:80/a@b 7", "host:80 mail me@x.org"):
        assert without_secrets(f"{scheme}://{harmless}") == f"{scheme}://{harmless}"


@pytest.mark.parametrize("user", ["S3cret-Zq9", "S3cret-Zq9:"])
def test_users_without_a_password(user):
    assert without_secrets(f"https://{user}@host") == "https://host"
    assert secrets_in_url(f"https://{user}@host") == ["S3cret-Zq9"]


NAMES = [
    "token",
    "tokens",
    "api-key",
    "api_key",
    "access_token",
    "sig",
    "signature",
    "key",
    "code",
    "auth",
    "x[token]",
    "X-Amz-Signature",
    "Password",
    "AccountKey",
]


@pytest.mark.parametrize("name", NAMES)
def test_parameters_of_urls(name):
    for before, after in itertools.product(("?", "?a=1&", "#", "?a=1;", "?a=1&amp;"), ("", "&b=2", "#c", ";d=1")):
        url = f"https://host/x{before}{name}=S3cret-Zq9%2F{after}"
        assert without_secrets(url) == f"https://host/x{before}{name}=***{after}"
        assert secrets_in_url(url) == ["S3cret-Zq9%2F"]


@pytest.mark.parametrize(
    "text",
    [
        "Server=h;Password={};Db=x",
        "AccountName=n;AccountKey={}",
        "host=h password='{}' dbname=x",
        "++vars.api_token={}",
    ],
)
def test_connection_strings(text):
    assert without_secrets(text.format("S3cret-Zq9==")) == text.replace("'", "").format("***")


@pytest.mark.parametrize(
    "url",
    [
        "http://host.org:80/a@b",
        "http://localhost:80/a@b",
        "http://minio:9000/a@b",
        "http://[::1]:80/a@b",
        "https://host/a@b:c",
        "see http://host:80 or write to me@example.org",
        "https://host/x?page_token_count=2&max_tokens=5&monkey=1",
    ],
)
def test_honest_urls_stay_whole(url):
    assert without_secrets(url) == url
    assert secrets_in_url(url) == []


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("https://me:${oc.env:TOK}@h/x", "https://me:${oc.env:TOK}@h/x"),
        ("postgresql://me:${oc.env:DB_PASSWORD}@host:5432/db", "postgresql://me:${oc.env:DB_PASSWORD}@host:5432/db"),
        ("https://${oc.env:TOK}@h/x", "https://${oc.env:TOK}@h/x"),
        ("https://${oc.env:ME}:${oc.env:TOK}@h/x", "https://${oc.env:ME}:${oc.env:TOK}@h/x"),
        ("https://me:${vars.tok}@h/x", "https://me:${vars.tok}@h/x"),
        ("https://me:${oc.env:TOK,hunter2}@h", "https://me:${oc.env:TOK,***}@h"),
        ("https://me:pre${oc.env:TOK}@h/x", "https://***@h/x"),
        ("https://me:hunter2@h/x", "https://***@h/x"),
        ("https://hunter2@h/x", "https://***@h/x"),
        ("https://***@h/x", "https://***@h/x"),
        ("https://a:b@h/x?token=c", "https://***@h/x?token=***"),
        ("of https://a:b@h/x to http://c:d@i/y", "of https://***@h/x to http://***@i/y"),
        ("s3://key:secret@bucket/x", "s3://bucket/x"),
        ("gs://anonymous@bucket/x", "gs://anonymous@bucket/x"),
    ],
)
def test_a_url_of_a_record_says_what_it_lacks_and_keeps_references(text, written):
    assert mask_value("address", text) == written
    assert written in mask_word(f"address='{text}'").replace("\\", "")
