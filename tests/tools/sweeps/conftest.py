from pathlib import Path

import pytest
from swept_product import PRODUCT


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """A product of matrices and a relu, in a file."""
    path = tmp_path / "product.mlir"
    path.write_text(PRODUCT)
    return path
