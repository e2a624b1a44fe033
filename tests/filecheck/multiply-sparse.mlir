// RUN: abele opt %s -p multiply-sparse{target=tiny:16} | filecheck %s

// A product with a matrix of which 2 of 16 blocks are not 0 becomes one with the blocks. Each band of
// rows and part of columns is a bucket, and all buckets have as many blocks. A table names the rows
// of the dense matrix that each bucket reads.
//
// CHECK:         (band, 0, 0, y, x) of [2, 1, 1, 16, 16],
// CHECK-NEXT:    (band + 4 table [2, 0], x, n) of [4, 16, 256]
// CHECK:         -> (band, row, y, n) of [2, 2, 16, 256]
// CHECK-SAME:    where operand 2 is (row) of [3] where operand 3 is (0) of [1]
// CHECK-LABEL: func.func @sparse
// CHECK:         %[[ROWS:[0-9]+]] = nn.constant {{.*}} : tensor<2x1x1xi16>
// CHECK-NEXT:    %[[COLUMNS:[0-9]+]] = nn.constant {{.*}} : tensor<2x1x1xi16>
// CHECK-NEXT:    %[[VALUES:[0-9]+]] = nn.constant {{.*}} : tensor<2x1x1x16x16xf16>
// CHECK-NEXT:    nn.compute(%[[VALUES]], %x, %[[ROWS]], %[[COLUMNS]]) space #space0 body <mul sum>
// CHECK-NOT:     nn.matmul
// CHECK:         func.return
func.func @sparse(%x: tensor<64x256xf16>) -> tensor<64x256xf16> {
  %w = nn.constant <"c81ea17a5f31f38365af5e74"> : tensor<64x64xf16>
  %0 = nn.matmul %w, %x : (tensor<64x64xf16>, tensor<64x256xf16>) -> tensor<64x256xf16>
  func.return %0 : tensor<64x256xf16>
}

// A matrix without zeros stays.
//
// CHECK-LABEL: func.func @dense
// CHECK:         nn.matmul
func.func @dense(%x: tensor<64x256xf16>) -> tensor<64x256xf16> {
  %w = nn.constant <"299fa0b0f225eb77d0977d8d"> : tensor<64x64xf16>
  %0 = nn.matmul %w, %x : (tensor<64x64xf16>, tensor<64x256xf16>) -> tensor<64x256xf16>
  func.return %0 : tensor<64x256xf16>
}
