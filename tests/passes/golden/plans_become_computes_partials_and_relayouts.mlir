#layout0 = #abele.layout<[3 by 3, 4 by 2, 2, 3, 3] (d2, d1, d3, d4) of [2, 4, 3, 3]>
#layout1 = #abele.layout<[6 by 3, 4 by 2, 6] (0, d1, d0, d2) of [1, 4, 6, 6]>
#layout2 = #abele.layout<[3 by 3, 3, 2] (0, d0, d1, d2) of [1, 3, 3, 2]>
#layout3 = #abele.layout<[3 by 3, 4 by 2, 3, 3, 3] (0, d1, 2 * d0 + d2 - 1 fill, 2 * d3 + d4 - 1 fill) of [1, 4, 6, 6]>
#layout4 = #abele.layout<[3 by 3, 2 by 2, 2, 3] (d1, 0, d2, d0, d3) of [2, 1, 2, 3, 3]>
#layout5 = #abele.layout<[2 by 2, 3 by 3, 2, 3] (d2, 0, d0, d1, d3) of [2, 1, 2, 3, 3]>
#layout6 = #abele.layout<[2 by 2, 3 by 3, 3] (0, d0, d1, d2) of [1, 2, 3, 3]>
#space0 = #abele.space<[n = 1, o = 2, y = 3, x = 3, c = 2 reduction, ky = 3 reduction, kx = 3 reduction, cp = 2]
    (0, c + 2 * cp, 2 * y + ky - 1 fill, 2 * x + kx - 1 fill) of [1, 4, 6, 6], (o, c + 2 * cp, ky, kx) of [2, 4, 3, 3]
    -> (cp, 0, o, y, x) of [2, 1, 2, 3, 3]>
#space1 = #abele.space<[axis0 = 1, o = 2, y = 3, x = 3, cp = 2 reduction] (cp, 0, o, y, x) of [2, 1, 2, 3, 3]
    -> (0, o, y, x) of [1, 2, 3, 3]>
#space2 = #abele.space<[d0 = 1, d1 = 2, d2 = 3, d3 = 3] (0, d1, d2, d3) of [1, 2, 3, 3], (d1, 0, 0) of [2, 1, 1]
    -> (0, d1, d2, d3) of [1, 2, 3, 3]>
#space3 = #abele.space<[d0 = 1, d1 = 3, d2 = 3, d3 = 2] (0, d3, d1, d2) of [1, 2, 3, 3]
    -> (0, d1, d2, d3) of [1, 3, 3, 2]>
builtin.module attributes {abele.target = "tiny:8"} {
  partition.state @w : tensor <2x4x3x3xf32, #layout0> = blob <"e243675e10db825d010c439d"> loc("<text>":3:3)
  partition.state @b : tensor <2x1x1xf32, [2 by 2, 3 by 3] (d0, 0, 0) of [2, 1, 1]> = blob <"2e7c1003c6772bed86611eff">
      loc("<text>":4:3)
  func.func @main(%x: !partition.tensor<1x4x6x6xf32, #layout1> loc(unknown)) -> !partition.tensor<2x9xf32, #layout2>
      attributes {arg_names = ["image"], result_names = ["out"]} {
    %w = partition.load @w : !partition.tensor<2x4x3x3xf32, #layout0> loc("<text>":7:5)
    %b = partition.load @b : !partition.tensor<2x1x1xf32, [2 by 2, 3 by 3] (d0, 0, 0) of [2, 1, 1]> loc("<text>":8:5)
    %0 = partition.relayout(%x) : (!partition.tensor<1x4x6x6xf32, #layout1>) -> !partition.tensor<1x4x6x6xf32, #layout3>
        loc("conv/in0")
    %1 = partition.compute(%0, %w) space #space0 body <mul sum> plan <split [1, 1, 3, 1, 1, 1, 1, 2]>
        : (!partition.tensor<1x4x6x6xf32, #layout3>, !partition.tensor<2x4x3x3xf32, #layout0>)
        -> !partition.tensor<2x1x2x3x3xf32, #layout4> loc("conv/partials")
    %2 = partition.relayout(%1) : (!partition.tensor<2x1x2x3x3xf32, #layout4>)
        -> !partition.tensor<2x1x2x3x3xf32, #layout5> loc("conv/gather")
    %3 = partition.compute(%2) space #space1 body <identity sum> plan <split [1, 2, 3, 1, 1]>
        : (!partition.tensor<2x1x2x3x3xf32, #layout5>) -> !partition.tensor<1x2x3x3xf32, #layout6> loc("conv")
    %4 = partition.compute(%3, %b) space #space2 body <add> plan <split [1, 2, 3, 1]>
        : (!partition.tensor<1x2x3x3xf32, #layout6>,
        !partition.tensor<2x1x1xf32, [2 by 2, 3 by 3] (d0, 0, 0) of [2, 1, 1]>)
        -> !partition.tensor<1x2x3x3xf32, #layout6> loc("bias")
    %5 = partition.relayout(%4) moves [#space3] : (!partition.tensor<1x2x3x3xf32, #layout6>)
        -> !partition.tensor<1x3x3x2xf32, #layout2> loc("transpose")
    %6 = partition.reshape %5 : !partition.tensor<1x3x3x2xf32, #layout2> -> !partition.tensor<2x9xf32, #layout2>
        loc("flatten")
    func.return %6 : !partition.tensor<2x9xf32, #layout2> loc("<text>":20:5)
  } loc("<text>":5:3)
} loc("<text>":2:1)
