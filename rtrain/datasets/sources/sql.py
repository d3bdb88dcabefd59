"""Tables of databases, by any URL that SQLAlchemy knows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from rtrain.config.did_you_mean import to_try
from rtrain.datasets.base import Dataset, RowReader, Source
from rtrain.datasets.conf import ColumnsConf, TablePath
from rtrain.datasets.whole.conf import WholeConf
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_ROWS = 20_000
_STATEMENT = re.compile(
    r"[\s(]*(select|with|values|table|show|exec|call|pragma|insert|update|delete|drop)\s", re.IGNORECASE
)
"""How statements begin: some databases refuse them as the names of tables."""


@dataclass(kw_only=True)
class SqlConf(ColumnsConf):
    """The rows that a query returns, or all of a table; held in memory."""

    url: Annotated[str, Field(min_length=1)]
    """SQLAlchemy's URL, e.g. ``sqlite:///data.db`` or ``postgresql://me:${oc.env:DB_PASSWORD}@host/db``."""

    query: TablePath
    """A SELECT or the name of a table; or {train: ..., test: ...}. ORDER BY makes splits repeatable."""

    arguments: dict[str, Any] = field(default_factory=dict)
    """Values for the ``:names`` in the query; lists for ``IN :name``."""


@dataclass(kw_only=True)
class WholeSqlConf(WholeConf):
    """The rows that a query returns, or all of a table, with all their columns."""

    url: Annotated[str, Field(min_length=1)]
    """SQLAlchemy's URL, e.g. ``sqlite:///data.db``."""

    query: Annotated[str, Field(min_length=1)]
    """A SELECT or the name of a table."""

    arguments: dict[str, Any] = field(default_factory=dict)
    """Values for the ``:names`` in the query."""


class Sql(Source):
    """Rows of a database: a query or a table, by any SQLAlchemy URL; in memory."""

    Conf = SqlConf
    WholeConf = WholeSqlConf
    runs_code = True
    requires = ("sqlalchemy",)
    extra = "sql"

    def load(self, conf: SqlConf) -> Dataset:
        """Run the queries and take their rows."""
        from rtrain.datasets.tables.arrow import load_arrow

        parts, where = _by_split(conf)
        return load_arrow("sql", parts, conf, where)

    def load_whole(self, conf: WholeSqlConf) -> Dataset:
        """Run the query and take all of its columns."""
        from rtrain.datasets.whole.load import load_table

        parts, where = _by_split(conf)
        return load_table("sql", parts["train"], conf, where)

    def open_rows(self, conf: SqlConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Run the queries; of the columns only the features of training are needed."""
        from rtrain.datasets.tables.predict_rows import open_arrow_rows

        parts, where = _by_split(conf)
        return open_arrow_rows(parts, conf, encoding, where)


def _by_split(conf: SqlConf | WholeSqlConf) -> tuple[dict[str, pa.Table], str]:
    """Return the rows of each split, and the URL without its password."""
    queries = conf.query if isinstance(conf.query, Mapping) else {"train": conf.query}
    engine = _engine(conf.url)
    try:
        parts = {split: _rows(engine, query, conf.arguments) for split, query in queries.items()}
    finally:
        engine.dispose()
    return parts, engine.url.render_as_string(hide_password=True)


def _engine(text: str) -> Any:
    import sqlalchemy
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError

    from rtrain.datasets.files import existing_path

    try:
        url = sqlalchemy.make_url(text)
        if url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:"):
            existing_path(str(url.database), "dataset.url")
        return sqlalchemy.create_engine(url)
    except ModuleNotFoundError as error:
        message = f"dataset.url: {url.drivername} needs the package '{error.name}'."
        raise DatasetError(message, to_try(f"pip install {error.name}")) from error
    except NoSuchModuleError as error:
        message = f"dataset.url: SQLAlchemy does not know the database '{text.partition(':')[0]}'."
        raise DatasetError(message, "Check the beginning of the URL, or install its dialect.") from error
    except ArgumentError as error:
        message = "dataset.url is not a valid SQLAlchemy URL."
        raise DatasetError(message, "E.g. sqlite:///data.db or postgresql://user:password@host/database") from error


def _rows(engine: Any, query: str, arguments: Mapping[str, Any]) -> pa.Table:
    """Return what a query selects, chunk by chunk."""
    import pyarrow as pa
    import sqlalchemy
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

    where = engine.url.render_as_string(hide_password=True)
    is_table, shown = len(query.split()) == 1, " ".join(query.split())[:200]
    try:
        statement = _statement(engine, query)
        with engine.connect().execution_options(stream_results=True, postgresql_readonly=True) as connection:
            if engine.dialect.name == "sqlite":  # whose driver begins no transaction for DROP TABLE
                connection.exec_driver_sql("BEGIN")
            lists = [name for name in arguments if re.search(rf"\bin\s+:{re.escape(name)}\b", statement, re.IGNORECASE)]
            text = sqlalchemy.text(statement).bindparams(*(sqlalchemy.bindparam(one, expanding=True) for one in lists))
            found = connection.execute(text, dict(arguments))
            if not found.returns_rows:  # whatever it has changed is not committed
                raise DatasetError(f"{where}: the query is a statement that returns no table.", f"The query: {shown}")
            names = list(found.keys())
            _check_names(names, where, shown)
            chunks = [_table(names, rows, where) for rows in found.partitions(CHUNK_ROWS)]
    except DBAPIError as error:
        hint = _tables_hint(engine) if is_table else f"The query: {shown}"
        raise DatasetError(f"{where}: {error.orig}", hint) from error
    except SQLAlchemyError as error:
        raise DatasetError(f"{where}: {str(error).splitlines()[0]}") from error
    if not chunks:
        raise DatasetError(f"{where}: the query returns no rows.", f"The query: {shown}")
    return pa.concat_tables(chunks, promote_options="permissive")


def _statement(engine: Any, query: str) -> str:
    """Return the statement for a query, which is the user's own, as any SQL client takes it, or the name of a table."""
    import sqlalchemy

    if _STATEMENT.match(query) is None and sqlalchemy.inspect(engine).has_table(query):
        return f"SELECT * FROM {engine.dialect.identifier_preparer.quote(query)}"
    return f"SELECT * FROM {query}" if len(query.split()) == 1 else query  # with its schema, say


def _check_names(names: list[str], where: str, shown: str) -> None:
    """Raise a DatasetError if two columns of a query have the same name, as a JOIN with ``*`` returns them."""
    for name, count in Counter(names).items():
        if count > 1:
            hint = f"Name the columns in the query, with AS where they are alike: SELECT t.{name} AS t_{name}, ..."
            raise DatasetError(f"{where}: there are {count} columns '{name}'.", f"{hint}\nThe query: {shown}")


def _table(names: list[str], rows: Any, where: str) -> pa.Table:
    import pyarrow as pa

    columns = []
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        try:
            columns.append(pa.array(values))
        except (pa.ArrowException, TypeError) as error:
            message = f"{where}: column '{name}' contains values of several types: {error}"
            raise DatasetError(
                message, f"Leave it out of the query, or give it one type: CAST({name} AS TEXT)"
            ) from error
    return pa.Table.from_arrays(columns, names=names)


def _tables_hint(engine: Any) -> str | None:
    import sqlalchemy
    from sqlalchemy.exc import SQLAlchemyError

    try:
        names = sqlalchemy.inspect(engine).get_table_names()
    except SQLAlchemyError:
        return None
    return f"Tables: {', '.join(names[:12])}" if names else "The database has no tables."
