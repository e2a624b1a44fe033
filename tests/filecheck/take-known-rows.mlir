// RUN: abele opt %s -p take-known-rows{target=tiny} | filecheck %s

// The rows that a constant names are moved. An index below 0 counts from the end.
//
// CHECK-LABEL: func.func @main
// CHECK:         %0 = nn.relu %x
// CHECK:         nn.take %0
// CHECK-NOT:     nn.gather
func.func @main(%x: tensor<4x8xf32>) -> tensor<2x8xf32> {
  %0 = nn.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = nn.constant <[2, -1] : tensor<2xi32>> : tensor<2xi32>
  %2 = nn.gather %0, %1 axis 0 : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  func.return %2 : tensor<2x8xf32>
}

// The planner chooses where an input lies, so its rows are looked up.
//
// CHECK-LABEL: func.func @input
// CHECK:         nn.gather %x
// CHECK-NOT:     nn.take
func.func @input(%x: tensor<4x8xf32>) -> tensor<2x8xf32> {
  %1 = nn.constant <[2, -1] : tensor<2xi32>> : tensor<2xi32>
  %2 = nn.gather %x, %1 axis 0 : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  func.return %2 : tensor<2x8xf32>
}
