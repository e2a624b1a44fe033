builtin.module {
  func.func @main(%x: tensor<1x4x8x8xf32>, %g3: tensor<1x4x8x8xf32>, %zero: tensor<f32>, %w1: tensor<4x4x3x3xf32>, %w2: tensor<4x4x3x3xf32>, %w3: tensor<4x4x3x3xf32>) -> (tensor<4x4x3x3xf32>, tensor<4x4x3x3xf32>, tensor<4x4x3x3xf32>, tensor<1x4x8x8xf32>) {
    %z1 = nn.conv %x, %w1 stride [1, 1] dilation [1, 1] pad [1, 1] to [1, 1] : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
    %a1 = nn.relu %z1 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %z2 = nn.conv %a1, %w2 stride [1, 1] dilation [1, 1] pad [1, 1] to [1, 1] : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
    %a2 = nn.relu %z2 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %z3 = nn.conv %a2, %w3 stride [1, 1] dilation [1, 1] pad [1, 1] to [1, 1] : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
    %a3 = nn.relu %z3 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %p3 = nn.greater %a3, %zero : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8x8xi1>
    %h3 = nn.select %p3, %g3, %zero : (tensor<1x4x8x8xi1>, tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8x8xf32>
    %0 = nn.reshape %w2 to [4, 4, 3, 3] : (tensor<4x4x3x3xf32>) -> tensor<4x4x3x3xf32>
    %1 = nn.reshape %a1 to [1, 4, 8, 8] : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %z2_1 = nn.conv %1, %0 stride [1, 1] dilation [1, 1] pad [1, 1] to [1, 1] : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
    %a2_1 = nn.relu %z2_1 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %d3 = nn.conv_weight_grad %a2_1, %h3 kernel [3, 3] stride [1, 1] dilation [1, 1] pad [1, 1] : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<4x4x3x3xf32>
    %g2 = nn.conv_input_grad %h3, %w3 size [8, 8] stride [1, 1] dilation [1, 1] pad [1, 1] : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
    %a2_2 = nn.relu %z2_1 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %p2 = nn.greater %a2_2, %zero : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8x8xi1>
    %h2 = nn.select %p2, %g2, %zero : (tensor<1x4x8x8xi1>, tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8x8xf32>
    %2 = nn.reshape %a1 to [1, 4, 8, 8] : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %d2 = nn.conv_weight_grad %2, %h2 kernel [3, 3] stride [1, 1] dilation [1, 1] pad [1, 1] : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<4x4x3x3xf32>
    %3 = nn.reshape %w2 to [4, 4, 3, 3] : (tensor<4x4x3x3xf32>) -> tensor<4x4x3x3xf32>
    %g1 = nn.conv_input_grad %h2, %3 size [8, 8] stride [1, 1] dilation [1, 1] pad [1, 1] : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
    %p1 = nn.greater %2, %zero : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8x8xi1>
    %h1 = nn.select %p1, %g1, %zero : (tensor<1x4x8x8xi1>, tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8x8xf32>
    %d1 = nn.conv_weight_grad %x, %h1 kernel [3, 3] stride [1, 1] dilation [1, 1] pad [1, 1] : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<4x4x3x3xf32>
    %g0 = nn.conv_input_grad %h1, %w1 size [8, 8] stride [1, 1] dilation [1, 1] pad [1, 1] : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
    func.return %d1, %d2, %d3, %g0 : tensor<4x4x3x3xf32>, tensor<4x4x3x3xf32>, tensor<4x4x3x3xf32>, tensor<1x4x8x8xf32>
  }
}
