// RUN: abele opt %s -p fold-scales | filecheck %s

// One factor per output channel moves into the weights, whose first axis is the output channel.
//
// CHECK-LABEL: func.func @factor_per_channel
// CHECK-DAG:     %[[WEIGHTS:w[_0-9]*]] = nn.reshape {{.*}} to [4, 1, 1, 1] : (tensor<4xf32>)
// CHECK-DAG:     %[[FACTOR:[0-9]+]] = nn.reshape {{.*}} to [4, 1, 1, 1] : (tensor<4x1x1xf32>)
// CHECK:         %[[FOLDED:[0-9]+]] = nn.mul %[[WEIGHTS]], %[[FACTOR]] : (tensor<4x1x1x1xf32>
// CHECK-NEXT:    %[[RESULT:[0-9]+]] = nn.conv %x, %[[FOLDED]] stride
// CHECK:         func.return %[[RESULT]]
func.func @factor_per_channel(%x: tensor<1x1x5x5xf32>) -> tensor<1x4x5x5xf32> {
  %range = nn.constant <"aa4670fe509839cd7059e21a"> : tensor<4xf32>
  %w = nn.reshape %range to [4, 1, 1, 1] : (tensor<4xf32>) -> tensor<4x1x1x1xf32>
  %two = nn.constant <"84e61dd002e44947acef5c67"> : tensor<4xf32>
  %factor = nn.reshape %two to [4, 1, 1] : (tensor<4xf32>) -> tensor<4x1x1xf32>
  %0 = nn.conv %x, %w stride [1, 1] dilation [1, 1] pad [0, 0] to [0, 0]
    : (tensor<1x1x5x5xf32>, tensor<4x1x1x1xf32>) -> tensor<1x4x5x5xf32>
  %1 = nn.mul %0, %factor : (tensor<1x4x5x5xf32>, tensor<4x1x1xf32>) -> tensor<1x4x5x5xf32>
  func.return %1 : tensor<1x4x5x5xf32>
}

// A factor that is another in each run would have to be folded in each run.
//
// CHECK-LABEL: func.func @factor_that_changes
// CHECK:         %[[CONV:[0-9]+]] = nn.conv %x, %w stride
// CHECK:         nn.mul %[[CONV]], %factor
func.func @factor_that_changes(%x: tensor<1x1x5x5xf32>, %factor: tensor<4x1x1xf32>)
    -> tensor<1x4x5x5xf32> {
  %range = nn.constant <"aa4670fe509839cd7059e21a"> : tensor<4xf32>
  %w = nn.reshape %range to [4, 1, 1, 1] : (tensor<4xf32>) -> tensor<4x1x1x1xf32>
  %0 = nn.conv %x, %w stride [1, 1] dilation [1, 1] pad [0, 0] to [0, 0]
    : (tensor<1x1x5x5xf32>, tensor<4x1x1x1xf32>) -> tensor<1x4x5x5xf32>
  %1 = nn.mul %0, %factor : (tensor<1x4x5x5xf32>, tensor<4x1x1xf32>) -> tensor<1x4x5x5xf32>
  func.return %1 : tensor<1x4x5x5xf32>
}
