// RUN: abele opt %s -p update-early | filecheck %s

// What the update needs moves to the first place at which all of it is known.
//
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %old = nn.load @w
// CHECK-NEXT:    %passed = nn.mul %dy, %old
// CHECK-NEXT:    %gradient = nn.mul %dy, %x
// CHECK-NEXT:    %new = nn.sub %old, %gradient
// CHECK-NEXT:    nn.store %new, @w
// CHECK-NEXT:    %after = nn.relu %passed
// CHECK-NEXT:    func.return %after
nn.state @w : tensor<4xf32> = <"84e61dd002e44947acef5c67">
func.func @main(%x: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4xf32> {
  %old = nn.load @w : tensor<4xf32>
  %gradient = nn.mul %dy, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %passed = nn.mul %dy, %old : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %after = nn.relu %passed : (tensor<4xf32>) -> tensor<4xf32>
  %new = nn.sub %old, %gradient : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  nn.store %new, @w : tensor<4xf32>
  func.return %after : tensor<4xf32>
}
