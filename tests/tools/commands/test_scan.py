import os
import re
from pathlib import Path

import onnx
import pytest
from PIL import Image
from some_models import convolutions
from typer.testing import CliRunner, Result

from abele.tools.cli import app
from abele.tools.views.scan import memory, needs

SIZE = "256"


def scan(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, ["scan", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.onnx"
    onnx.save(convolutions(), path)
    return path


def rows(output: str) -> dict[str, str]:
    lines = [line.strip("│").split("│") for line in output.splitlines() if line.startswith("│")]
    return {line[0].strip(): line[1].strip() for line in lines}


def counted(network: Path, *options: str) -> tuple[int, int]:
    """What the program itself says that it has."""
    from abele.tools.driver.compile import compile_model

    profile = compile_model(str(network), "tiny:16").profile
    return profile["vertices"], profile["edges"]


def test_everything_that_is_counted_is_drawn(network: Path):
    result = scan(network, "--target", "tiny:16", "-o", "x.png", "--size", SIZE)
    assert result.exit_code == 0, result.output
    vertices, edges = counted(network)
    found = rows(result.stdout)
    assert found["vertices"] == f"{vertices:,} drawn = {vertices:,} counted"
    assert found["edges"] == f"{edges:,} drawn = {edges:,} counted"
    assert re.fullmatch(r"[\d.]+% of cells", found["layer purity"])
    with Image.open("x.png") as image:
        assert image.size == (256, 256)
        assert len(image.getcolors(1 << 16) or ()) > 200


def test_the_same_seed_writes_the_same_file(network: Path):
    for name, seed in (("a.png", "5"), ("b.png", "5"), ("c.png", "6")):
        result = scan(network, "--target", "tiny:16", "-o", name, "--size", SIZE, "--seed", seed)
        assert result.exit_code == 0, result.output
    a, b, c = (Path(name).read_bytes() for name in ("a.png", "b.png", "c.png"))
    assert a == b != c


def test_a_sample_is_called_one(network: Path):
    result = scan(network, "--target", "tiny:16", "-o", "x.png", "--size", SIZE, "--sample", "1/2")
    assert result.exit_code == 0, result.output
    vertices, _ = counted(network)
    assert re.fullmatch(rf"a sample: [\d,]+ of {vertices:,}", rows(result.stdout)["vertices"])


def test_a_page_is_written(network: Path):
    result = scan(network, "--target", "tiny:16", "--zoom", "page", "--size", SIZE)
    assert result.exit_code == 0, result.output
    assert Path("page/index.html").is_file()
    assert Path("page/cycles/8/0_0.webp").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), r"nothing to draw; need -o SCAN.png or --zoom DIR"),
        (("-o", "x.gif"), r"x.gif: unknown picture format; need .png, .jpg, .jpeg, .webp"),
        (("-o", "x.png", "--size", "5"), "--size 5: need 256 to 16384 pixels"),
        (("-o", "x.png", "--color", "phases"), "--color phases: need one of layer, .*phase"),
        (("-o", "x.png", "--sample", "2/3"), "--sample 2/3: need 1/N"),
        (("-o", "x.png", "--sample", "1/0"), "--sample 1/0: need 1/N"),
        (("-o", "small.onnx"), "both the model and --output"),
        (("-o", "."), r"\.: "),
        (("--zoom", "small.onnx"), "small.onnx: cannot be written: it is not a folder"),
        (("-o", "x.png", "--target", "nonsense"), "nonsense"),
    ],
)
def test_bad_use_is_one_message_and_nothing_is_written(
    network: Path, arguments: tuple[str, ...], message: str
):
    result = scan(network, *arguments)
    assert result.exit_code == 2
    assert re.search(f"^error: .*{message}", result.stderr)
    assert "Traceback" not in result.output
    assert os.listdir() == ["small.onnx"]


def test_a_missing_model_is_one_message(tmp_path: Path):
    result = scan(tmp_path / "none.onnx", "-o", tmp_path / "x.png")
    assert result.exit_code == 2
    assert "none.onnx" in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(network: Path, tmp_path: Path):
    (tmp_path / "locked").mkdir(mode=0o500)
    result = scan(network, "-o", tmp_path / "locked" / "x.png")
    assert result.exit_code == 2
    assert "Permission denied" in result.stderr


def test_a_path_that_cannot_be_written_is_refused_before_the_work(network: Path):
    for output in (("-o", "/proc/x.png"), ("--zoom", "/proc/page")):
        result = scan(network, *output)
        assert result.exit_code == 2
        assert "cannot be written" in result.stderr


def test_too_large_for_the_memory_says_so_beforehand(
    network: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10_000_000)
    result = scan(network, "--target", "tiny:16", "-o", "x.png")
    assert result.exit_code == 2
    assert re.search(r"need about [\d.]+ GB of memory, 0.0 GB are free", result.stderr)
    assert not Path("x.png").exists()


def test_a_library_that_is_missing_is_named(network: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(needs, "find_spec", lambda name: None if name == "numba" else name)
    result = scan(network, "-o", "x.png")
    assert result.exit_code == 2
    assert "a scan needs numba, which is not installed: pip install 'abele[scan]'" in result.stderr


def test_every_known_name_of_colours_is_accepted():
    from abele.tools.views.scan.colours import COLOURINGS
    from abele.tools.views.scan.formats import COLOURS

    assert tuple(COLOURINGS) == COLOURS
