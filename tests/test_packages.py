import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("ir", "dialects", "backends", "passes", "tools")


def listed_packages() -> set[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return set(settings["tool"]["setuptools"]["packages"])


def package_folders() -> set[str]:
    return {
        ".".join(("abele", *init.parent.relative_to(ROOT).parts))
        for room in ROOMS
        for init in (ROOT / room).rglob("__init__.py")
    }


def test_every_package_folder_is_listed_for_the_wheel():
    assert package_folders() - listed_packages() == set()


def test_every_listed_package_is_a_folder():
    assert listed_packages() - package_folders() == set()


def test_every_folder_of_modules_is_a_package():
    bare = {
        str(module.parent.relative_to(ROOT))
        for room in ROOMS
        for module in (ROOT / room).rglob("*.py")
        if not (module.parent / "__init__.py").exists()
    }
    assert bare == set()


def test_the_folders_of_tests_are_those_of_abele():
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.glob("*/**/test_*.py")}
    assert len(folders) > 40
    assert {str(each) for each in folders if not (ROOT / each / "__init__.py").exists()} == set()


def test_no_folder_shadows_the_installed_namespace():
    assert not (ROOT / "abele").exists()
