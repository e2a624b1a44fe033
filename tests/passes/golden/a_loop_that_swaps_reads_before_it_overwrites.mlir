builtin.module attributes {abele.target = "tiny:2"} {
  tile.variable @arg0 : tensor<4xf32> layout <[4 by 2] (d0) of [4]>
  tile.variable @arg1 : tensor<4xf32> layout <[4 by 2] (d0) of [4]>
  tile.variable @"<text>:4:5" : tensor<4xf32> layout <[4 by 2] (d0) of [4]>
  tile.variable @"<text>:4:5.1" : tensor<4xf32> layout <[4 by 2] (d0) of [4]>
  tile.variable @"<text>:6:7" : tensor<4xf32> layout <[4 by 2] (d0) of [4]>
  tile.variable @"<text>:6:7.1" : tensor<4xf32> layout <[4 by 2] (d0) of [4]>
  func.func @main() {
    tile.input "arg0" -> @arg0 : tensor<4xf32>
    tile.input "arg1" -> @arg1 : tensor<4xf32>
    tile.copy [@arg0] -> @"<text>:4:5"
    tile.copy [@arg1] -> @"<text>:4:5.1"
    control.repeat 3() : () -> () {
      tile.copy [@"<text>:4:5.1"] -> @"<text>:6:7"
      tile.copy [@"<text>:4:5"] -> @"<text>:6:7.1"
      tile.copy [@"<text>:6:7"] -> @"<text>:4:5"
      tile.copy [@"<text>:6:7.1"] -> @"<text>:4:5.1"
      control.yield
    }
    tile.output @"<text>:4:5" -> "out0" : tensor<4xf32>
    tile.output @"<text>:4:5.1" -> "out1" : tensor<4xf32>
    func.return
  }
}
