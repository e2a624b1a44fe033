"""Layers that give data: what they make are inputs of the program.

The host gives what Caffe's layer would make: images with the channels in the order BGR, after the
mean was subtracted and everything was scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..front_end import OpenShape
from .fields import Fields
from .kinds import SHAPE
from .network import Layer, shape_in

Shapes = list[OpenShape]

COLOURS = 3
"""The channels of an image that is cropped, unless the file says that it is gray."""

FREE = ""
"""The size of an axis that the file does not say."""


def _batch(fields: Fields, default: int = 0) -> int:
    found = fields.integer("batch_size", default, 1)
    if found < 1:
        raise fields.bad("batch_size", "missing")
    return found


def _image(layer: Layer, fields: Fields, default: int = 0) -> Shapes:
    """Images and labels. The size of an image follows from its crop, if there is one."""
    batch = _batch(fields, default)
    change = layer.settings("transform_param")
    crop = change.integer("crop_size", fields.integer("crop_size", 0, 0), 0)
    gray = change.flag("force_gray") or (
        fields.has("is_color") and not fields.flag("is_color", True)
    )
    means = len(change.numbers("mean_value"))
    channels = 1 if gray or means == 1 else means or COLOURS
    if crop:
        image: OpenShape = (batch, channels, crop, crop)
    else:
        sizes = [fields.integer(each, 0, 0) for each in ("new_height", "new_width")]
        image = (batch, channels, *sizes) if all(sizes) else (batch, FREE, FREE, FREE)
    return [image, (batch,)]


def _data(layer: Layer) -> Shapes:
    return _image(layer, layer.settings("data_param"))


def _image_data(layer: Layer) -> Shapes:
    return _image(layer, layer.settings("image_data_param"), 1)


def _window_data(layer: Layer) -> Shapes:
    return _image(layer, layer.settings("window_data_param"))


def _memory_data(layer: Layer) -> Shapes:
    fields = layer.settings("memory_data_param")
    sizes = [fields.integer(each, 0, 1) for each in ("channels", "height", "width")]
    if not all(sizes):
        raise fields.bad("channels", f"{sizes} of channels, height and width; need all three")
    batch = _batch(fields)
    return [(batch, *sizes), (batch,)]


def _hdf5_data(layer: Layer) -> Shapes:
    """Only the files of data know how many axes there are; two are taken."""
    batch = _batch(layer.settings("hdf5_data_param"))
    return [(batch, FREE), *[(batch,)] * (len(layer.tops) - 1)]


def _input(layer: Layer) -> Shapes:
    fields = layer.settings("input_param")
    shapes: Shapes = [shape_in(each) for each in fields.messages("shape", SHAPE)]
    return _for_each(layer, fields, shapes)


def _dummy(layer: Layer) -> Shapes:
    fields = layer.settings("dummy_data_param")
    shapes: Shapes = [shape_in(each) for each in fields.messages("shape", SHAPE)]
    if not shapes:
        old = [fields.integers(each, 1) for each in ("num", "channels", "height", "width")]
        if len({len(each) for each in old}) > 1:
            raise fields.bad("num", "as many channels, heights and widths are needed")
        shapes = list(zip(*old, strict=True))
    return _for_each(layer, fields, shapes)


def _for_each(layer: Layer, fields: Fields, shapes: Shapes) -> Shapes:
    """The shapes of all tops; one shape is that of each."""
    count = len(layer.tops)
    if len(shapes) not in (1, count):
        raise fields.bad("shape", f"{len(shapes)} shapes for {count} tops; need 1, or one for each")
    return shapes * count if len(shapes) == 1 else shapes


DATA: dict[str, Callable[[Layer], Shapes]] = {
    "Data": _data,
    "ImageData": _image_data,
    "WindowData": _window_data,
    "MemoryData": _memory_data,
    "HDF5Data": _hdf5_data,
    "DummyData": _dummy,
    "Input": _input,
}
"""What returns the shapes of the tops of a layer that gives data, by its type."""


def shapes_of_data(layer: Layer) -> Sequence[tuple[str, OpenShape]]:
    """The inputs that a layer of data makes. Raises InputError if it has too many tops."""
    shapes = DATA[layer.type](layer)
    if len(layer.tops) > len(shapes):
        raise layer.fields.bad("top", f"{len(layer.tops)} tops; need at most {len(shapes)}")
    return list(zip(layer.tops, shapes, strict=False))
