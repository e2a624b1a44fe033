// RUN: abele opt %s -p differentiate | filecheck %s

// A space is transposed with its relations: rows of products that are sent to a table pass back the
// rows that they were sent to. What follows is differentiated by itself.
//
// CHECK:         #[[X:space[0-9]+]] = #abele.space<[j = 6, k = 2, row = 4 reduction] (row, k) of [4, 2]
// CHECK-NEXT:    where operand 2 is (row) of [4]>
// CHECK:         #[[B:space[0-9]+]] = #abele.space<[j = 6, row = 4 reduction, k = 2 reduction]
// CHECK-SAME:    (row, k) of [4, 2], (j, k) of [6, 2]
// CHECK-NEXT:    where operand 2 is (row) of [4]>
// CHECK-LABEL: func.func @main
// CHECK:         %[[ROWS:[0-9]+]] = nn.compute(%x, %b, %i) {{.*}} body <mul sum>
// CHECK:         %[[Y:[0-9]+]] = nn.compute(%[[ROWS]]) {{.*}} body <relu>
// CHECK:         %[[G:[0-9]+]] = nn.compute(%[[Y]], {{.*}} body <gate>
// CHECK:         nn.compute(%[[G]], %b, %i) space #[[X]] body <mul sum>
// CHECK:         nn.compute(%[[G]], %x, %i) space #[[B]] body <mul sum>
func.func @main(%x: tensor<6x2xf32>, %b: tensor<6xf32>, %i: tensor<6xi32>) -> tensor<4x2xf32> {
  %0 = nn.compute(%x, %b, %i) space <[row = 4, k = 2, j = 6 reduction] (j, k) of [6, 2],
      (j) of [6], (j) of [6] -> (row, k) of [4, 2] where operand 2 is (row) of [4]>
    body <mul sum then relu> : (tensor<6x2xf32>, tensor<6xf32>, tensor<6xi32>) -> tensor<4x2xf32>
  func.return %0 : tensor<4x2xf32>
}
