"""Which preprocessors of ``ray.data.preprocessors`` a config can name; Ray is not imported here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema

from rtrain.config.did_you_mean import closest, did_you_mean

_COLUMNS = ("columns",)
_BINS = ("output_columns", "right", "include_lowest", "duplicates")
ARGUMENTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Concatenator": (_COLUMNS, ("output_column_name", "dtype", "flatten")),
    "CountVectorizer": (_COLUMNS, ("max_features", "output_columns")),
    "CustomKBinsDiscretizer": (("columns", "bins"), _BINS),
    "FeatureHasher": (("columns", "num_features", "output_column"), ()),
    "HashingVectorizer": (("columns", "num_features"), ("output_columns",)),
    "MaxAbsScaler": (_COLUMNS, ("output_columns",)),
    "MinMaxScaler": (_COLUMNS, ("output_columns",)),
    "MultiHotEncoder": (_COLUMNS, ("max_categories", "output_columns")),
    "Normalizer": (_COLUMNS, ("norm", "output_columns")),
    "OneHotEncoder": (_COLUMNS, ("max_categories", "output_columns")),
    "OrdinalEncoder": (_COLUMNS, ("output_columns",)),
    "PowerTransformer": (("columns", "power"), ("method", "output_columns")),
    "RobustScaler": (_COLUMNS, ("quantile_range", "output_columns")),
    "SimpleImputer": (_COLUMNS, ("strategy", "fill_value", "output_columns")),
    "StandardScaler": (_COLUMNS, ("output_columns",)),
    "Tokenizer": (_COLUMNS, ("output_columns",)),
    "UniformKBinsDiscretizer": (("columns", "bins"), _BINS),
}
"""The required and the optional arguments of each preprocessor: plain data, no functions or types."""

TEXT_STEPS = ("CountVectorizer", "HashingVectorizer", "Tokenizer")
"""Those that take texts apart."""

NOT_NEEDED: Mapping[str, str] = {
    "Categorizer": "text columns are treated as categories anyway, see dataset.categorical",
    "Chain": "the list already is a chain",
    "LabelEncoder": "the label is encoded anyway",
    "TorchVisionPreprocessor": "the torch trainer has trainer.transform for that",
}


def _check_steps(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for place, step in enumerate(steps):
        check_step(place, str(step.get("type", "")), {key: value for key, value in step.items() if key != "type"})
    return steps


def check_step(place: int, kind: str, arguments: Mapping[str, Any]) -> None:
    """Check one preprocessor, of a config or of a checkpoint.

    Raises:
        ValueError: The kind is not listed, or takes other arguments.
    """
    if kind not in ARGUMENTS:
        raise ValueError(f"[{place}]: {_unknown(kind)}")
    if not isinstance(arguments, Mapping):
        raise ValueError(f"[{place}] ({kind}) needs arguments by their names")
    _check_arguments(arguments, f"[{place}] ({kind})", kind)


def _unknown(kind: str) -> str:
    if not kind:
        return "needs a type, such as {type: StandardScaler, columns: [a, b]}"
    if kind in NOT_NEEDED:
        return f"{kind} is not needed: {NOT_NEEDED[kind]}"
    meant = closest(kind, ARGUMENTS, 0.4)
    hint = did_you_mean(meant) if meant else f"there are {', '.join(ARGUMENTS)}"
    return f"there is no preprocessor {kind}; {hint}"


def _check_arguments(given: Mapping[str, Any], where: str, kind: str) -> None:
    needed, optional = ARGUMENTS[kind]
    known = (*needed, *optional)
    for name in given:
        if name not in known:
            meant = closest(name, known)
            hint = did_you_mean(meant) if meant else f"it has {', '.join(known)}"
            raise ValueError(f"{where} has no argument '{name}'; {hint}")
    missing = [name for name in needed if name not in given]
    if missing:
        raise ValueError(f"{where} needs {' and '.join(missing)}")
    for name in ("columns", "output_columns"):
        names = given.get(name, ["some"])
        if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
            raise ValueError(f"{where}: {name} must be a list of columns")
    if len(given.get("output_columns", given["columns"])) != len(given["columns"]):
        raise ValueError(f"{where}: columns and output_columns must have the same length")


_STEP = {"type": "object", "properties": {"type": {"enum": list(ARGUMENTS)}}, "required": ["type"]}
Preprocessors = Annotated[
    list[dict[str, Any]], AfterValidator(_check_steps), WithJsonSchema({"type": "array", "items": _STEP})
]
