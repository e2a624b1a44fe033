#plan0 = #abele.plan<split [1, 1, 3, 1, 2, 1, 1] combine split [1, 2, 3, 1, 1]>
builtin.module attributes {abele.target = "tiny:8"} {
  nn.state @w : tensor<2x4x3x3xf32> = <"e243675e10db825d010c439d"> loc("<text>":3:3)
  nn.state @b : tensor<2x1x1xf32> = <"2e7c1003c6772bed86611eff"> loc("<text>":4:3)
  func.func @main(%x: tensor<1x4x6x6xf32> loc(unknown)) -> tensor<2x9xf32>
      attributes {arg_names = ["image"], result_names = ["out"]} {
    %0 = nn.cast %x : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf16> loc("conv/narrow")
    %w = nn.load @w : tensor<2x4x3x3xf32> loc("<text>":7:5)
    %1 = nn.cast %w : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf16> loc("<text>":7:5)
    %b = nn.load @b : tensor<2x1x1xf32> loc("<text>":8:5)
    %2 = nn.cast %b : (tensor<2x1x1xf32>) -> tensor<2x1x1xf16> loc("<text>":8:5)
    %3 = nn.conv %0, %1 stride [2, 2] dilation [1, 1] pad [1, 1] to [0, 0] {plan = #plan0}
        : (tensor<1x4x6x6xf16>, tensor<2x4x3x3xf16>) -> tensor<1x2x3x3xf16> loc("conv")
    %4 = nn.add %3, %2 {plan = #abele.plan<split [1, 2, 3, 1]>} : (tensor<1x2x3x3xf16>, tensor<2x1x1xf16>)
        -> tensor<1x2x3x3xf16> loc("bias")
    %5 = nn.transpose %4 [0, 2, 3, 1] {plan = #abele.plan<split [1, 3, 1, 1]>} : (tensor<1x2x3x3xf16>)
        -> tensor<1x3x3x2xf16> loc("transpose")
    %6 = nn.reshape %5 to [2, 9] : (tensor<1x3x3x2xf16>) -> tensor<2x9xf16> loc("flatten")
    %7 = nn.cast %6 : (tensor<2x9xf16>) -> tensor<2x9xf32> loc("flatten/widen")
    func.return %7 : tensor<2x9xf32> loc("<text>":20:5)
  } loc("<text>":5:3)
} loc("<text>":2:1)
