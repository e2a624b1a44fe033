"""What abele changes in xDSL, one change per file: faster versions of slow parts, and three fixes.

Four of them change xDSL for the whole process. `irdl_imports` limits xDSL's import hook as soon as
abele is imported: `*.irdl` files in the working folder are read only for users' own imports.
`string_literals` replaces an expression of xDSL's lexer, which accepts the same literals. Where
abele makes a context, `dense_splats` replaces the method of xDSL's dense attribute that says
whether one number stands for all elements: zeros of different signs do not. `definition_checks`
replaces the check of every operation class that `ir.verify` has met, including classes of xDSL such
as `func.func`. Which operations are accepted, and the error messages, stay the same; a test
compares them. With the replacement, compiling SqueezeNet takes 12 % less CPU time (0.27 s instead
of 0.31 s, the least of five runs), and DenseNet-121 takes 8 to 12 % less (2.2 s instead of 2.4 to
2.5 s). The host was busy during these measurements, and the times for ResNet-50 varied too much to
show a difference.

Importing abele, or loading it into `xdsl-opt`, changes nothing but the import hook and the
expression: `xdsl-opt` verifies by itself, makes its own context, and never runs `ir.verify`.
"""
