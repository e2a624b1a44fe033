// RUN: abele opt %s -p 'recompute{nodes=conv2,tanh2}' | filecheck %s

// A step of training of three convolutions. The second one and its tanh are computed again before the
// backward pass reads them. The new convolution reads its operands through reshapes to their own
// shapes, so that they are laid out anew, and so do readers behind it: the forward pass's values need
// not stay. The gradients of weights are those of before.
//
// CHECK:       %z1 = nn.conv %a0, %w1
// CHECK:       %a1 = nn.tanh %z1
// CHECK:       %z2 = nn.conv %a1, %w2
// CHECK:       %a2 = nn.tanh %z2
// CHECK:       %z3 = nn.conv %a2, %w3
// CHECK:       %h3 = nn.mul %g3, %s3
// CHECK-NEXT:  %[[W:[0-9]+]] = nn.reshape %w2 to [4, 4, 3, 3]
// CHECK-NEXT:  %[[X:[0-9]+]] = nn.reshape %a1 to [1, 4, 8, 8]
// CHECK-NEXT:  %[[CONV:z2_1]] = nn.conv %[[X]], %[[W]] stride [1, 1] dilation [1, 1] pad [1, 1] to [1, 1]
// CHECK:       %[[TANH:a2_1]] = nn.tanh %[[CONV]]
// CHECK-NEXT:  %d3 = nn.conv_weight_grad %[[TANH]], %h3
// CHECK:       %g2 = nn.conv_input_grad %h3, %w3
// CHECK:       %q2 = nn.square %[[TANH]]
// CHECK:       %h2 = nn.mul %g2, %s2
// CHECK-NEXT:  %[[READ:[0-9]+]] = nn.reshape %a1 to [1, 4, 8, 8]
// CHECK-NEXT:  %d2 = nn.conv_weight_grad %[[READ]], %h2
// CHECK:       %[[AGAIN:[0-9]+]] = nn.reshape %w2 to [4, 4, 3, 3]
// CHECK-NEXT:  %g1 = nn.conv_input_grad %h2, %[[AGAIN]]
// CHECK:       %q1 = nn.square %[[READ]]
// CHECK:       %h1 = nn.mul %g1, %s1
// CHECK-NEXT:  %d1 = nn.conv_weight_grad %a0, %h1
// CHECK:       func.return %d1, %d2, %d3
!image = tensor<1x4x8x8xf32>
!kernel = tensor<4x4x3x3xf32>
builtin.module {
  func.func @main(%a0: !image, %target: !image, %w1: !kernel, %w2: !kernel, %w3: !kernel) -> (!kernel, !kernel, !kernel) {
    %z1 = nn.conv %a0, %w1 stride [1, 1] dilation [1, 1] pad [1, 1] to [1, 1] : (!image, !kernel) -> !image loc("conv1")
    %a1 = nn.tanh %z1 : (!image) -> !image loc("tanh1")
    %z2 = nn.conv %a1, %w2 stride [1, 1] dilation [1, 1] pad [1, 1] to [1, 1] : (!image, !kernel) -> !image loc("conv2")
    %a2 = nn.tanh %z2 : (!image) -> !image loc("tanh2")
    %z3 = nn.conv %a2, %w3 stride [1, 1] dilation [1, 1] pad [1, 1] to [1, 1] : (!image, !kernel) -> !image loc("conv3")
    %a3 = nn.tanh %z3 : (!image) -> !image loc("tanh3")
    %g3 = nn.sub %a3, %target : (!image, !image) -> !image loc("loss")
    %q3 = nn.square %a3 : (!image) -> !image loc("square3")
    %n3 = nn.neg %q3 : (!image) -> !image loc("neg3")
    %s3 = nn.shift %n3 by 1.0 : (!image) -> !image loc("slope3")
    %h3 = nn.mul %g3, %s3 : (!image, !image) -> !image loc("back3")
    %d3 = nn.conv_weight_grad %a2, %h3 kernel [3, 3] stride [1, 1] dilation [1, 1] pad [1, 1] : (!image, !image) -> !kernel loc("wgrad3")
    %g2 = nn.conv_input_grad %h3, %w3 size [8, 8] stride [1, 1] dilation [1, 1] pad [1, 1] : (!image, !kernel) -> !image loc("igrad3")
    %q2 = nn.square %a2 : (!image) -> !image loc("square2")
    %n2 = nn.neg %q2 : (!image) -> !image loc("neg2")
    %s2 = nn.shift %n2 by 1.0 : (!image) -> !image loc("slope2")
    %h2 = nn.mul %g2, %s2 : (!image, !image) -> !image loc("back2")
    %d2 = nn.conv_weight_grad %a1, %h2 kernel [3, 3] stride [1, 1] dilation [1, 1] pad [1, 1] : (!image, !image) -> !kernel loc("wgrad2")
    %g1 = nn.conv_input_grad %h2, %w2 size [8, 8] stride [1, 1] dilation [1, 1] pad [1, 1] : (!image, !kernel) -> !image loc("igrad2")
    %q1 = nn.square %a1 : (!image) -> !image loc("square1")
    %n1 = nn.neg %q1 : (!image) -> !image loc("neg1")
    %s1 = nn.shift %n1 by 1.0 : (!image) -> !image loc("slope1")
    %h1 = nn.mul %g1, %s1 : (!image, !image) -> !image loc("back1")
    %d1 = nn.conv_weight_grad %a0, %h1 kernel [3, 3] stride [1, 1] dilation [1, 1] pad [1, 1] : (!image, !image) -> !kernel loc("wgrad1")
    func.return %d1, %d2, %d3 : !kernel, !kernel, !kernel
  }
}
