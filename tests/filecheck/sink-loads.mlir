// RUN: abele opt %s -p sink-loads,eliminate-dead | filecheck %s

// A parameter is a variable to which each call copies its argument. What all calls give a function
// it loads itself.

nn.state @w : tensor<2xf32> = <[1.0, 2.0] : tensor<2xf32>>

// CHECK: func.func @main(%x: tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: %0 = func.call @add(%x)
// CHECK-NEXT: func.return %0
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %w = nn.load @w : tensor<2xf32>
  %0 = func.call @add(%x, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}

// CHECK: func.func @add(%x: tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: %w = nn.load @w
// CHECK-NEXT: nn.add %x, %w
func.func @add(%x: tensor<2xf32>, %w: tensor<2xf32>) -> tensor<2xf32> {
  %0 = nn.add %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
