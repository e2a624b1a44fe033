builtin.module attributes {abele.target = "tiny"} {
  func.func @main(%x: tensor<4x16xf32> loc(unknown), %w: tensor<16x8xf32> loc(unknown)) -> tensor<8x4xf32> {
    %0 = nn.matmul %x, %w {plan = #abele.plan<split [1, 1, 1] method amp>} : (tensor<4x16xf32>, tensor<16x8xf32>)
        -> tensor<4x8xf32> loc("<text>":4:5)
    %1 = nn.relu %0 {plan = #abele.plan<split [1, 1] workers [2, 3]>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
        loc("<text>":5:5)
    %2 = nn.transpose %1 [1, 0] {plan = #abele.plan<split [1, 1]>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
        loc("<text>":6:5)
    func.return %2 : tensor<8x4xf32> loc("<text>":8:5)
  } loc("<text>":3:3)
} loc("<text>":2:1)
