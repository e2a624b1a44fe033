// RUN: abele opt %s -p order-exchanges | filecheck %s

// Rows on tiles become columns on tiles. Every tile sends to every other one: a Latin square of the
// places of a message at its sender and at its receiver.
// CHECK: exchange.move [@x] -> @y order <((p1 - q0) mod 4) of [1, 4] from [4, 1]>
// An order that somebody wrote stays.
// CHECK: exchange.move [@x] -> @z order <(d1)>
builtin.module attributes {abele.target = "tiny:4"} {
  exchange.variable @x at 0 : tensor<4x64xf32> layout <[4 by 4, 64] (d0, d1) of [4, 64]>
  exchange.variable @y at 256 : tensor<4x64xf32> layout <[4, 64 by 4] (d0, d1) of [4, 64]>
  exchange.variable @z at 512 : tensor<4x64xf32> layout <[4, 64 by 4] (d0, d1) of [4, 64]>
  func.func @main() {
    exchange.superstep @turn {
      exchange.sync "internal"
      exchange.move [@x] -> @y
      exchange.move [@x] -> @z order <(d1)>
    }
    func.return
  }
}
