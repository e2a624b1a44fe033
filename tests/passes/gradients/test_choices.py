"""The names that options show are those of the losses and optimizers that there are."""

from abele.passes.gradients import choices
from abele.passes.gradients.losses import LOSSES
from abele.passes.gradients.optimizers import OPTIMIZERS


def test_all_losses_and_optimizers_are_named_in_order():
    assert tuple(LOSSES) == choices.LOSS_NAMES
    assert tuple(OPTIMIZERS) == choices.OPTIMIZER_NAMES
