"""Object stores behind URLs: their file systems, through pyarrow or fsspec, and what they refuse in plain words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from rtrain.config.did_you_mean import did_you_mean
from rtrain.config.files.home import expanded
from rtrain.config.secrets.urls import without_secrets
from rtrain.config.targets.servers import CREDENTIALS, url_parts
from rtrain.errors import ConfigError

BUILT_INTO_PYARROW = (*CREDENTIALS, "hdfs")
S3_OPTIONS = ("region", "endpoint_override", "scheme", "anonymous")
"""What may follow a URL, as in ``s3://bucket/rows.csv?region=eu-central-1``."""
MAX_ATTEMPTS = 5
"""Of a request to S3: about 7 seconds for a server that is down, 25 for one that is silent."""
GOOGLE_RETRY_SECONDS = 30
"""For each of two requests, unless the URL says retry_limit_seconds; Google's own limit is 15 minutes."""
_DRAWN = re.compile(r"\x1b\[[\d;]*m|↳")
"""Colours and arrows, with which deltalake draws trees."""
_MISSING = re.compile(r"NO_SUCH_(BUCKET|KEY)|NoSuchBucket")
_REFUSED = re.compile(
    r"ACCESS_DENIED|SIGNATURE_DOES_NOT_MATCH|ACCESS_KEY_ID|TOKEN|CREDENTIAL|PERMISSION_DENIED|UNAUTHENTICATED|"
    r"[Aa]uthenticat|[Cc]redential|\b40[13]\b"
)
_NO_ANSWER = re.compile(
    r"NETWORK_CONNECTION|UNAVAILABLE|[Cc]ould ?n[o']t connect|[Cc]onnect(ion)? (error|refused)|[Tt]imed? ?out"
)

_BUSY = re.compile(r"SLOW_?DOWN|THROTTL|SERVICE_UNAVAILABLE|INTERNAL_(FAILURE|ERROR)|\b50[0234]\b", re.IGNORECASE)


def is_url(text: str) -> bool:
    """Return whether ``text`` is a URL and not a local path."""
    return "://" in text


def shown_url(url: str) -> str:
    """Return a URL without user, password, signature and options."""
    bare = without_secrets(url_parts(url)[0])
    return re.split(r"[?#]", bare)[0] if bare.lower().startswith("http") else bare


def path_in(url: str) -> str:
    """Return the path of a URL after the user, from bucket or host on, with its glob signs."""
    rest = url_parts(url)[0].partition("://")[2]
    host, slash, path = rest.partition("/")
    return unquote(f"{host.rpartition('@')[2]}{slash}{path}")


def disk_path(url: str) -> Path:
    """Return the path that a ``file://`` URL names.

    Raises:
        ConfigError: It names a machine: ``file://runs`` is not ``file:///runs``.
    """
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        meant = expanded(unquote(f"{parts.netloc}{parts.path}")).absolute()
        raise ConfigError(
            f"{url}: {parts.netloc} would be a machine, as a path begins after the third slash.",
            did_you_mean(f"file://{quote(str(meant))}"),
        )
    return Path(unquote(parts.path))


def open_store(url: str, timeout_seconds: float | None = None) -> tuple[Any, str]:
    """Return the file system of a URL, with fsspec's methods, and the path there.

    Args:
        url: Its scheme decides.
        timeout_seconds: How long S3 may be silent in the middle of a request; None: as its library has it, about 10.
    """
    import fsspec

    scheme = url.partition("://")[0].lower()
    if scheme in BUILT_INTO_PYARROW:
        from rtrain.storage.pyarrow_store import PyarrowStore

        found, path = _s3(url, timeout_seconds) if scheme == "s3" else _by_pyarrow(url)
        return PyarrowStore(found), path.rstrip("/")
    store, path = fsspec.core.url_to_fs(url)
    return store, path.rstrip("/")


def s3_endpoint() -> str | None:
    """Return the address that the environment names in place of Amazon's."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


@contextmanager
def errors_named(url: str, key: str, kind: type[ConfigError] = ConfigError) -> Iterator[None]:
    """Raise a store's error as an error of ``kind``, with the URL, the config key and a hint."""
    import pyarrow as pa

    try:
        yield
    except (ImportError, OSError, ValueError, pa.ArrowException) as error:
        raise refusal(url, key, error, kind) from error


def refusal(url: str, key: str, error: Exception, kind: type[ConfigError] = ConfigError) -> ConfigError:
    """Return the error for what a store says."""
    scheme = url.partition("://")[0].lower()
    what = said(error)
    place = f"{key}: {shown_url(url)}"
    if isinstance(error, ImportError):
        return kind(f"{place} needs a package that is not installed: {what}")
    if isinstance(error, FileNotFoundError) or _MISSING.search(what):
        return kind(f"{place} does not exist.", "Check bucket, folder and name.")
    at = f" at {without_secrets(endpoint)}" if scheme == "s3" and (endpoint := s3_endpoint()) else ""
    if _NO_ANSWER.search(what):
        return kind(f"{place} can't be reached{at}: {what}", "Check the network and the address of the store.")
    if isinstance(error, PermissionError) or _REFUSED.search(what):
        where = CREDENTIALS.get(scheme, "in the environment")
        return kind(f"{place}: access denied{at}: {what}", f"Check the credentials ({where}) and their permissions.")
    if is_temporary(error):
        return kind(f"{place} fails{at}: {what}", "The store is busy or broken: try again later.")
    return kind(f"{place} can't be used{at}: {what}", "Check the URL, and the credentials.")


def is_temporary(error: Exception) -> bool:
    """Return whether a store may have another answer a little later: it is busy, or can't be reached."""
    return isinstance(error, OSError) and bool(_BUSY.search(str(error)) or _NO_ANSWER.search(str(error)))


def said(error: BaseException) -> str:
    """Return what a store says, in one line without secrets."""
    return without_secrets(" ".join(_DRAWN.sub("", str(error)).split())[:400])


def _by_pyarrow(url: str) -> tuple[Any, str]:
    from pyarrow import fs

    bare, options = url_parts(url)
    scheme, _, rest = bare.partition("://")
    host, slash, path = rest.partition("/")
    if scheme.lower() == "az":
        scheme, host = "abfs", f"{host}@{_azure_account()}"
    if scheme.lower() in ("gs", "gcs") and "retry_limit_seconds=" not in options:
        options = f"{options}&retry_limit_seconds={GOOGLE_RETRY_SECONDS}".lstrip("&")
    store, place = fs.FileSystem.from_uri(f"{scheme}://{host}{slash}{quote(unquote(path))}?{options}")
    return (_with_azure_key(store) if scheme.lower().startswith("abfs") else store), place


def _azure_account() -> str:
    """Return the host of the account, which an ``az://container/path`` leaves to the environment."""
    account = os.environ.get("AZURE_STORAGE_ACCOUNT") or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
    if not account:
        raise ValueError("AZURE_STORAGE_ACCOUNT is not set; or write abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/...")
    return f"{account}.dfs.core.windows.net"


def _with_azure_key(store: Any) -> Any:
    """Return an Azure store with the key of the environment, which pyarrow takes as an argument and in no URL."""
    from pyarrow import fs

    given = {"account_key": os.environ.get("AZURE_STORAGE_KEY"), "sas_token": os.environ.get("AZURE_STORAGE_SAS_TOKEN")}
    name = next((name for name, value in given.items() if value), None)
    if name is None:
        return store
    settings = {key: value for key, value in store.__reduce__()[1][0].items() if value}
    return fs.AzureFileSystem(**settings, **{name: given[name]})


def _s3(url: str, timeout_seconds: float | None) -> tuple[Any, str]:
    """Do what pyarrow's ``from_uri`` does; but that would wait three minutes for a server that is silent."""
    from pyarrow import fs

    bare, text = url_parts(url)
    options, path = dict(parse_qsl(text)), path_in(url)
    unknown = [name for name in options if name not in S3_OPTIONS]
    if unknown:
        raise ValueError(f"an s3 URL has no option {unknown[0]}, only {', '.join(S3_OPTIONS)}")
    user = bare.partition("://")[2].partition("/")[0].rpartition("@")[0]
    key_id, _, secret = map(unquote, user.partition(":"))
    endpoint = options.get("endpoint_override") or s3_endpoint()
    store = fs.S3FileSystem(
        access_key=key_id or None,
        secret_key=secret or None,
        anonymous=options.get("anonymous") == "true",
        region=options.get("region") or (None if endpoint else fs.resolve_s3_region(path.partition("/")[0])),
        scheme=options.get("scheme"),
        endpoint_override=endpoint,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=2 if timeout_seconds else MAX_ATTEMPTS),
        request_timeout=timeout_seconds,
        connect_timeout=timeout_seconds,
        allow_delayed_open=True,  # a small file takes one request
        background_writes=False,  # a whole file would be held in memory while a slow store takes it
    )
    return store, path
