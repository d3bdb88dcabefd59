"""Delta Lake tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from rtrain.datasets.base import Dataset, RowReader, Source
from rtrain.datasets.conf import ColumnsConf
from rtrain.datasets.whole.conf import WholeConf
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import pyarrow as pa

RETRIES = {"max_retries": "4", "retry_timeout": "20s"}
"""Of a request to an object store; else a silent one is waited for three minutes."""


@dataclass(kw_only=True)
class DeltaTableConf:
    """Which Delta Lake table."""

    path: Annotated[str, Field(min_length=1)]
    """Folder of the table, or its URL: s3://, gs://, abfs://, ..."""

    version: Annotated[int, Field(ge=0)] | None = None
    """Version of the table; null: the newest one."""

    storage_options: dict[str, str] = field(default_factory=dict)
    """Options of the object store as deltalake names them; keys in the environment are found without."""


@dataclass(kw_only=True)
class DeltaConf(DeltaTableConf, ColumnsConf):
    """A Delta Lake table, as it is or as it was; held in memory."""


@dataclass(kw_only=True)
class WholeDeltaConf(DeltaTableConf, WholeConf):
    """A Delta Lake table with all its columns, as it is or as it was; held in memory."""


class Delta(Source):
    """A Delta Lake table, at any version, from a folder or an object store; in memory."""

    Conf = DeltaConf
    WholeConf = WholeDeltaConf
    requires = ("deltalake",)
    extra = "delta"

    def load(self, conf: DeltaConf) -> Dataset:
        """Read the columns that ``conf`` names."""
        from rtrain.datasets.tables.arrow import load_arrow

        table, where = _read(conf, conf.features)
        return load_arrow("delta", {"train": table}, conf, where)

    def load_whole(self, conf: WholeDeltaConf) -> Dataset:
        """Read all rows and columns."""
        from rtrain.datasets.whole.load import load_table

        table, where = _read(conf, None)
        return load_table("delta", table, conf, where)

    def open_rows(self, conf: DeltaConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Read all columns; only the features of training are needed."""
        from rtrain.datasets.tables.predict_rows import open_arrow_rows

        table, where = _read(conf, None)
        return open_arrow_rows({"train": table}, conf, encoding, where)


def _read(conf: DeltaTableConf, features: Sequence[str] | None) -> tuple[pa.Table, str]:
    """Return the columns that training on ``features`` needs, all without them, and what to call the table."""
    import pyarrow as pa
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    from rtrain.datasets.files import existing_path
    from rtrain.datasets.tables.spec import check_columns, used_columns
    from rtrain.storage.stores import is_url, refusal, shown_url

    path: Any = conf.path if is_url(conf.path) else existing_path(conf.path)
    where = shown_url(conf.path) if is_url(conf.path) else conf.path
    try:
        table = DeltaTable(path, version=conf.version, storage_options=_options(conf))
        columns = None
        if isinstance(conf, DeltaConf) and features is not None:
            columns = list(dict.fromkeys([*used_columns(conf, features), *conf.ids]))
            schema = pa.schema(table.schema().to_arrow())
            check_columns([conf.label], schema, where, "label")
            check_columns(features, schema, where, "features")
            check_columns(conf.ids, schema, where, "ids")
        return table.to_pyarrow_table(columns=columns), f"{where} (version {table.version()})"
    except TableNotFoundError as error:
        raise DatasetError(f"dataset.path: {where} is not a Delta table (it has no _delta_log).") from error
    except (DeltaError, OSError, pa.ArrowException) as error:
        if is_url(conf.path) and conf.version is None:
            raise refusal(conf.path, "dataset.path", error, DatasetError) from error
        hint = None if conf.version is None else "Remove dataset.version to read the latest one."
        raise DatasetError(f"{where}: {error}", hint) from error


def _options(conf: DeltaTableConf) -> dict[str, str]:
    """Return the options of the object store: whoever names a plain http address in the environment allows it."""
    from rtrain.storage.stores import s3_endpoint

    plain = conf.path.startswith("s3") and (s3_endpoint() or "").startswith("http://")
    return {**RETRIES, **({"allow_http": "true"} if plain else {}), **conf.storage_options}
