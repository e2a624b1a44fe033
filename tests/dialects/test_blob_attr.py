import numpy as np
import pytest
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from abele.dialects.abele import Abele
from abele.dialects.blob_attr import BlobAttr
from abele.ir.context import AbeleContext


def context() -> AbeleContext:
    made = AbeleContext()
    made.load_dialect(Abele)
    return made


def test_a_blob_is_printed_as_its_digest_and_found_again():
    here = context()
    attribute = BlobAttr(here.blobs.add(np.arange(1000)))
    text = str(attribute)
    assert text == f'#abele.blob<"{attribute.data.digest}">'
    again = Parser(here, text).parse_attribute()
    assert again == attribute
    assert again.array is attribute.array


def test_an_unknown_digest_is_named():
    with pytest.raises(ParseError, match='unknown blob "abc": the context has 0 blobs'):
        Parser(context(), '#abele.blob<"abc">').parse_attribute()


def test_a_context_without_blobs_says_so():
    plain = Context()
    plain.load_dialect(Abele)
    with pytest.raises(ParseError, match='unknown blob "abc": the context has no blob store'):
        Parser(plain, '#abele.blob<"abc">').parse_attribute()
