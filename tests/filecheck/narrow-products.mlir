// RUN: abele opt %s -p 'narrow-products{keep=last}' | filecheck %s

// Operands are divided by the powers of two that calibration has decided, and cast to 8 bits. The
// product multiplies by both powers. A product that is kept stays as it is.
//
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[LARGER:[0-9]+]] = nn.scale %x by 8.0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-DAG:     %[[LIMITED:[0-9]+]] = nn.clip %[[LARGER]] to -240.0, 240.0
// CHECK-DAG:     %[[X:[0-9]+]] = nn.cast %[[LIMITED]] : (tensor<4x8xf32>) -> tensor<4x8xf8E4M3FNUZ>
// CHECK-DAG:     nn.scale %w by 64.0
// CHECK:         %[[PRODUCT:[0-9]+]] = nn.matmul %[[X]], %{{[0-9]+}} scale -9 : (tensor<4x8xf8E4M3FNUZ>
// CHECK-NEXT:    nn.cast %[[PRODUCT]] : (tensor<4x4xf16>) -> tensor<4x4xf32>
// CHECK:         nn.matmul %{{.*}}, %w transpose_rhs : (tensor<4x4xf32>, tensor<8x4xf32>)
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> tensor<4x8xf32> {
  %0 = nn.matmul %x, %w {scales = array<i64: -3, -6>}
    : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> loc("first")
  %1 = nn.matmul %0, %w transpose_rhs
    : (tensor<4x4xf32>, tensor<8x4xf32>) -> tensor<4x8xf32> loc("last")
  func.return %1 : tensor<4x8xf32>
}
