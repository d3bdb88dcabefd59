"""The language of lists of runs: fields, quantities, expressions and columns."""
