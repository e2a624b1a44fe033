import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("ir", "dialects", "backends", "passes", "tools")


NOT_IN_THE_WHEEL = (
    "abele.tools.manual",
    "abele.tools.release",
    "abele.tools.testing.hostile",
    "abele.tools.workshop",
)
"""The packages that only maintainers of abele run, in a checkout. `tools/commands/checkout.py` says
so to whoever asks an install of the wheel for them."""


def is_in_the_wheel(module: str) -> bool:
    """Whether the wheel holds a module or a package."""
    return not f"{module}.".startswith(tuple(f"{each}." for each in NOT_IN_THE_WHEEL))


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
    assert set(filter(is_in_the_wheel, package_folders())) - listed_packages() == set()
    assert set(NOT_IN_THE_WHEEL) <= package_folders()


def test_every_listed_package_is_a_folder():
    assert listed_packages() - set(filter(is_in_the_wheel, package_folders())) == set()


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


OF_SEVERAL = {
    "backends/codelets": ("definitions", "scalar_prices"),
    "backends/evaluate": ("levels",),
    "backends/host": ("forms", "generated_programs", "without_kernels"),
    "backends/links": ("programs",),
    "backends/prices": ("io_tiles", "remote"),
    "dialects": ("round_trip",),
    "ir": ("writers",),
    "ir/rules": ("rules_keep_values",),
    "passes": ("every_pass", "planted_float8", "planted_sparse", "sparse_gradients"),
    "passes/planner": ("several_chips",),
    "passes/replicas": ("planted_replicas",),
    "tools": ("networks", "placed_functions", "several_chips"),
    "tools/commands": (
        *("hostile_names", "odd_folders", "prove_programs", "strict_run", "table_widths"),
        "wrong_inputs",
    ),
    "tools/debug": ("opt_onnx", "overflow"),
    "tools/driver/decoding": ("packed_decoder",),
    "tools/driver": (
        *("dropout_training", "kept_lengths", "recurrent_training", "second_front_end"),
        *("stateful_pipelines", "threads", "torch"),
    ),
    "tools/driver/extensions": ("machine_parts",),
    "tools/importers/caffe": ("layers", "networks"),
    "tools/importers/mxnet": ("operators",),
    "tools/importers/onnx": ("exports",),
    "tools/importers/onnx_models": ("round_trip",),
    "tools/importers/pt2": ("both_forms", "live"),
    "tools/importers/stablehlo": ("both_forms", "programs"),
    "tools/proving": ("public_rules", "wrong_rules"),
    "tools/proving/scalars": ("meanings",),
    "tools/testing/generators": ("blind_spots",),
    "tools/testing/mutation": ("mutate",),
    "tools/testing/search": ("literals", "planted", "random_plans", "stablehlo", "users_levels"),
    "tools/views": ("source_lines",),
    "tools/views/report": ("chips_page", "health_page", "page_data"),
    "tools/views/scan": ("large",),
    "tools/workshop/learning": ("learning",),
    "tools/workshop/transformers": ("placements", "transformers"),
}
"""The tests of what several modules do together, by folder. Each says in its first line what that
is. Every other test has the name of a module, or of a folder, of the folder of abele that it is in.
"""


def test_a_test_has_the_name_of_a_module_or_is_one_of_several():
    found: dict[str, list[str]] = {}
    for test in (ROOT / "tests").glob("*/**/test_*.py"):
        folder = test.parent.relative_to(ROOT / "tests")
        name = test.stem.removeprefix("test_")
        if not any(
            (ROOT / folder / each).exists() for each in (f"{name}.py", f"__{name}__.py", name)
        ):
            found.setdefault(folder.as_posix(), []).append(name)
    assert {folder: tuple(sorted(names)) for folder, names in found.items()} == OF_SEVERAL


def test_no_folder_shadows_the_installed_namespace():
    assert not (ROOT / "abele").exists()
