"""Queries of a search by example: a picture of a digit, and candidates that show the same digit or another one."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits


def queries(num_queries, num_candidates, seed=0):
    """Return a frame with one row per candidate.

    Its columns are ``query`` (number of the query), ``relevance`` (2 for the same digit, 0 for another), and 128
    features: the pixels of the query, and how much each pixel of the candidate differs from it.
    """
    pixels, digits = load_digits(return_X_y=True)
    random = np.random.default_rng(seed)
    asked = random.choice(len(pixels), num_queries, replace=False)
    frames = [_candidates(query, pixels, digits, num_candidates, random) for query in asked]
    return pd.concat(frame.assign(query=number) for number, frame in enumerate(frames))


def _candidates(asked, pixels, digits, num_candidates, random):
    others = np.delete(np.arange(len(pixels)), asked)
    same = others[digits[others] == digits[asked]]
    different = others[digits[others] != digits[asked]]
    num_same = num_candidates // 4
    found = np.concatenate([random.choice(same, num_same), random.choice(different, num_candidates - num_same)])
    frame = pd.DataFrame(
        np.hstack([np.repeat(pixels[asked][None], len(found), axis=0), np.abs(pixels[found] - pixels[asked])]),
        columns=[*(f"query_{i}" for i in range(64)), *(f"difference_{i}" for i in range(64))],
    )
    return frame.assign(relevance=np.where(digits[found] == digits[asked], 2, 0))
