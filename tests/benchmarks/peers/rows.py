"""Write a table of two classes that depend on some of its float32 columns.

Usage: rows.py FILE ROWS FEATURES ROW_GROUP_SIZE.
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
from pyarrow import parquet


def main(file: str, num_rows: int, num_features: int, row_group_size: int) -> None:
    """Write it as Parquet."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((num_rows, num_features), np.float32)
    margin = x[:, :8] @ rng.normal(size=8) + x[:, 8] * x[:, 9] + np.sin(3 * x[:, 10])
    y = (margin + rng.logistic(size=num_rows) > 0).astype(np.int64)
    table = pa.table({f"f{index}": column for index, column in enumerate(x.T)} | {"y": y})
    parquet.write_table(table, file, row_group_size=row_group_size)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
