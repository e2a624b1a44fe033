"""The page of Caffe's layers that abele imports."""

from __future__ import annotations

from ..importers.caffe.data_layers import DATA
from ..importers.caffe.reader import SECTIONS
from .markdown import code, link, page, table


def caffe_layers_page() -> str:
    """The text of the page."""
    count = sum(map(len, SECTIONS.values())) + len(DATA)
    porting = link("From Caffe", "../porting/caffe.md")
    return page(
        "Caffe layers",
        f"abele imports {count} types of layers from `.prototxt` files, in the present form "
        "(`layer`) and in that of 2014 (`layers`). If a layer uses a form that abele does not "
        "support, the error names the layer, its line, and the forms that are supported. "
        f"{porting} says how a network and its weights come in.",
        table(
            ("layers", "types"),
            (
                (kind, ", ".join(map(code, sorted(layers))))
                for kind, layers in {**SECTIONS, "inputs": DATA}.items()
            ),
        ),
    )
