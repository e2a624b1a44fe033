// RUN: abele opt %s -p 'plan-splits{target="tiny:4"},convert-nn-to-partition,convert-partition-to-tile,schedule-supersteps,allocate' | filecheck %s

builtin.module {
  // The state lies where its attributes say, on the tiles 1 and 2. The sum that reads it is cut into
  // four parts, so it copies them from there in every run.
  //
  // CHECK:       tile.variable @firm : tensor<4xf32> layout <[4 by 2] (d0) of [4] at 1> state
  // CHECK-NEXT:      {address = 128 : i64}
  nn.state @firm : tensor<4xf32> = <"84e61dd002e44947acef5c67">
    {home = #abele.layout<[4 by 2] (d0) of [4] at 1>, address = 128 : i64}

  // A wish is kept if the program loses at most one cycle for it in each run. This one would cost a
  // copy, so the state lies where the sum wants it, and wherever there is room.
  //
  // CHECK:       tile.variable @wish : tensor<4xf32> layout <[4 by 4] (d0) of [4]> state
  // CHECK-NEXT:      {address = 0 : i64}
  nn.state @wish : tensor<4xf32> = <"84e61dd002e44947acef5c67">
    {home = #abele.layout<[4 by 2] (d0) of [4] at 1>, address = 256 : i64, reload = 1 : i64}

  // CHECK:       tile.copy [@firm] ->
  // CHECK-NOT:   tile.copy [@wish]
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = nn.load @firm : tensor<4xf32>
    %1 = nn.add %x, %0 {plan = #abele.plan<split [4]>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.load @wish : tensor<4xf32>
    %3 = nn.add %1, %2 {plan = #abele.plan<split [4]>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return %3 : tensor<4xf32>
  }
}
