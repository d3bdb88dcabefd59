"""The plain way: Parquet to NumPy to the library, without Ray. Arguments: LIBRARY FILE ROUNDS."""

import sys

import numpy as np
import pyarrow.parquet

library, path, rounds = sys.argv[1:]
table = pyarrow.parquet.read_table(path)
y = table["y"].to_numpy()
x = np.column_stack([table[name].to_numpy() for name in table.column_names if name != "y"])
del table
if library == "xgboost":
    import xgboost

    rows = xgboost.QuantileDMatrix(x, label=y, nthread=2)
    params = {"objective": "binary:logistic", "max_depth": 6, "eta": 0.3, "nthread": 2}
    xgboost.train(params, rows, num_boost_round=int(rounds)).save_model("model.ubj")
else:
    import lightgbm

    params = {"objective": "binary", "num_leaves": 31, "learning_rate": 0.1, "num_threads": 2, "verbosity": -1}
    lightgbm.train(params, lightgbm.Dataset(x, label=y), num_boost_round=int(rounds)).save_model("model.txt")
