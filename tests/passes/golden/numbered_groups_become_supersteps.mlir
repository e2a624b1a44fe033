#layout0 = #abele.layout<[3 by 3, 4 by 2, 2, 3, 3] (d2, d1, d3, d4) of [2, 4, 3, 3]>
#layout1 = #abele.layout<[6 by 3, 4 by 2, 6] (0, d1, d0, d2) of [1, 4, 6, 6]>
#layout2 = #abele.layout<[3 by 3, 4 by 2, 3, 3, 3] (0, d1, 2 * d0 + d2 - 1 fill, 2 * d3 + d4 - 1 fill) of [1, 4, 6, 6]>
#layout3 = #abele.layout<[3 by 3, 2 by 2, 2, 3] (d1, 0, d2, d0, d3) of [2, 1, 2, 3, 3]>
#layout4 = #abele.layout<[2 by 2, 3 by 3, 2, 3] (d2, 0, d0, d1, d3) of [2, 1, 2, 3, 3]>
#layout5 = #abele.layout<[2 by 2, 3 by 3, 3] (0, d0, d1, d2) of [1, 2, 3, 3]>
#layout6 = #abele.layout<[3 by 3, 3, 2] (0, d0, d1, d2) of [1, 3, 3, 2]>
#space0 = #abele.space<[n = 1, o = 2, y = 3, x = 3, c = 2 reduction, ky = 3 reduction, kx = 3 reduction, cp = 2]
    (0, c + 2 * cp, 2 * y + ky - 1 fill, 2 * x + kx - 1 fill) of [1, 4, 6, 6], (o, c + 2 * cp, ky, kx) of [2, 4, 3, 3]
    -> (cp, 0, o, y, x) of [2, 1, 2, 3, 3]>
#space1 = #abele.space<[axis0 = 1, o = 2, y = 3, x = 3, cp = 2 reduction] (cp, 0, o, y, x) of [2, 1, 2, 3, 3]
    -> (0, o, y, x) of [1, 2, 3, 3]>
#space2 = #abele.space<[d0 = 1, d1 = 2, d2 = 3, d3 = 3] (0, d1, d2, d3) of [1, 2, 3, 3], (d1, 0, 0) of [2, 1, 1]
    -> (0, d1, d2, d3) of [1, 2, 3, 3]>
#space3 = #abele.space<[d0 = 1, d1 = 3, d2 = 3, d3 = 2] (0, d3, d1, d2) of [1, 2, 3, 3]
    -> (0, d1, d2, d3) of [1, 3, 3, 2]>
builtin.module attributes {abele.target = "tiny:8"} {
  exchange.variable @w at 0 : tensor<2x4x3x3xf32> layout #layout0 state = blob <"e243675e10db825d010c439d">
      loc("<text>":3:3)
  exchange.variable @b at 144 : tensor<2x1x1xf32> layout <[2 by 2, 3 by 3] (d0, 0, 0) of [2, 1, 1]>
      state = blob <"2e7c1003c6772bed86611eff"> loc("<text>":4:3)
  exchange.variable @image at 320 : tensor<1x4x6x6xf32> layout #layout1 loc("<text>":5:3)
  exchange.variable @"conv/in0" at 152 : tensor<1x4x6x6xf32> layout #layout2 loc("conv/in0")
  exchange.variable @"conv/partials" at 320 : tensor<2x1x2x3x3xf32> layout #layout3 loc("conv/partials")
  exchange.variable @"conv/gather" at 152 : tensor<2x1x2x3x3xf32> layout #layout4 loc("conv/gather")
  exchange.variable @conv at 152 : tensor<1x2x3x3xf32> layout #layout5 loc("conv")
  exchange.variable @bias at 176 : tensor<1x2x3x3xf32> layout #layout5 loc("bias")
  exchange.variable @transpose at 152 : tensor<1x3x3x2xf32> layout #layout6 loc("transpose")
  func.func @main() {
    tile.superstep @host {
      tile.sync "external" loc("<text>":5:3)
      tile.input "image" -> @image : tensor<1x4x6x6xf32> loc("<text>":5:3)
    } loc("<text>":5:3)
    tile.superstep @"conv/partials" {
      tile.sync "internal" loc("conv/partials")
      tile.copy [@image] -> @"conv/in0" loc("conv/in0")
      tile.vertices space #space0 body <mul sum> plan <split [1, 1, 3, 1, 1, 1, 1, 2]> reads [@"conv/in0", @w]
          writes @"conv/partials" loc("conv/partials")
    } loc("conv/partials")
    tile.superstep @conv {
      tile.sync "internal" loc("conv")
      tile.copy [@"conv/partials"] -> @"conv/gather" loc("conv/gather")
      tile.vertices space #space1 body <identity sum> plan <split [1, 2, 3, 1, 1]> reads [@"conv/gather"] writes @conv
          loc("conv")
    } loc("conv")
    tile.superstep @bias {
      tile.sync "internal" loc("bias")
      tile.vertices space #space2 body <add> plan <split [1, 2, 3, 1]> reads [@conv, @b] writes @bias loc("bias")
    } loc("bias")
    tile.superstep @transpose {
      tile.sync "internal" loc("transpose")
      tile.copy [@bias] -> @transpose moves [#space3] loc("transpose")
    } loc("transpose")
    tile.superstep @host.1 {
      tile.sync "external" loc("<text>":5:3)
      tile.output @transpose -> "out" : tensor<2x9xf32> loc("<text>":5:3)
    } loc("<text>":5:3)
    func.return loc("<text>":5:3)
  } loc("<text>":5:3)
} loc("<text>":2:1)
