// RUN: abele opt %s -p fuse-chains | filecheck %s

// Both functions follow the product, whose value is the second operand of the subtraction.
//
// CHECK-LABEL: func.func @bias_and_activation
// CHECK-NEXT:    nn.matmul %x, %w {group = [[GROUP:[0-9]+]] : i64} :
// CHECK-NEXT:    nn.sub %b, %0 {group = [[GROUP]] : i64} :
// CHECK-NEXT:    nn.relu %1 {group = [[GROUP]] : i64} :
func.func @bias_and_activation(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %b: tensor<2x4xf32>)
    -> tensor<2x4xf32> {
  %0 = nn.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = nn.sub %b, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = nn.relu %1 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %2 : tensor<2x4xf32>
}

// A value that somebody else reads too is made, so no group has it inside.
//
// CHECK-LABEL: func.func @two_readers
// CHECK-NEXT:    %[[PRODUCT:[0-9]+]] = nn.matmul %x, %w : (
// CHECK-NEXT:    %[[POSITIVE:[0-9]+]] = nn.relu %[[PRODUCT]]
// CHECK-NEXT:    func.return %[[PRODUCT]], %[[POSITIVE]]
func.func @two_readers(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>)
    -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = nn.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = nn.relu %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %0, %1 : tensor<2x4xf32>, tensor<2x4xf32>
}

// The same for functions of two operands, whichever of them the product is.
//
// CHECK-LABEL: func.func @two_readers_of_two_operands
// CHECK:         %[[PRODUCT:[0-9]+]] = nn.matmul %x, %w : (
// CHECK-NEXT:    %[[ABOVE:[0-9]+]] = nn.sub %[[PRODUCT]], %b
// CHECK-NEXT:    %[[BELOW:[0-9]+]] = nn.sub %b, %[[PRODUCT]]
// CHECK-NEXT:    func.return %[[ABOVE]], %[[BELOW]]
func.func @two_readers_of_two_operands(
    %x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %b: tensor<2x4xf32>)
    -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = nn.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = nn.sub %0, %b : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = nn.sub %b, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %1, %2 : tensor<2x4xf32>, tensor<2x4xf32>
}

// An operation of any space can be the first of a group, and a function of elements a later one,
// also if it reads its further operand backwards.
//
// CHECK-LABEL: func.func @any_space
// CHECK-NEXT:    nn.compute(%x) {{.*}} body <identity sum> {group = [[GROUP:[0-9]+]] : i64}
// CHECK-NEXT:    nn.compute(%0, %b) {{.*}} body <sub> {group = [[GROUP]] : i64}
// CHECK-NEXT:    nn.relu %1 {group = [[GROUP]] : i64}
func.func @any_space(%x: tensor<6xf32>, %b: tensor<6xf32>) -> tensor<6xf32> {
  %0 = nn.compute(%x) space <[i = 6, k = 3 reduction] (i + k - 1 wrap) of [6] -> (i) of [6]>
    body <identity sum> : (tensor<6xf32>) -> tensor<6xf32>
  %1 = nn.compute(%0, %b) space <[i = 6] (i) of [6], (-i + 5) of [6] -> (i) of [6]>
    body <sub> : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %2 = nn.relu %1 : (tensor<6xf32>) -> tensor<6xf32>
  func.return %2 : tensor<6xf32>
}

// A group keeps a float16 in float32, in which numbers beyond its range stay finite. So what tells
// such a number from an infinite one reads the float16. A float32 is kept as it is.
//
// CHECK-LABEL: func.func @is_it_beyond_the_range
// CHECK-NEXT:    %[[NARROW:[0-9]+]] = nn.cosh %x : (
// CHECK-NEXT:    nn.is_inf %[[NARROW]] : (
// CHECK-NEXT:    %[[WIDE:[0-9]+]] = nn.cosh %y {group = [[GROUP:[0-9]+]] : i64} :
// CHECK-NEXT:    nn.is_inf %[[WIDE]] {group = [[GROUP]] : i64} :
func.func @is_it_beyond_the_range(%x: tensor<4xf16>, %y: tensor<4xf32>)
    -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = nn.cosh %x : (tensor<4xf16>) -> tensor<4xf16>
  %1 = nn.is_inf %0 : (tensor<4xf16>) -> tensor<4xi1>
  %2 = nn.cosh %y : (tensor<4xf32>) -> tensor<4xf32>
  %3 = nn.is_inf %2 : (tensor<4xf32>) -> tensor<4xi1>
  func.return %1, %3 : tensor<4xi1>, tensor<4xi1>
}
