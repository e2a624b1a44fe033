"""The digest of a model is begun early, and counts only for the file as it is."""

from hashlib import sha256
from pathlib import Path

import pytest

from abele.tools.driver.cache import model_digest
from abele.tools.driver.cache.model_digest import begin, begin_for


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(model_digest, "_begun", {})
    monkeypatch.setattr(model_digest, "PIECE", 16)
    monkeypatch.setenv("ABELE_CACHE_BYTES", "100000000")
    path = tmp_path / "net.onnx"
    path.write_bytes(bytes(range(200)))
    return path


def digest(path: Path) -> str:
    return model_digest.model_digest(path)[0]


def right(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[: model_digest.DIGITS]


def test_a_digest_that_was_begun_is_the_one_of_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
):
    expected = right(file)
    begin(file)
    (begun,) = model_digest._begun.values()
    begun.result()
    with monkeypatch.context() as patch:
        patch.setattr(model_digest, "_digest", None)
        assert digest(file) == expected
    # It counts once.
    assert not model_digest._begun
    assert digest(file) == expected


def test_a_digest_of_what_a_file_was_does_not_count(file: Path):
    begin(file)
    file.write_bytes(b"another model")
    assert digest(file) == right(file)


@pytest.mark.parametrize("at", [0, 10, 13, 150])
def test_a_name_of_external_data_is_found_wherever_it_is(file: Path, at: int):
    assert not model_digest.model_digest(file)[1]
    data = bytearray(file.read_bytes())
    data[at : at + 8] = b"location"
    file.write_bytes(data)
    assert model_digest.model_digest(file)[1]


def test_a_missing_file_is_reported_when_the_digest_is_needed(file: Path):
    file.unlink()
    begin(file)
    with pytest.raises(OSError, match="No such file"):
        digest(file)


def test_it_is_not_begun_without_a_cache(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ABELE_CACHE_BYTES", "0")
    begin_for(["abele", "run", str(file)])
    assert not model_digest._begun


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["abele", "run", "MODEL"], 1),
        (["abele", "memory", "--target", "mk2", "MODEL"], 1),
        (["abele", "run", "MODEL", "--no-cache"], 0),
        (["abele", "run", "MODEL", "--dump-ir=dump"], 0),
        (["abele", "plan", "MODEL"], 0),
        (["abele", "run", "missing.onnx"], 0),
        (["abele", "run"], 0),
    ],
)
def test_it_is_begun_for_commands_that_use_the_cache(file: Path, words: list[str], count: int):
    begin_for([str(file) if word == "MODEL" else word for word in words])
    assert len(model_digest._begun) == count
