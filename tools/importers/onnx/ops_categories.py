"""Operators of the domain ai.onnx.ml on categories and labels, which may be strings."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32, i64

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ..building import is_float
from .node import Importer, Maps, Node, Results, Texts
from .ops_texts import (
    Entries,
    number_entries,
    numbers_or_places,
    place_in,
    text_entries,
)


def entries(node: Node, *names: str) -> Entries | None:
    """The first given attribute among some: a tensor, floats, integers or strings.

    Returns None if none is given.
    """
    name = next((each for each in names if node.has_attribute(each)), None)
    if name is None:
        return None
    if name.endswith("_tensor"):
        return number_entries(node.tensor(name))
    if "string" in name:
        return text_entries(node, node.texts(name))
    if "float" in name:
        return number_entries(np.array(node.numbers(name), np.float32))
    return number_entries(np.array(node.integers(name), np.int64))


def labels_of(node: Node, *names: str) -> Entries:
    """The labels of classes. Raises InputError if there are none."""
    labels = entries(node, *names)
    if labels is None or not labels.array.size:
        raise node.bad(f"need {' or '.join(names)}")
    return labels


def _looked_up(node: Node, keys: Entries, values: Entries) -> Results:
    """The values for the keys that equal the elements.

    Args:
        values: one more than keys: the last is for elements that are no key.
    """
    value = numbers_or_places(node, 0)
    if isinstance(node.held(0), Texts) != keys.is_text:
        raise node.bad("keys are strings, and elements are not, or the other way round")
    known = keys.array.astype(numpy_dtype(nn.element_of(value)))
    return values.at(node, place_in(node, value, known))


def _label_encoder(node: Node) -> Results:
    """The value for the key that equals each element, or the default."""
    if node.opset < 2:
        return _mapped(node, "classes_strings", None)
    kinds = ("tensor", "floats", "int64s", "strings")
    keys = entries(node, *(f"keys_{kind}" for kind in kinds))
    values = entries(node, *(f"values_{kind}" for kind in kinds))
    if keys is None or values is None or keys.array.shape != values.array.shape:
        raise node.bad("need keys and values, as many of each")
    if keys.array.ndim != 1:
        raise node.bad("need keys and values along one axis")
    default: object
    if node.has_attribute("default_tensor"):
        default = node.tensor("default_tensor").reshape(-1)[:1]
    elif values.is_text:
        default = node.text("default_string", "_Unused")
    elif values.array.dtype.kind == "f":
        default = node.number("default_float", -0.0)
    else:
        default = node.integer("default_int64", -1)
    return _looked_up(node, keys, values.with_last(default, node))


def _category_mapper(node: Node) -> Results:
    """Strings for integers, or integers for strings."""
    return _mapped(node, "cats_strings", "cats_int64s")


def _mapped(node: Node, texts: str, integers: str | None) -> Results:
    """The other one of a pair of a string and an integer.

    Args:
        texts, integers: the attributes that list pairs; integers count from 0 if None.
    """
    names = text_entries(node, node.texts(texts))
    count = len(names.names)
    numbers = node.integers(integers) if integers else list(range(count))
    if len(numbers) != count:
        raise node.bad(f"{count} {texts} and {len(numbers)} {integers}; need as many of each")
    whole = number_entries(np.array(numbers, np.int64))
    if isinstance(node.held(0), Texts):
        last = node.integer("default_int64", -1)
        return _looked_up(node, names, whole.with_last(last, node))
    return _looked_up(node, whole, names.with_last(node.text("default_string", "_Unused"), node))


def _one_hot_encoder(node: Node) -> Results:
    """1 at the place of each element's category, 0 elsewhere.

    An element that is no category gets zeros, or is a fault of the run if `zeros` is 0.
    """
    categories = labels_of(node, "cats_strings", "cats_int64s")
    value = numbers_or_places(node, 0)
    if isinstance(node.held(0), Texts) != categories.is_text:
        raise node.bad("categories are strings, and elements are not, or the other way round")
    if is_float(value):
        value = node.cast(value, i64)
    count = len(categories.array)
    place = place_in(node, value, categories.array.astype(numpy_dtype(nn.element_of(value))))
    if node.flag("zeros", True):
        column = node.reshape(place, (*nn.shape_of(place), 1))
        places = node.emitted(np.arange(count, dtype=np.int32))
        return node.cast(node.add(nn.EqualOp(column, places)), f32)
    return node.add(nn.GatherOp(node.emitted(np.eye(count, dtype=np.float32)), place, 0))


def _zip_map(node: Node) -> Results:
    """A table of scores, whose columns have the names of the classes."""
    labels = labels_of(node, "classlabels_strings", "classlabels_int64s")
    table, shape = node[0], node.shape(0)
    if not shape or shape[-1] != len(labels.names):
        raise node.bad(f"{len(labels.names)} labels for scores of shape {list(shape)}")
    return Maps(node.reshape(table, (1, *shape)) if len(shape) == 1 else table, labels.names)


CATEGORIES: dict[str, Importer] = {
    "LabelEncoder": _label_encoder,
    "CategoryMapper": _category_mapper,
    "OneHotEncoder": _one_hot_encoder,
    "ZipMap": _zip_map,
}
"""Importers of the domain ai.onnx.ml."""
