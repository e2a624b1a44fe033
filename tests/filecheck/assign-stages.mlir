// RUN: abele opt %s -p 'assign-stages{cuts=second target="mk1x2"}' | filecheck %s

// The second node, and all behind it, are in a stage of their own, on the second chip.
//
// CHECK: abele.stages = [0 : i64, 1 : i64]
// CHECK: nn.tanh %x {stage = 0 : i64}
// CHECK: nn.exp %{{.*}} {stage = 1 : i64}
// CHECK: nn.neg %{{.*}} {stage = 1 : i64}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.tanh %x : (tensor<4xf32>) -> tensor<4xf32> loc("first")
  %1 = nn.exp %0 : (tensor<4xf32>) -> tensor<4xf32> loc("second")
  %2 = nn.neg %1 : (tensor<4xf32>) -> tensor<4xf32> loc("third")
  func.return %2 : tensor<4xf32>
}
