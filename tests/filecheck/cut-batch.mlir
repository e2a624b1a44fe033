// RUN: abele opt %s -p 'cut-batch{count=4}' | filecheck %s

// The program takes four batches of two samples, and looks each of them up in a loop.
//
// CHECK-LABEL: func.func @main(%x: tensor<8x3xf32>
// CHECK-SAME:    -> tensor<8x3xf32>
// CHECK:         control.repeat 4
// CHECK:           nn.gather
// CHECK:           nn.tanh
// CHECK:           nn.update "last"
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = nn.tanh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}
