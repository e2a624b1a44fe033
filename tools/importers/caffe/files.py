"""The files of a network: a solver or a network as text, and the weights beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ....ir.upstream import ModuleOp
from ..files_beside import file_inside, read_regular
from ..huge_weights import WeightCheck
from .blobs import LayerBlobs, read_blobs
from .fields import Fields
from .kinds import NET, SOLVER, STATE
from .layer_node import Scope
from .network import Network, State, network_of
from .solver import NETS, training_of
from .text_format import Message, read_text

WEIGHTS = ".caffemodel"
"""How the names of files of weights end."""

NET_FIELDS = NET - {"state", "debug_info"}
"""The fields that tell a network from a solver."""


@dataclass(frozen=True)
class Files:
    """The files of a network.

    Attributes:
        path: of the network, or of the solver.
        place: its name in messages.
        solver: the solver, if the file is one.
        net: the path of the network as the solver names it; "" if the file is the network, or holds
            it.
        fields: the network, if the file is one, or holds it.
        weights: the paths of files of weights, below the folder.
    """

    path: Path
    place: str
    solver: Fields | None
    net: str
    fields: Fields | None
    weights: Sequence[str]

    @property
    def trains(self) -> bool:
        """Whether the file asks for training: it is a solver."""
        return self.solver is not None

    @property
    def names(self) -> list[str]:
        """The other files that the file names, as paths below its folder."""
        return [each for each in (self.net, *self.weights) if each]

    def net_path(self) -> Path:
        """The file of the network that a solver names. Raises InputError if there is none."""
        return file_inside(self.path.parent, self.net, f"{self.place}: net", "the network")

    def weight_paths(self) -> list[Path]:
        """The files of weights. Raises InputError for one that does not exist."""
        what = f"{self.place}: weights"
        return [file_inside(self.path.parent, name, what, "weights") for name in self.weights]

    def network(self) -> Network:
        """The network. Raises InputError for a file that cannot be read."""
        if self.fields is not None:
            return network_of(self.fields)
        path = self.net_path()
        text = read_text(read_regular(path, str(path)), str(path))
        return network_of(Fields(text, NET, str(path)))

    def stored(self, check: WeightCheck) -> Mapping[str, LayerBlobs]:
        """The layers of the files of weights, by name. Later files replace layers of earlier
        ones.

        Args:
            check: called with the sizes of the files before any is read.
        """
        paths = self.weight_paths()
        check({each.name: each.stat().st_size for each in paths})
        found: dict[str, LayerBlobs] = {}
        for each in paths:
            found |= read_blobs(each)
        return found

    def training_state(self, state: State) -> State:
        """The state of a network that is trained, as the solver says."""
        assert self.solver is not None, "there is a solver"
        return state.with_fields(self.solver.inner("train_state", STATE))

    def ask_training(self, module: ModuleOp, scope: Scope, *, has_loss: bool) -> None:
        """Record on a module how it is trained."""
        training_of(self.solver, scope, has_loss).write(module)


def files_of(path: Path, place: str) -> Files:
    """The files of a path. Raises InputError.

    Args:
        place: the path in messages.
    """
    message = read_text(read_regular(path, place), place)
    if not _is_solver(message):
        return Files(path, place, None, "", Fields(message, NET, place), _beside(path))
    solver = Fields(message, SOLVER, place)
    nets = [each for each in NETS if solver.has(each)]
    if len(nets) != 1:
        raise solver.bad(
            nets[1] if nets else NETS[0],
            f"{', '.join(nets) or 'nothing'} says what is trained; need one of {', '.join(NETS)}",
        )
    inner, name = None, ""
    if nets[0].endswith("_param"):
        inner = solver.inner(nets[0], NET)
    else:
        name = _near(path.parent, solver.text(nets[0]))
    given = [each for text in solver.texts("weights") for each in text.split(",") if each]
    return Files(path, place, solver, name, inner, [_near(path.parent, each) for each in given])


def _near(folder: Path, name: str) -> str:
    """A path in a solver, below the solver's folder.

    Caffe takes such paths from the folder that it was started in, so published ones begin with
    models/NAME. If there is no such file below the solver's own folder, but one with the same name
    in it, that one is taken.
    """
    last = name.rpartition("/")[2]
    try:
        there = (folder / name).is_file()
        beside = (folder / last).is_file()
    except (OSError, ValueError):
        return name
    return last if last and beside and not there else name


def _is_solver(message: Message) -> bool:
    """Whether a text is a solver: it has a field that only solvers have."""
    names = message.fields.keys()
    return bool(names & (SOLVER - NET)) and not names & NET_FIELDS


def _beside(path: Path) -> list[str]:
    """The file of weights that belongs to a network: it has the same name."""
    weights = path.with_suffix(WEIGHTS)
    return [weights.name] if weights.is_file() else []


def names_of_files(path: Path) -> Sequence[str]:
    """The other files that a file names. Raises InputError for one that does not exist."""
    files = files_of(path, str(path))
    if files.net:
        _ = files.net_path()
    _ = files.weight_paths()
    return files.names
