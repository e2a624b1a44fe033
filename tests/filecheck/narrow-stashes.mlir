// RUN: abele opt %s -p 'narrow-stashes{stashes="f134@0.25:act","float16:*"}' | filecheck %s

// The backward pass reads the result of the first operation, and of the second through a reshape.
// The first is kept as codes of f134, whose numbers are four times as large, the second as f16.
// Both are made narrow where they are computed, and wide again before each late reader.
//
// CHECK:       %a = nn.relu %x
// CHECK-NEXT:  %[[SCALED:[0-9]+]] = nn.scale %a by 4.0
// CHECK-NEXT:  %[[NEAR:[0-9]+]] = nn.to_nearest %[[SCALED]] digits 5.0 least 1.0 largest 248.0 overflow 1.0
// CHECK-NEXT:  %[[CODE:[0-9]+]] = nn.to_code %[[NEAR]] digits 5.0 least 1.0
// CHECK-NEXT:  %[[KEPT:[0-9]+]] = nn.cast %[[CODE]] : (tensor<2x3xf32>) -> tensor<2x3xi8>
// CHECK-NEXT:  %b = nn.exp %a
// CHECK-NEXT:  %[[LIMITED:[0-9]+]] = nn.clip %b to -65504.0, 65504.0
// CHECK-NEXT:  %[[HALF:[0-9]+]] = nn.cast %[[LIMITED]] : (tensor<2x3xf32>) -> tensor<2x3xf16>
// CHECK-NEXT:  nn.reshape %b
// CHECK-NEXT:  %y = nn.tanh
// CHECK-NEXT:  %[[B:[0-9]+]] = nn.cast %[[HALF]] : (tensor<2x3xf16>) -> tensor<2x3xf32>
// CHECK-NEXT:  %[[SHAPE:[0-9a-z_]+]] = nn.reshape %[[B]] to [6]
// CHECK-NEXT:  %h = nn.mul %g, %[[SHAPE]]
// CHECK-NEXT:  nn.reshape %h
// CHECK-NEXT:  %[[READ:[0-9]+]] = nn.cast %[[KEPT]] : (tensor<2x3xi8>) -> tensor<2x3xf32>
// CHECK-NEXT:  %[[NUMBER:[0-9]+]] = nn.from_code %[[READ]] digits 5.0 least 1.0
// CHECK-NEXT:  %[[A:[0-9]+]] = nn.scale %[[NUMBER]] by 0.25
// CHECK-NEXT:  nn.gate %[[A]],
builtin.module attributes {abele.forward = []} {
  func.func @main(%x: tensor<2x3xf32>, %g: tensor<6xf32>) -> (tensor<6xf32>, tensor<2x3xf32>) {
    %a = nn.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("act")
    %b = nn.exp %a : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("exp")
    %c = nn.reshape %b to [6] : (tensor<2x3xf32>) -> tensor<6xf32>
    %y = nn.tanh %c : (tensor<6xf32>) -> tensor<6xf32> loc("out")
    %h = nn.mul %g, %c : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32> loc("exp/backward")
    %i = nn.reshape %h to [2, 3] : (tensor<6xf32>) -> tensor<2x3xf32>
    %j = nn.gate %a, %i : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32> loc("act/backward")
    func.return %y, %j : tensor<6xf32>, tensor<2x3xf32>
  }
}
