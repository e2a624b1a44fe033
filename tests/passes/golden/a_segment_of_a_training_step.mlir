builtin.module {
  func.func @main(%a0: tensor<1x4x8x8xf32>, %target: tensor<1x4x8x8xf32>, %w1: tensor<4x4x3x3xf32>,
      %w2: tensor<4x4x3x3xf32>, %w3: tensor<4x4x3x3xf32>)
      -> (tensor<4x4x3x3xf32>, tensor<4x4x3x3xf32>, tensor<4x4x3x3xf32>) {
    %z1 = nn.conv %a0, %w1 stride [1, 1] dilation [1, 1] pad [1, 1] to [1, 1]
        : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
    %a1 = nn.tanh %z1 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %z2 = nn.conv %a1, %w2 stride [1, 1] dilation [1, 1] pad [1, 1] to [1, 1]
        : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
    %a2 = nn.tanh %z2 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %z3 = nn.conv %a2, %w3 stride [1, 1] dilation [1, 1] pad [1, 1] to [1, 1]
        : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
    %a3 = nn.tanh %z3 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %g3 = nn.sub %a3, %target : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %q3 = nn.square %a3 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %n3 = nn.neg %q3 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %s3 = nn.shift %n3 by 1.0 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %h3 = nn.mul %g3, %s3 : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %0 = nn.reshape %w2 to [4, 4, 3, 3] : (tensor<4x4x3x3xf32>) -> tensor<4x4x3x3xf32>
    %1 = nn.reshape %a1 to [1, 4, 8, 8] : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %z2_1 = nn.conv %1, %0 stride [1, 1] dilation [1, 1] pad [1, 1] to [1, 1]
        : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
    %a2_1 = nn.tanh %z2_1 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %d3 = nn.conv_weight_grad %a2_1, %h3 kernel [3, 3] stride [1, 1] dilation [1, 1] pad [1, 1]
        : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<4x4x3x3xf32>
    %g2 = nn.conv_input_grad %h3, %w3 size [8, 8] stride [1, 1] dilation [1, 1] pad [1, 1]
        : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
    %q2 = nn.square %a2_1 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %n2 = nn.neg %q2 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %s2 = nn.shift %n2 by 1.0 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %h2 = nn.mul %g2, %s2 : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %2 = nn.reshape %a1 to [1, 4, 8, 8] : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %d2 = nn.conv_weight_grad %2, %h2 kernel [3, 3] stride [1, 1] dilation [1, 1] pad [1, 1]
        : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<4x4x3x3xf32>
    %3 = nn.reshape %w2 to [4, 4, 3, 3] : (tensor<4x4x3x3xf32>) -> tensor<4x4x3x3xf32>
    %g1 = nn.conv_input_grad %h2, %3 size [8, 8] stride [1, 1] dilation [1, 1] pad [1, 1]
        : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
    %q1 = nn.square %2 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %n1 = nn.neg %q1 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %s1 = nn.shift %n1 by 1.0 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %h1 = nn.mul %g1, %s1 : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %d1 = nn.conv_weight_grad %a0, %h1 kernel [3, 3] stride [1, 1] dilation [1, 1] pad [1, 1]
        : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<4x4x3x3xf32>
    func.return %d1, %d2, %d3 : tensor<4x4x3x3xf32>, tensor<4x4x3x3xf32>, tensor<4x4x3x3xf32>
  }
}
