"""A program that is kept ready to run gives the bytes of the bound one, wherever it lies."""

import json
from collections.abc import Callable
from itertools import product

import ml_dtypes
import numpy as np
import onnx
import pytest
import some_models

from abele.backends.codelets.calls import address
from abele.backends.evaluate.binder import Binder
from abele.backends.host import read_bound_program, routes, write_bound_program
from abele.backends.host.binders import best_binder
from abele.backends.host.calls import KernelCall
from abele.backends.host.read_bound_program import BoundProgram, Damaged, contents_of
from abele.backends.host.write_bound_program import bound_program_file
from abele.backends.machine import Machine
from abele.ir.upstream import ModuleOp
from abele.tools import Executable, compile_model
from abele.tools.driver.arrays import seeded
from abele.tools.testing.generators.build import default_operators

from .test_generated_programs import generated

pytest.importorskip("numba")

MODELS = ("products", "convolutions", "normalisations", "shuffle", "classifier", "nothing")

Head = dict[str, object]


def compiled(model: onnx.ModelProto) -> Executable:
    return compile_model(model, "tiny:8", cache=False)


def bound(exe: Executable) -> Machine:
    return Machine(exe.module_at("exchange"), exe.target, binder=best_binder())


def blobs_of(machine: Machine) -> dict[str, np.ndarray]:
    blobs = [v.initial.data for v in machine.variables.values() if v.initial is not None]
    return {blob.digest: blob.stored for blob in blobs}


def loaded(data: bytes, machine: Machine) -> BoundProgram:
    return BoundProgram(data, blobs_of(machine), *machine.memory.shape)


def results(run: Callable[[dict[str, np.ndarray]], object], exe: Executable) -> list[bytes]:
    """The outputs of three runs, since operands are packed in the second one."""
    found: list[bytes] = []
    for seed in (0, 1, 0):
        given = seeded(exe.inputs, seed)
        found += [array.tobytes() for array in run(given).values()]
    return found


@pytest.fixture
def exe() -> Executable:
    return compiled(some_models.convolutions())


@pytest.fixture
def machine(exe: Executable) -> Machine:
    return bound(exe)


@pytest.fixture
def data(exe: Executable, machine: Machine) -> bytes:
    found = bound_program_file(machine, exe.module_at("exchange"))
    assert found is not None
    return found


@pytest.mark.parametrize("name", MODELS)
def test_a_program_read_back_gives_the_same_bytes(name: str):
    exe = compiled(getattr(some_models, name)())
    machine = bound(exe)
    data = bound_program_file(machine, exe.module_at("exchange"))
    assert data is not None
    expected = results(machine.run, exe)
    # Each copy has memory of its own.
    copies = [loaded(data, machine) for _ in range(2)]
    del machine
    for each in copies:
        assert results(each.run, exe) == expected


def test_generated_programs_are_kept_whole_or_not_at_all():
    kept = 0
    # A file holds a sixth of the programs of all operators, and a third of those of these few.
    few = default_operators(("nn.add", "nn.concat", "nn.matmul", "nn.reduce", "nn.softmax"))
    for operators, number in product((None, few), range(10)):
        program = generated(number, operators)
        if program is None:
            continue
        machine = Machine(program.module, program.target, binder=best_binder())
        data = bound_program_file(machine, program.module)
        if data is None:
            continue
        kept += 1
        run = loaded(data, machine)
        for _ in range(2):
            expected = {name: x.tobytes() for name, x in machine.run(program.inputs).items()}
            found = {name: x.tobytes() for name, x in run.run(program.inputs).items()}
            assert found == expected
    assert kept > 1


def tables_of(machine: Machine, module: ModuleOp) -> np.ndarray | None:
    """The tables in the file of a program, without addresses."""
    data = bound_program_file(machine, module)
    if data is None:
        return None
    head, numbers = read_bound_program._opened(data)
    return numbers[3 * head["addresses"] :]


@pytest.mark.parametrize("name", MODELS)
def test_all_that_depends_on_where_memory_lies_is_noted_as_an_address(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    """Else a kept run would read what is there in another process."""
    # Two programs of one process share the tables of equal copies.
    monkeypatch.setattr(routes, "_KNOWN", {})
    exe = compiled(getattr(some_models, name)())
    module = exe.module_at("exchange")
    # Both lie at the same time, so no address of one is one of the other.
    first = bound(exe)
    one = tables_of(first, module)
    routes._KNOWN.clear()
    other = tables_of(bound(exe), module)
    assert one is not None
    np.testing.assert_array_equal(one, other)


def test_a_number_that_is_as_large_as_an_address_stays_a_number(exe: Executable, machine: Machine):
    """Numbers are relocated where somebody has noted an address, however large they are."""
    module = exe.module_at("exchange")
    writer = write_bound_program._Writer(machine, module)
    table = np.array([address(machine.memory) + (1 << 44), 1 << 45, -(1 << 45)], np.int64)
    number = writer._number(table)
    data = writer.file()
    head, numbers = read_bound_program._opened(data)
    _, size, first = head["blocks"][number]
    np.testing.assert_array_equal(numbers[3 * head["addresses"] :][first : first + 3], table)
    assert size == 24


def test_a_number_that_could_be_a_forgotten_address_is_not_kept(exe: Executable, machine: Machine):
    writer = write_bound_program._Writer(machine, exe.module_at("exchange"))
    code = next(iter(writer._codes))
    for table in (np.array([address(machine.memory) + 8]), np.array([3, code])):
        writer = write_bound_program._Writer(machine, exe.module_at("exchange"))
        _ = writer._number(table)
        with pytest.raises(write_bound_program._NotKept, match="a number that may be an address"):
            writer.file()


def test_an_address_outside_all_blocks_is_not_kept(exe: Executable, machine: Machine):
    writer = write_bound_program._Writer(machine, exe.module_at("exchange"))
    table = np.array([8])
    writer._note_addresses([table])
    writer._kept.append(table)
    with pytest.raises(write_bound_program._NotKept, match="an address outside all blocks"):
        writer.file()


def test_a_kernel_of_no_name_is_not_kept(exe: Executable, machine: Machine):
    writer = write_bound_program._Writer(machine, exe.module_at("exchange"))
    call = KernelCall(1 << 20, np.zeros(1, np.int64), np.array([0, 1]), None)
    with pytest.raises(write_bound_program._NotKept, match="a kernel of no name"):
        writer._call((call, ()))


def test_arguments_that_a_file_cannot_have_are_refused(exe: Executable, machine: Machine):
    writer = write_bound_program._Writer(machine, exe.module_at("exchange"))
    assert writer._argument((1, 2.5, True)) == ["numbers", [1, 2.5, True]]
    bfloat16 = ml_dtypes.bfloat16(1)
    for given in (bfloat16, (np.float64(1),), [np.zeros(1), 1.0], [np.zeros(1, bfloat16.dtype)]):
        with pytest.raises(write_bound_program._NotKept):
            writer._argument(given)


def test_a_program_whose_runs_change_a_state_is_not_kept():
    exe = compile_model(some_models.relu(), "tiny:8", keep={"x": "y"}, cache=False)
    assert bound_program_file(bound(exe), exe.module_at("exchange")) is None


def test_a_machine_that_keeps_all_bytes_is_not_kept(exe: Executable):
    module = exe.module_at("exchange")
    assert bound_program_file(Machine(module, exe.target, binder=Binder), module) is None


def test_large_tables_are_not_kept(
    exe: Executable, machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(write_bound_program, "MOST_BYTES", 100)
    assert bound_program_file(machine, exe.module_at("exchange")) is None


def changed(data: bytes, change: Callable[[Head, np.ndarray], None]) -> bytes:
    """A file with other contents."""
    head, numbers = read_bound_program._opened(data)
    whole = json.loads(json.dumps(head))
    change(whole, numbers)
    return contents_of(whole, [numbers])


def other_target(head: Head, numbers: np.ndarray) -> None:
    del numbers
    head["tiles"] += 1


def far_address(head: Head, numbers: np.ndarray) -> None:
    numbers[2 * head["addresses"]] = 1 << 45


def address_elsewhere(head: Head, numbers: np.ndarray) -> None:
    del head
    numbers[0] = len(numbers)


def unknown_block(head: Head, numbers: np.ndarray) -> None:
    numbers[head["addresses"]] = len(head["blocks"]) + len(head["codes"])


def table_elsewhere(head: Head, numbers: np.ndarray) -> None:
    saved = next(block for block in head["blocks"] if block[0] == read_bound_program.SAVED_BLOCK)
    saved[2] = len(numbers)


def weight_elsewhere(head: Head, numbers: np.ndarray) -> None:
    del numbers
    head["weights"][0][1][0][1][0] = 1 << 40


def view_elsewhere(head: Head, numbers: np.ndarray) -> None:
    del numbers
    head["weights"][0][1][0][0][1] = 1 << 40


def unknown_function(head: Head, numbers: np.ndarray) -> None:
    del numbers
    head["steps"][0][0].append(["function", "eval", []])


def missing_weight(head: Head, numbers: np.ndarray) -> None:
    del numbers
    head["weights"][0][0] = "0" * 24


@pytest.mark.parametrize(
    "change",
    [
        other_target,
        far_address,
        address_elsewhere,
        unknown_block,
        table_elsewhere,
        weight_elsewhere,
        view_elsewhere,
        unknown_function,
        missing_weight,
    ],
)
def test_a_file_that_does_not_belong_here_is_refused(
    data: bytes, machine: Machine, change: Callable[[Head, np.ndarray], None]
):
    assert loaded(changed(data, lambda head, numbers: None), machine)
    with pytest.raises(Damaged):
        loaded(changed(data, change), machine)
