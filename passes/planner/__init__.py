"""The planner: it searches for the best way to split the work of every operator over the tiles.

Some constants that bound the search are "chosen by trial": all other constants unchanged, networks
were planned with the constant halved and doubled (2026-11-24, float32, batch 1, one process each).
The roomy trial is AlexNet, SqueezeNet and ResNet-50 on mk1 and on mk2; to plan all six takes 6.5 s
of processor time, which varies by 6 % from run to run. The tight trial is AlexNet on mk2:450 and
ResNet-50 on mk2:250, whose plans nearly fill the tiles. Cycles are those that the planner predicts;
"same" says that no cycles change.
"""
