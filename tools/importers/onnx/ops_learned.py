"""Operators of the domain ai.onnx.ml on features, and linear models. Strings are refused."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ..building import is_float
from .node import Importer, Node, Results
from .ops_extremes import first_largest
from .tensors import Array

# Parameters


def _array(node: Node, *names: str) -> Array | None:
    """The first given attribute among some: a tensor, floats or integers; None if none is given.

    Raises UnsupportedError for strings.
    """
    name = next((each for each in names if node.has_attribute(each)), None)
    if name is None:
        return None
    if name.endswith("_tensor"):
        return node.tensor(name)
    if "string" in name:
        raise node.unsupported(f"the attribute {name}", "need numbers")
    if "float" in name or name in ("scale", "offset", "coefficients", "intercepts"):
        return np.array(node.numbers(name), np.float32)
    return np.array(node.integers(name), np.int64)


def rows_of_features(node: Node) -> SSAValue:
    """Operand 0 as rows of features, [n, features]."""
    value = node[0]
    shape = nn.shape_of(value)
    if len(shape) not in (1, 2):
        raise node.bad(f"features of shape {list(shape)}; need one axis or two")
    return node.reshape(value, (1, *shape)) if len(shape) == 1 else value


def _floats(node: Node, value: SSAValue) -> SSAValue:
    return value if is_float(value) else node.cast(value, f32)


# Features


def _array_feature_extractor(node: Node) -> Results:
    """The features at given indices of the last axis."""
    shape = node.shape(0)
    if not shape:
        raise node.bad("features without axes; need one or more")
    count = prod(node.shape(1))
    places = node.reshape(node[1], (count,))
    found = node.add(nn.GatherOp(node[0], places, len(shape) - 1))
    return node.reshape(found, (*shape[:-1], count) if len(shape) > 1 else (1, count))


def _binarizer(node: Node) -> Results:
    value = node[0]
    threshold = node.constant(node.number("threshold", 0.0), _floats(node, value))
    above = node.add(nn.GreaterOp(_floats(node, value), threshold))
    return node.cast(above, nn.element_of(value))


def _label_encoder(node: Node) -> Results:
    """The value for the key that equals each element, or the default; a lookup by the key's
    position.
    """
    if node.opset < 2:
        raise node.unsupported("a class that is a string", "need a version of 2 or more")
    kinds = ("tensor", "floats", "int64s", "strings")
    keys = _array(node, *(f"keys_{kind}" for kind in kinds))
    values = _array(node, *(f"values_{kind}" for kind in kinds))
    if keys is None or values is None or keys.shape != values.shape or keys.ndim != 1:
        raise node.bad("need keys and values, as many of each")
    if keys.dtype.kind not in "biuf" or values.dtype.kind not in "biuf":
        raise node.unsupported("keys or values that are strings", "need numbers")
    if node.has_attribute("default_tensor"):
        default = node.tensor("default_tensor").reshape(-1)[:1]
    elif values.dtype.kind == "f":
        default = np.array([node.number("default_float", -0.0)])
    else:
        default = np.array([node.integer("default_int64", -1)])
    table = np.concatenate([values, default.astype(values.dtype)])
    column = node.reshape(node[0], (*node.shape(0), 1))
    known = node.emitted(keys.astype(numpy_dtype(nn.element_of(column))))
    found = node.add(nn.EqualOp(column, known))
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        is_missing = node.add(nn.LogicalAndOp(node.add(nn.IsNaNOp(column)), _nans(node, keys)))
        found = node.add(nn.LogicalOrOp(found, is_missing))
    places = node.emitted(np.arange(len(keys), dtype=np.int32))
    place = node.add(nn.SelectOp(found, places, node.constant(len(keys), places)))
    place = node.add(nn.ReduceOp(place, "min", [len(node.shape(0))]))
    return node.add(nn.GatherOp(node.emitted(table), place, 0))


def _nans(node: Node, values: Array) -> SSAValue:
    return node.emitted(np.isnan(values))


def _normalizer(node: Node) -> Results:
    """Divide each row by its norm."""
    value = _floats(node, rows_of_features(node))
    kind = node.text("norm", "MAX")
    sizes = node.add((nn.SquareOp if kind == "L2" else nn.AbsOp)(value))
    if kind not in ("MAX", "L1", "L2"):
        raise node.bad(f"norm {kind!r}; need one of MAX, L1, L2")
    combiner = "max" if kind == "MAX" else "sum"
    norm = node.add(nn.ReduceOp(sizes, combiner, [1], keep_dims=True))
    norm = node.add(nn.SqrtOp(norm)) if kind == "L2" else norm
    least = node.add(nn.MaxOp(norm, node.constant(1e-30, norm)))
    found = node.cast(node.add(nn.DivOp(value, least)), f32)
    return node.reshape(found, node.shape(0))


def _scaler(node: Node) -> Results:
    value = _floats(node, node[0])
    dtype = numpy_dtype(nn.element_of(value))
    for name, make in (("offset", nn.SubOp), ("scale", nn.MulOp)):
        numbers = _array(node, name)
        if numbers is not None:
            value = node.add(make(value, node.emitted(numbers.astype(dtype))))
    return node.cast(value, f32)


def _imputer(node: Node) -> Results:
    """Replace features that are missing."""
    value = node[0]
    values = _array(node, "imputed_value_floats", "imputed_value_int64s")
    if values is None:
        raise node.bad("need imputed_value_floats or imputed_value_int64s")
    whole = not is_float(value)
    missing = node.integer("replaced_value_int64", 0) if whole else 0
    missing = missing if whole else node.number("replaced_value_float", 0.0)
    if missing != missing:
        found = node.add(nn.IsNaNOp(value))
    else:
        found = node.add(nn.EqualOp(value, node.constant(missing, value)))
    other = node.emitted(values.astype(numpy_dtype(nn.element_of(value))))
    return node.add(nn.SelectOp(found, other, value))


# Linear models


def _scores(node: Node, rows: int) -> SSAValue:
    """Products of features with some rows of coefficients, plus intercepts."""
    value = _floats(node, rows_of_features(node))
    features = nn.shape_of(value)[1]
    coefficients = _array(node, "coefficients")
    if coefficients is None or not features or coefficients.size % features:
        raise node.bad(f"coefficients for {features} features; need as many per row")
    rows = rows or coefficients.size // features
    if coefficients.size != rows * features:
        raise node.bad(f"{coefficients.size} coefficients; need {rows} rows of {features}")
    dtype = numpy_dtype(nn.element_of(value))
    matrix = node.emitted(coefficients.reshape(rows, features).astype(dtype))
    found = node.add(nn.MatMulOp(value, matrix, transpose_rhs=True))
    intercepts = _array(node, "intercepts")
    if intercepts is not None and intercepts.size:
        found = node.add(nn.AddOp(found, node.emitted(intercepts.astype(dtype))))
    return found


TRANSFORMS: dict[str, Callable[[SSAValue], nn.PureTensorOp] | None] = {
    "NONE": None,
    "LOGISTIC": nn.SigmoidOp,
    "SOFTMAX": lambda value: nn.SoftmaxOp(value, 1),
}
"""The functions that follow the scores of a model, by name."""


def transformed(node: Node, value: SSAValue, name: str) -> SSAValue:
    """Scores [n, scores] after the transform of this name in TRANSFORMS."""
    if name not in TRANSFORMS:
        raise node.unsupported(f"post_transform {name}", f"{', '.join(TRANSFORMS)} are")
    make = TRANSFORMS[name]
    return value if make is None else node.add(make(value))


def _linear_regressor(node: Node) -> Results:
    found = _scores(node, node.integer("targets", 1))
    return node.cast(transformed(node, found, node.text("post_transform", "NONE")), f32)


def _linear_classifier(node: Node) -> Results:
    """The label of the largest score, and the scores."""
    labels = _array(node, "classlabels_strings", "classlabels_ints")
    if labels is None or not labels.size:
        raise node.bad("need classlabels_ints")
    found = _scores(node, 0)
    rows, count = nn.shape_of(found)
    name = node.text("post_transform", "NONE")
    if count == 1 and labels.size == 2:
        found = node.add(nn.ConcatOp([node.add(nn.NegOp(found)), found], 1))
        count = 2
    scores = transformed(node, found, name)
    if count > 1:
        if labels.size != count:
            raise node.bad(f"{labels.size} labels of {count} scores")
        place = node.reshape(first_largest(node, scores, 1), (rows,))
        return [node.add(nn.GatherOp(node.emitted(labels), place, 0)), node.cast(scores, f32)]
    least = node.constant(0.0 if name == "NONE" else 0.5, scores)
    is_it = node.reshape(node.add(nn.GreaterEqualOp(scores, least)), (rows,))
    label, none = node.emitted(labels[:1]), node.emitted(np.zeros(1, np.int64))
    return [node.add(nn.SelectOp(is_it, label, none)), node.cast(scores, f32)]


LEARNED: dict[str, Importer] = {
    "ArrayFeatureExtractor": _array_feature_extractor,
    "Binarizer": _binarizer,
    "LabelEncoder": _label_encoder,
    "Normalizer": _normalizer,
    "Scaler": _scaler,
    "Imputer": _imputer,
    "LinearRegressor": _linear_regressor,
    "LinearClassifier": _linear_classifier,
}
"""Importers of the domain ai.onnx.ml."""
