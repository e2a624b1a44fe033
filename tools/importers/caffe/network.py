"""A network as its .prototxt has it: layers with their line, and which of them a phase includes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ....ir.support.errors import InputError
from ....ir.support.limits import INLINED_NODES
from .fields import Fields
from .kinds import LAYER, OLD_LAYER, OLD_TYPES, PARAM, PARAMETERS, RULE, SHAPE, STATE

Phase = Literal["TRAIN", "TEST"]

PHASES = ("TRAIN", "TEST")


@dataclass(frozen=True)
class Parameter:
    """What a layer says of one of its weights.

    Attributes:
        name: weights of one name are one weight; "" for a weight of its own.
        rate: the factor of the learning rate.
        decay: the factor of the weight decay.
    """

    name: str = ""
    rate: float = 1.0
    decay: float = 1.0


@dataclass(frozen=True)
class Layer:
    """A layer, in the present form or in that of `layers`.

    Attributes:
        fields: the message.
        parameters: of its weights, in their order; those that are left out have none.
    """

    name: str
    type: str
    bottoms: Sequence[str]
    tops: Sequence[str]
    fields: Fields
    parameters: Sequence[Parameter]

    @property
    def line(self) -> int:
        """The line where it begins."""
        return self.fields.line

    def settings(self, name: str) -> Fields:
        """The message in a field of the layer, such as convolution_param."""
        return self.fields.inner(name, PARAMETERS[name])

    def loss_weights(self) -> list[float]:
        """The weights of the tops in the objective, as far as they are given."""
        return self.fields.numbers("loss_weight")


@dataclass(frozen=True)
class State:
    """The phase, the level and the stages that a network is in."""

    phase: Phase
    level: int = 0
    stages: frozenset[str] = frozenset()

    def with_fields(self, fields: Fields) -> State:
        """This state, as far as the fields of a NetState say no other."""
        phase = "TRAIN" if fields.choice("phase", PHASES, self.phase) == "TRAIN" else "TEST"
        return State(
            phase,
            fields.integer("level", self.level),
            self.stages | frozenset(fields.texts("stage")),
        )

    def meets(self, rule: Fields) -> bool:
        """Whether a rule of a layer applies."""
        return (
            rule.choice("phase", PHASES, self.phase) == self.phase
            and rule.integer("min_level", self.level) <= self.level
            and rule.integer("max_level", self.level) >= self.level
            and self.stages >= set(rule.texts("stage"))
            and not self.stages & set(rule.texts("not_stage"))
        )


@dataclass(frozen=True)
class Network:
    """A network: its layers, and the inputs that the file declares without a layer.

    Attributes:
        inputs: their names and shapes.
        state: what the file says of its state.
    """

    place: str
    inputs: Sequence[tuple[str, tuple[int, ...]]]
    layers: Sequence[Layer]
    state: Fields

    def included(self, state: State) -> list[Layer]:
        """The layers of a state. Raises InputError for rules that contradict each other."""
        return [each for each in self.layers if _is_included(each, state)]


def network_of(fields: Fields) -> Network:
    """The network in the message of a file. Raises InputError."""
    new, old = fields.messages("layer", LAYER), fields.messages("layers", OLD_LAYER)
    if new and old:
        raise fields.bad("layers", "next to layer; need one of the two")
    count = len(new) + len(old)
    if count > INLINED_NODES.most:
        raise InputError(f"{fields.place}: {INLINED_NODES.refusal(f'{count} layers')}")
    layers = [_layer(each) for each in new] + [_old_layer(each) for each in old]
    state = fields.inner("state", STATE)
    return Network(fields.place, _inputs(fields), layers, state)


def _inputs(fields: Fields) -> list[tuple[str, tuple[int, ...]]]:
    """The inputs of a network without a layer for them."""
    names = fields.texts("input")
    shapes = [shape_in(each) for each in fields.messages("input_shape", SHAPE)]
    flat = fields.integers("input_dim", 1)
    if flat:
        if shapes or len(flat) != 4 * len(names):
            raise fields.bad("input_dim", f"{len(flat)} sizes; need 4 for each of {len(names)}")
        shapes = [tuple(flat[i : i + 4]) for i in range(0, len(flat), 4)]
    if len(shapes) != len(names):
        raise fields.bad("input", f"{len(names)} inputs with {len(shapes)} shapes")
    return list(zip(names, shapes, strict=True))


def shape_in(fields: Fields) -> tuple[int, ...]:
    """The sizes in a message BlobShape, 1 or more each."""
    return tuple(fields.integers("dim", 1))


def _layer(fields: Fields) -> Layer:
    parameters = [
        Parameter(each.text("name"), each.number("lr_mult", 1.0), each.number("decay_mult", 1.0))
        for each in fields.messages("param", PARAM)
    ]
    return _made(fields, fields.text("type"), parameters)


def _old_layer(fields: Fields) -> Layer:
    if fields.has("layer"):
        raise fields.bad(
            "layer", "a layer of the form before 2013; upgrade_net_proto_text of Caffe converts it"
        )
    name = fields.choice("type", [*OLD_TYPES], "")
    names = fields.texts("param")
    rates, decays = fields.numbers("blobs_lr"), fields.numbers("weight_decay")
    parameters = [
        Parameter(
            names[i] if i < len(names) else "",
            rates[i] if i < len(rates) else 1.0,
            decays[i] if i < len(decays) else 1.0,
        )
        for i in range(max(len(names), len(rates), len(decays)))
    ]
    return _made(fields, OLD_TYPES[name][1] if name else "", parameters)


def _made(fields: Fields, type_: str, parameters: Sequence[Parameter]) -> Layer:
    name = fields.text("name")
    fields = Fields(fields.message, None, f"{fields.place}: layer {name[:60]!r}")
    if not type_:
        raise fields.bad("type", "missing; need the type of the layer")
    for each in parameters:
        if not each.rate >= 0.0 or not each.decay >= 0.0:
            raise fields.bad(
                "param", f"lr_mult {each.rate:g}, decay_mult {each.decay:g}; need 0 or more"
            )
    return Layer(name, type_, fields.texts("bottom"), fields.texts("top"), fields, parameters)


def _is_included(layer: Layer, state: State) -> bool:
    fields = layer.fields
    include, exclude = fields.messages("include", RULE), fields.messages("exclude", RULE)
    if include and exclude:
        raise fields.bad("exclude", "next to include; need one of the two")
    if include:
        return any(state.meets(each) for each in include)
    return not any(state.meets(each) for each in exclude)
