"""What abele does about xDSL's speed, each idea in a file of its own.

One of them changes xDSL for the whole process. `definition_checks` replaces the check of the
operation classes that `ir.verify` has met, also of xDSL's own, such as `func.func`. What is
accepted and what errors say stays the same; a test compares. With it, compiling SqueezeNet takes
12 % less CPU time (0.27 instead of 0.31 s, least of five) and DenseNet-121 8 to 12 % less (2.2
instead of 2.4 to 2.5 s). These were measured on a busy host, where ResNet-50 varied too much to
tell.

Importing abele, or loading it into `xdsl-opt`, changes nothing of xDSL's: there xDSL verifies, and
`ir.verify` does not run.
"""
