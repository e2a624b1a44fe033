// RUN: abele opt %s -p unfuse | filecheck %s

// The groups and their plans go. The plan of an operation that is in no group stays.
//
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[SQUARE:[0-9]+]] = nn.square %x : (
// CHECK-NEXT:    %[[POSITIVE:[0-9]+]] = nn.relu %[[SQUARE]] : (
// CHECK-NEXT:    nn.neg %[[POSITIVE]] {plan = #abele.plan<split [2, 1]>}
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = nn.square %x {group = 0 : i64, plan = #abele.plan<split [4, 1]>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = nn.relu %0 {group = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = nn.neg %1 {plan = #abele.plan<split [2, 1]>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return %2 : tensor<4x6xf32>
}
