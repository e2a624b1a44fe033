"""Operators of the domain ai.onnx.ml on features, and linear models."""

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
from .ops_categories import labels_of
from .ops_extremes import first_largest
from .tensors import Array

# Parameters


def _array(node: Node, *names: str) -> Array | None:
    """The first given attribute among some: floats or integers; None if none is given."""
    name = next((each for each in names if node.has_attribute(each)), None)
    if name is None:
        return None
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


def _feature_vectorizer(node: Node) -> Results:
    """The features of all operands side by side, as floats."""
    parts = [node.cast(each, f32) if nn.element_of(each) != f32 else each for each in node.all()]
    shapes = [nn.shape_of(each) for each in parts]
    if any(len(shape) not in (1, 2) for shape in shapes):
        raise node.bad(f"features of shapes {[*map(list, shapes)]}; need one axis or two")
    columns = [
        node.reshape(each, (shape[0], 1)) if len(shape) == 1 else each
        for each, shape in zip(parts, shapes, strict=True)
    ]
    sizes = [nn.shape_of(each)[1] for each in columns]
    if (given := node.integers("inputdimensions", sizes)) != sizes:
        raise node.bad(f"inputdimensions {given} of operands with {sizes} features")
    return node.add(nn.ConcatOp(columns, 1)) if len(columns) > 1 else columns[0]


def _binarizer(node: Node) -> Results:
    value = node[0]
    threshold = node.constant(node.number("threshold", 0.0), _floats(node, value))
    above = node.add(nn.GreaterOp(_floats(node, value), threshold))
    return node.cast(above, nn.element_of(value))


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
    labels = labels_of(node, "classlabels_strings", "classlabels_ints")
    size = len(labels.names)
    found = _scores(node, 0)
    rows, count = nn.shape_of(found)
    name = node.text("post_transform", "NONE")
    if count == 1 and size == 2:
        found = node.add(nn.ConcatOp([node.add(nn.NegOp(found)), found], 1))
        count = 2
    scores = transformed(node, found, name)
    if count > 1:
        if size != count:
            raise node.bad(f"{size} labels of {count} scores")
        place = node.reshape(first_largest(node, scores, 1), (rows,))
        return [labels.at(node, place), node.cast(scores, f32)]
    if labels.is_text:
        raise node.unsupported("one class whose label is a string", "need two or more, or a number")
    least = node.constant(0.0 if name == "NONE" else 0.5, scores)
    is_it = node.reshape(node.add(nn.GreaterEqualOp(scores, least)), (rows,))
    label, none = node.emitted(labels.array[:1]), node.emitted(np.zeros(1, np.int64))
    return [node.add(nn.SelectOp(is_it, label, none)), node.cast(scores, f32)]


LEARNED: dict[str, Importer] = {
    "ArrayFeatureExtractor": _array_feature_extractor,
    "Binarizer": _binarizer,
    "FeatureVectorizer": _feature_vectorizer,
    "Normalizer": _normalizer,
    "Scaler": _scaler,
    "Imputer": _imputer,
    "LinearRegressor": _linear_regressor,
    "LinearClassifier": _linear_classifier,
}
"""Importers of the domain ai.onnx.ml."""
