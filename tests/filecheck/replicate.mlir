// RUN: abele opt %s -p 'replicate{replicas=2 combine=direct target="mk1x2"}' | filecheck %s

// The module records the replicas and the axis of the samples. The sum that the loop collects gets
// a leading axis of replicas.
//
// CHECK: abele.replicas = 2 : i64
// CHECK: abele.samples = [array<i64: 0>]
// CHECK: control.repeat 2
// CHECK: nn.compute(%part)
// CHECK-SAME: -> tensor<2x3xf32>
// CHECK: nn.add %{{.*}} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK: }
// CHECK: nn.reduce "sum"
func.func @main(%x: tensor<8x3xf32>) -> tensor<3xf32> {
  %zero = nn.constant <[0.0] : tensor<1xf32>> : tensor<1xf32>
  %first = nn.expand %zero to [3] : (tensor<1xf32>) -> tensor<3xf32>
  %parts = nn.reshape %x to [2, 4, 3] : (tensor<8x3xf32>) -> tensor<2x4x3xf32>
  %last = control.repeat 2 (%first) : (tensor<3xf32>) -> (tensor<3xf32>) {
  ^bb0(%total: tensor<3xf32>, %i: tensor<i32>):
    %index = nn.reshape %i to [1] : (tensor<i32>) -> tensor<1xi32>
    %row = nn.gather %parts, %index axis 0
        : (tensor<2x4x3xf32>, tensor<1xi32>) -> tensor<1x4x3xf32>
    %part = nn.reshape %row to [4, 3] : (tensor<1x4x3xf32>) -> tensor<4x3xf32>
    %own = nn.reduce "sum" %part axes [0] : (tensor<4x3xf32>) -> tensor<3xf32>
    %sum = nn.add %total, %own : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    control.yield %sum : tensor<3xf32>
  }
  func.return %last : tensor<3xf32>
}
