// RUN: abele opt %s -p 'keep-remote{states=w}' | filecheck %s

// The load comes right before the first operation that reads the state, and the store right behind
// the one that computes its new value.

// CHECK: nn.state @w {{.*}} {home = "remote"}
nn.state @w : tensor<2xf32> = <[1.0, 2.0] : tensor<2xf32>>

// CHECK: nn.tanh %x
// CHECK-NEXT: %w = nn.load @w
// CHECK-NEXT: %1 = nn.add %0, %w
// CHECK-NEXT: nn.store %1, @w
// CHECK-NEXT: nn.exp %1
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %w = nn.load @w : tensor<2xf32>
  %0 = nn.tanh %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = nn.add %0, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = nn.exp %1 : (tensor<2xf32>) -> tensor<2xf32>
  nn.store %1, @w : tensor<2xf32>
  func.return %2 : tensor<2xf32>
}
