"""The attributes of an ONNX model: tensors, references to a function's attributes, whole messages.

Arrays are blobs: the text holds their digests, and never the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def

from ...ir.blob import Blob
from ...ir.upstream import AttrParser, Printer
from ..blob_attr import BlobAttr

if TYPE_CHECKING:
    from numpy.typing import NDArray


@irdl_attr_definition
class TensorAttr(ParametrizedAttribute):
    """A tensor of an ONNX model.

    Attributes:
        values: its elements.
        form: the fields of its message beside shape, elements and element type, such as `name`;
            `stored` names the field that holds the elements, if that is not `raw_data`.
    """

    name = "onnx.tensor"
    values: BlobAttr = param_def()
    form: DictionaryAttr = param_def()

    @property
    def array(self) -> NDArray[Any]:
        """The elements, read-only."""
        return self.values.array

    @classmethod
    def of(cls, array: NDArray[Any]) -> TensorAttr:
        """The tensor of an array, without a name."""
        return cls(BlobAttr(Blob(array)), DictionaryAttr({}))

    @classmethod
    def sample(cls, random: Random, types: Sequence[TensorType[Attribute]]) -> TensorAttr | None:
        """A small tensor of one of the types, on which rules are tried; None if all are large."""
        static = [each for each in types if min(each.get_shape(), default=0) >= 0]
        values = BlobAttr.sample(random, static)
        return None if values is None else cls(values, DictionaryAttr({}))

    @classmethod
    def from_plain(cls, value: object) -> TensorAttr | None:
        """The tensor for numbers in a rule: whole numbers become i64, others f32.

        None for anything else.
        """
        items = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
        if isinstance(value, bool) or not items:
            return None
        if all(isinstance(each, int) and abs(each) < 1 << 63 for each in items):
            return cls.of(np.array(value, np.int64))
        if all(isinstance(each, int | float) for each in items):
            return cls.of(np.array(value, np.float32))
        return None


@irdl_attr_definition
class MessageAttr(ParametrizedAttribute):
    """A message of ONNX as its bytes, for what no other attribute can hold without loss.

    Attributes:
        kind: the name of the message, such as "TensorProto".
        data: its bytes.
    """

    name = "onnx.message"
    kind: StringAttr = param_def()
    data: BlobAttr = param_def()

    @classmethod
    def of(cls, message: Any) -> MessageAttr:
        """The attribute of a message."""
        data = np.frombuffer(message.SerializeToString(deterministic=True), np.uint8)
        return cls(StringAttr(message.DESCRIPTOR.name), BlobAttr(Blob(data)))

    @property
    def data_bytes(self) -> bytes:
        """The bytes of the message."""
        return self.data.array.tobytes()


@irdl_attr_definition
class BytesAttr(Data[bytes]):
    """Bytes that are no UTF-8 text, printed as hexadecimal digits."""

    name = "onnx.bytes"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> bytes:
        """Read the digits."""
        with parser.in_angle_brackets():
            start = parser.pos
            digits = parser.parse_str_literal(": hexadecimal digits")
            try:
                return bytes.fromhex(digits)
            except ValueError:
                parser.raise_error("need pairs of hexadecimal digits", start, parser.pos)

    def print_parameter(self, printer: Printer) -> None:
        """Print the digits."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data.hex())


@irdl_attr_definition
class RefAttr(ParametrizedAttribute):
    """The value of an attribute of the model function around a node.

    Attributes:
        of: the name of the function's attribute.
        kind: the kind of its value, as ONNX calls it: "INT".
    """

    name = "onnx.ref"
    of: StringAttr = param_def()
    kind: StringAttr = param_def()


def text_or_bytes(data: bytes) -> Attribute:
    """The attribute of a string of ONNX, which may be any bytes."""
    try:
        return StringAttr(data.decode())
    except UnicodeDecodeError:
        return BytesAttr(data)
