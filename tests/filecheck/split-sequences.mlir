// RUN: abele opt %s -p split-sequences | filecheck %s

// A row of 4096 elements leaves most workers idle: it is scanned in parts, and so are their totals.
//
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[PARTS:.*]] = nn.reshape %x to [{{[0-9]+}}, {{[0-9]+}}]
// CHECK-NEXT:    %[[WITHIN:.*]] = nn.scan "sum" %[[PARTS]] axis 1
// CHECK-NEXT:    %[[TOTALS:.*]] = nn.slice %[[WITHIN]]
// CHECK-NEXT:    %[[BEFORE:.*]] = nn.scan "sum" %[[TOTALS]] axis 0 exclusive
// CHECK-NEXT:    %[[MERGED:.*]] = nn.add %[[WITHIN]], %[[BEFORE]]
// CHECK-NEXT:    nn.reshape %[[MERGED]] to [4096]
func.func @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {
  %0 = nn.scan "sum" %x axis 0 : (tensor<4096xf32>) -> tensor<4096xf32>
  func.return %0 : tensor<4096xf32>
}
