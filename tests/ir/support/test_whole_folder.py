import json
import os
from pathlib import Path

import pytest

from abele.ir.errors import InputError
from abele.ir.support import whole_folder as module
from abele.ir.support.whole_folder import (
    MANIFEST,
    check_whole_folder,
    folder_until_failure,
    free_folder,
    whole_folder,
)

KIND = "a test"


def write(folder: Path, text: str = "new", kind: str = KIND) -> None:
    with whole_folder(folder, kind) as made:
        (made / "a").write_text(text)
        (made / "deep" / "er").mkdir(parents=True)
        (made / "deep" / "er" / "b").write_text(text)


def contents(folder: Path) -> dict[str, str]:
    files = (each for each in folder.rglob("*") if each.is_file() and each.name != MANIFEST)
    return {str(each.relative_to(folder)): each.read_text() for each in files}


def refused(folder: Path, message: str, kind: str = KIND) -> None:
    """Both the check before the work and the writing refuse a folder, and leave it."""
    before = contents(folder) if folder.is_dir() else {}
    with pytest.raises(InputError, match=message):
        check_whole_folder(folder, kind)
    with pytest.raises(InputError, match=message):
        write(folder, kind=kind)
    assert (contents(folder) if folder.is_dir() else {}) == before
    assert not list(folder.parent.glob(".abele-*"))


@pytest.fixture(params=["at once", "in two steps"], autouse=True)
def exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    if request.param == "in two steps":
        monkeypatch.setattr(module, "exchange_function", lambda: None)
    elif module.exchange_function() is None:
        pytest.skip("this system exchanges nothing")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "new" / "out"


def test_a_folder_replaces_one_that_it_wrote(out: Path):
    for text in ("one", "two"):
        check_whole_folder(out, KIND)
        write(out, text)
        assert contents(out) == {"a": text, "deep/er/b": text}
        assert [each.name for each in out.parent.iterdir()] == ["out"]


def test_an_empty_folder_is_replaced_and_keeps_its_permissions(out: Path):
    out.mkdir(parents=True, mode=0o700)
    write(out)
    assert contents(out)
    assert out.stat().st_mode & 0o777 == 0o700


def test_a_file_that_was_removed_is_no_loss(out: Path):
    write(out)
    (out / "a").unlink()
    write(out, "two")
    assert contents(out)["a"] == "two"


CHANGES = {
    "a file added": (lambda f: (f / "mine").write_text(""), "holds mine, which abele did not"),
    "deep": (lambda f: (f / "deep" / "mine").write_text(""), "holds deep/mine, which abele did"),
    "an empty folder": (lambda f: (f / "mine").mkdir(), "holds mine, which abele did not"),
    "a file changed": (lambda f: (f / "a").write_text("mine"), "holds a, which was changed"),
    "a folder for a file": (
        lambda f: ((f / "a").unlink(), (f / "a").mkdir()),
        "holds a, which abele did not",
    ),
    "a link": (
        lambda f: ((f / "a").rename(f.parent / "a"), (f / "a").symlink_to(f.parent / "a")),
        "holds a, which abele did not",
    ),
    "a link to nothing": (lambda f: (f / "l").symlink_to("gone"), "holds l, which abele did not"),
    "no manifest": (lambda f: (f / MANIFEST).unlink(), "holds a, which abele did not"),
    "a broken manifest": (lambda f: (f / MANIFEST).write_text("{"), "holds .*did not write"),
    "another manifest": (lambda f: (f / MANIFEST).write_text("[]"), "holds .*did not write"),
    "a later manifest": (
        lambda f: (f / MANIFEST).write_text(
            json.dumps(json.loads((f / MANIFEST).read_text()) | {"version": 2})
        ),
        "holds .*did not write",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_abele_did_not_write_is_not_replaced(out: Path, change: str):
    write(out, "old")
    make, message = CHANGES[change]
    make(out)
    refused(out, message)


def test_another_kind_a_file_and_the_working_folder_are_not_replaced(
    out: Path, monkeypatch: pytest.MonkeyPatch
):
    write(out, "old")
    refused(out, "holds a test, which a graph does not replace; choose another", kind="a graph")
    refused(out / "a", "it is not a folder")
    for here in (out, out / "deep"):
        monkeypatch.chdir(here)
        refused(out, "is or holds the working folder")
        refused(Path(os.path.relpath(out)), "is or holds the working folder")


@pytest.mark.skipif(not os.path.ismount("/proc"), reason="needs Linux")
def test_a_mount_point_is_not_replaced():
    with pytest.raises(InputError, match="^/proc: .*is a mount point"):
        check_whole_folder(Path("/proc"), KIND)


def test_a_link_stays_and_its_target_is_replaced(out: Path):
    write(out, "old")
    link = out.with_name("link")
    link.symlink_to(out)
    write(link, "new")
    assert link.is_symlink()
    assert contents(out)["a"] == "new"


@pytest.mark.parametrize("error", [RuntimeError("half way"), KeyboardInterrupt()])
def test_a_failed_block_leaves_the_folder(out: Path, error: BaseException):
    write(out, "old")
    with pytest.raises(type(error)), whole_folder(out, KIND) as made:
        (made / "a").write_text("half")
        raise error
    assert contents(out)["a"] == "old"
    assert [each.name for each in out.parent.iterdir()] == ["out"]


def test_what_changes_during_the_work_is_not_replaced(out: Path):
    write(out, "old")
    with pytest.raises(InputError, match="holds a, which was changed"):
        with whole_folder(out, KIND) as made:
            (made / "a").write_text("new")
            (out / "a").write_text("mine")
    assert contents(out)["a"] == "mine"


def test_a_failure_is_shown_up_to_there(out: Path):
    with pytest.raises(RuntimeError, match="half way"):
        with folder_until_failure(out, KIND) as made:
            (made / "a").write_text("half")
            raise RuntimeError("half way")
    assert contents(out) == {"a": "half"}
    # The failure matters more than that it cannot be written.
    (out / "mine").write_text("")
    with pytest.raises(RuntimeError, match="half way") as caught:
        with folder_until_failure(out, KIND) as made:
            (made / "a").write_text("half")
            raise RuntimeError("half way")
    assert "not written" in caught.value.__notes__[0]


def test_a_free_folder_is_one_that_loses_nothing(out: Path):
    assert free_folder(out, KIND) == out
    write(out)
    assert free_folder(out, KIND) == out
    (out / "a").write_text("mine")
    assert free_folder(out, KIND) == out.with_name("out-2")


def test_a_full_disk_is_no_failure_to_show(out: Path):
    """Neither folder is replaced, whichever of them could not be written."""
    write(out, "old")
    inner = out.with_name("inner")
    for full in (OSError(28, "No space left on device"), InputError("no")):
        if isinstance(full, InputError):
            full.__cause__ = OSError(28, "No space left on device")
        with pytest.raises(InputError):
            with folder_until_failure(out, KIND) as made, folder_until_failure(inner, KIND) as more:
                (made / "a").write_text("half")
                (more / "a").write_text("half")
                raise full
        assert contents(out)["a"] == "old"
        assert not inner.exists()
