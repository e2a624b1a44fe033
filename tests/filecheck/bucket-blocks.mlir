// RUN: abele opt %s -p bucket-blocks{target=tiny:16} | filecheck %s

// Blocks whose pattern only a run knows get buckets: here, one for each of 4 bands of rows and 2 parts
// of columns, with room for 2 blocks. Those that find no room spill into a further one.
//
// CHECK:      #space0 = #abele.space<[n = 8, band = 4, row = 4, y = 4, part = 2 reduction, block = 2 reduction
// CHECK:      operand 2 is (row) of [5] where operand 3 is (column) of [4]
// CHECK:      #space1 = #abele.space<[n = 8, band = 1, row = 16, y = 4, part = 1 reduction, block = 6 reduction
// CHECK:      is (row) of [17] where operand 3 is (column) of [8]
// CHECK:      abele.block_inputs = {{.*}}"v", "r", "c", i32
// CHECK-LABEL: func.func @main
// CHECK:         attributes {arg_names = ["v", "x", "r", "c", "v.spilled", "r.spilled", "c.spilled"]}
// CHECK-NEXT:    %[[OWN:[0-9]+]] = nn.compute(%v, %x, %r, %c)
// CHECK:         %[[SPILLED:[0-9]+]] = nn.compute(
// CHECK:         nn.add %[[OWN]], %[[SPILLED]]
// CHECK-NOT:     nn.block_matmul
// CHECK:         func.return
func.func @main(%v: tensor<9x4x4xf32>, %x: tensor<32x8xf32>, %r: tensor<9xi32>, %c: tensor<9xi32>)
    -> tensor<64x8xf32> attributes {arg_names = ["v", "x", "r", "c"]} {
  %0 = nn.block_matmul %v, %x at %r, %c size 64 capacity 9 buckets [4, 2]
      : (tensor<9x4x4xf32>, tensor<32x8xf32>, tensor<9xi32>, tensor<9xi32>) -> tensor<64x8xf32>
  func.return %0 : tensor<64x8xf32>
}
