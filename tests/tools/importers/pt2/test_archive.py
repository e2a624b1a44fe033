"""Archives that are damaged, of another kind, or made to harm are refused with one message."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from abele.ir.support.errors import InputError
from abele.tools.importers.pt2.archive import read_archive

from .fixture_models import archive_of, imported
from .zips import changed, edited

WHOLE = archive_of("mlp")


def zip_of(**members: bytes) -> bytes:
    made = io.BytesIO()
    with ZipFile(made, "w") as file:
        for name, data in members.items():
            file.writestr(name.replace("__", "/"), data)
    return made.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no archive of torch.export, or damaged"),
        (b"PK\3\4" + bytes(50), "no archive of torch.export, or damaged"),
        (WHOLE[:-40], "no archive of torch.export"),
        (zip_of(a__b=b"1"), "a zip without models/"),
        (edited(WHOLE, "archive_format", lambda _: b"pt3"), "archive_format b'pt3'; need pt2"),
        (edited(WHOLE, "byteorder", lambda _: b"big"), "byte order b'big'; need little"),
        (edited(WHOLE, "model.json", lambda _: b"{"), "models/model.json: no JSON"),
        (edited(WHOLE, "model.json", lambda _: b"[" * 9999), "nested too deeply|no JSON"),
        (edited(WHOLE, "model.json", lambda d: d, ZIP_DEFLATED), "compressed or encrypted"),
        (edited(WHOLE, "weight_0", lambda _: None), r"there is no 'data/weights/weight_0'"),
        (edited(WHOLE, "weight_0", lambda d: d[:-4]), r"508 bytes in 'weight_0'; .* reads 512"),
    ],
)
def test_a_wrong_archive_is_refused(data: bytes, message: str):
    with pytest.raises(InputError, match=f"^model.pt2: .*({message})"):
        imported(data)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"none.pt2: cannot read it: No such file"):
        read_archive(tmp_path / "none.pt2", "none.pt2")


def test_archives_whose_weights_are_pickles_are_refused():
    made = io.BytesIO(WHOLE)
    with ZipFile(made, "a") as file:
        root = file.namelist()[0].split("/")[0]
        file.writestr(f"{root}/data/weights/model.pt", b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(InputError, match=r"is a pickle, .*; save it again with a newer torch"):
        imported(made.getvalue())


def test_an_archive_of_an_older_torch_is_refused():
    made = io.BytesIO()
    with ZipFile(made, "w") as file:
        file.writestr("serialized_exported_program.json", b"{}")
    with pytest.raises(InputError, match=r"an archive of an older torch; save it again"):
        imported(made.getvalue())


def entry(**fields: Any) -> Callable[[Any], None]:
    """What changes the entry of the first weight."""

    def change(tree: Any) -> None:
        first = tree["config"]["0.weight"]
        meta = first["tensor_meta"]
        for name, value in fields.items():
            (meta if name in meta else first)[name] = value

    return change


HUGE, NOTHING = {"as_int": 2**40}, {"as_int": 0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (entry(use_pickle=True), "stored as a pickle, which abele never opens"),
        (entry(path_name="../../../etc/passwd"), "there is no"),
        (entry(sizes=[HUGE, HUGE]), "damaged|does not fit|reads"),
        (
            entry(strides=[{"as_int": 0}] * 2, sizes=[HUGE, {"as_int": 8}]),
            "table elements|the file",
        ),
        (entry(strides=[{"as_int": -1}] * 2), "strides"),
        (entry(storage_offset={"as_int": -4}), "offset -4"),
        (entry(storage_offset={"as_int": 1}), "reads"),
        (entry(dtype=10), "elements of type 10"),
        (entry(dtype="7"), "dtype is '7'; need an integer"),
        (entry(layout=1), "sparse"),
        (entry(sizes=7), "sizes is 7; need a list"),
        (entry(tensor_meta=None), "stored as a pickle"),
    ],
)
def test_a_wrong_description_of_a_weight_is_refused(change: Callable[[Any], None], message: str):
    with pytest.raises(InputError, match=f"^model.pt2: .*({message})"):
        imported(changed(WHOLE, "weights_config.json", change))
