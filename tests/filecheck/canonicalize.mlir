// RUN: abele opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @reshape_of_reshape
// CHECK-NEXT:    %[[ONCE:[0-9]+]] = nn.reshape %x to [24] : (tensor<4x6xf32>) -> tensor<24xf32>
// CHECK-NEXT:    func.return %[[ONCE]]
func.func @reshape_of_reshape(%x: tensor<4x6xf32>) -> tensor<24xf32> {
  %0 = nn.reshape %x to [2, 12] : (tensor<4x6xf32>) -> tensor<2x12xf32>
  %1 = nn.reshape %0 to [24] : (tensor<2x12xf32>) -> tensor<24xf32>
  func.return %1 : tensor<24xf32>
}

// Axis i of the result is axis p[q[i]]: the permutations do not commute.
//
// CHECK-LABEL: func.func @transpose_of_transpose
// CHECK-NEXT:    %[[ONCE:[0-9]+]] = nn.transpose %x [1, 0, 2] :
// CHECK-NEXT:    func.return %[[ONCE]]
func.func @transpose_of_transpose(%x: tensor<2x3x4xf32>) -> tensor<3x2x4xf32> {
  %0 = nn.transpose %x [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %1 = nn.transpose %0 [2, 0, 1] : (tensor<2x4x3xf32>) -> tensor<3x2x4xf32>
  func.return %1 : tensor<3x2x4xf32>
}

// CHECK-LABEL: func.func @transpose_in_place
// CHECK-NEXT:    func.return %x
func.func @transpose_in_place(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = nn.transpose %x [0, 1] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}

// The tighter of both pairs of limits.
//
// CHECK-LABEL: func.func @clip_of_clip
// CHECK-NEXT:    %[[ONCE:[0-9]+]] = nn.clip %x to 0.0, 4.0
// CHECK-NEXT:    func.return %[[ONCE]]
func.func @clip_of_clip(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.clip %x to 0.0, 6.0 : (tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.clip %0 to -1.0, 4.0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// The same with the tighter limits in the other one.
//
// CHECK-LABEL: func.func @clip_of_tighter_clip
// CHECK-NEXT:    %[[ONCE:[0-9]+]] = nn.clip %x to 0.0, 4.0
// CHECK-NEXT:    func.return %[[ONCE]]
func.func @clip_of_tighter_clip(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.clip %x to -1.0, 4.0 : (tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.clip %0 to 0.0, 6.0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// Limits that do not overlap stay: no single pair gives 2.0 for every element.
//
// CHECK-LABEL: func.func @clips_apart
// CHECK-NEXT:    nn.clip %x to 0.0, 1.0
// CHECK-NEXT:    nn.clip {{.*}} to 2.0, 3.0
func.func @clips_apart(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.clip %x to 0.0, 1.0 : (tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.clip %0 to 2.0, 3.0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// The constant is [2, 2, 2, 2], and may be either operand.
//
// CHECK-LABEL: func.func @scale
// CHECK-NEXT:    %[[SCALED:[0-9]+]] = nn.scale %x by 2.0
// CHECK-NEXT:    func.return %[[SCALED]]
func.func @scale(%x: tensor<4xf32>) -> tensor<4xf32> {
  %two = nn.constant <"84e61dd002e44947acef5c67"> : tensor<4xf32>
  %0 = nn.mul %two, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// The constant is [0, 1, 2, 3].
//
// CHECK-LABEL: func.func @not_uniform
// CHECK-NOT:     nn.scale
// CHECK:         nn.mul
func.func @not_uniform(%x: tensor<4xf32>) -> tensor<4xf32> {
  %range = nn.constant <"aa4670fe509839cd7059e21a"> : tensor<4xf32>
  %0 = nn.mul %range, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
