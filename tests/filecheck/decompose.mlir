// RUN: abele opt %s -p decompose | filecheck %s

// A composite becomes its parts, in the order in which they compute.
//
// CHECK-LABEL: func.func @softmax(%x: tensor<2x8xf32>)
// CHECK-NEXT:    %[[MAX:[0-9]+]] = nn.reduce "max" %x axes [1] keep_dims
// CHECK-NEXT:    %[[BELOW:[0-9]+]] = nn.sub %x, %[[MAX]]
// CHECK-NEXT:    %[[EXP:[0-9]+]] = nn.exp %[[BELOW]]
// CHECK-NEXT:    %[[SUM:[0-9]+]] = nn.reduce "sum" %[[EXP]] axes [1] keep_dims
// CHECK-NEXT:    %[[SHARE:[0-9]+]] = nn.div %[[EXP]], %[[SUM]]
// CHECK-NEXT:    func.return %[[SHARE]]
func.func @softmax(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = nn.softmax %x axis 1 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  func.return %0 : tensor<2x8xf32>
}

// Other operations stay.
//
// CHECK-LABEL: func.func @nothing_to_do
// CHECK-NEXT:    nn.relu
// CHECK-NEXT:    func.return
func.func @nothing_to_do(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
