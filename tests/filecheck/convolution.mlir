// RUN: abele opt %s -p convert-nn-to-partition | filecheck %s --check-prefix PARTITION
// RUN: abele opt %s -p convert-nn-to-partition,convert-partition-to-tile | filecheck %s --check-prefix TILE
// RUN: abele opt %s -p convert-nn-to-partition,convert-partition-to-tile,schedule-supersteps | filecheck %s --check-prefix NUMBERED
// RUN: abele opt %s -p convert-nn-to-partition,convert-partition-to-tile,schedule-supersteps,allocate | filecheck %s --check-prefix ADDRESSED
// RUN: abele opt %s -p convert-nn-to-partition,convert-partition-to-tile,schedule-supersteps,allocate,group-supersteps | filecheck %s --check-prefix GROUPED
// RUN: abele opt %s -p convert-nn-to-partition,convert-partition-to-tile,schedule-supersteps,allocate,group-supersteps,convert-tile-to-exchange | filecheck %s --check-prefix EXCHANGE

// A convolution whose input channels are cut in two, a bias, a transposition and a reshape, on the
// way down.
//
// The plan cuts the rows of the result in three and the channels in two: the channels leave partials
// for each half, which are gathered and merged in two parts of outputs. The weight lies where its only
// reader wants it. The padding is filled in the relayout of the image.
//
// PARTITION-DAG:   #[[W:layout[0-9]+]] = #abele.layout<[3 by 3, 4 by 2, 2, 3, 3] (d2, d1, d3, d4) of [2, 4, 3, 3]>
// PARTITION-DAG:   #[[IMAGE:layout[0-9]+]] = #abele.layout<[6 by 3, 4 by 2, 6] (0, d1, d0, d2) of [1, 4, 6, 6]>
// PARTITION-DAG:   #[[HALO:layout[0-9]+]] = #abele.layout<[3 by 3, 4 by 2, 3, 3, 3] (0, d1, 2 * d0 + d2 - 1 fill, 2 * d3 + d4 - 1 fill) of [1, 4, 6, 6]>
// PARTITION-DAG:   #[[PARTIALS:layout[0-9]+]] = #abele.layout<[3 by 3, 2 by 2, 2, 3] (d1, 0, d2, d0, d3) of [2, 1, 2, 3, 3]>
// PARTITION-DAG:   #[[GATHER:layout[0-9]+]] = #abele.layout<[2 by 2, 3 by 3, 2, 3] (d2, 0, d0, d1, d3) of [2, 1, 2, 3, 3]>
// PARTITION:       partition.state @w : tensor <2x4x3x3xf32, #[[W]]> = blob <"e243675e10db825d010c439d">
// PARTITION-NEXT:  partition.state @b : tensor <2x1x1xf32, [2 by 2, 3 by 3] (d0, 0, 0) of [2, 1, 1]>
// PARTITION:       func.func @main(%x: !partition.tensor<1x4x6x6xf32, #[[IMAGE]]>)
// PARTITION:         %[[IN:[0-9]+]] = partition.relayout(%x) {{.*}} -> !partition.tensor<1x4x6x6xf32, #[[HALO]]>
// PARTITION-NEXT:    %[[LEFT:[0-9]+]] = partition.compute(%[[IN]], %w) space #space0 body <mul sum>
// PARTITION-SAME:      plan <split [1, 1, 3, 1, 1, 1, 1, 2]>
// PARTITION:           -> !partition.tensor<2x1x2x3x3xf32, #[[PARTIALS]]>
// PARTITION:         %[[GATHERED:[0-9]+]] = partition.relayout(%[[LEFT]])
// PARTITION-NEXT:      -> !partition.tensor<2x1x2x3x3xf32, #[[GATHER]]>
// PARTITION:         %[[CONV:[0-9]+]] = partition.compute(%[[GATHERED]]) space #space1 body <identity sum>
// PARTITION-SAME:      plan <split [1, 2, 3, 1, 1]>
// PARTITION:         %[[BIAS:[0-9]+]] = partition.compute(%[[CONV]], %b) space #space2 body <add> plan <split [1, 2, 3, 1]>
// PARTITION:         %[[MOVED:[0-9]+]] = partition.relayout(%[[BIAS]]) moves [#space3]
// PARTITION:         partition.reshape %[[MOVED]] {{.*}} -> !partition.tensor<2x9xf32
//
// Each value gets a variable, named after the node and what it is for. States keep their values.
//
// TILE:            tile.variable @w : tensor<2x4x3x3xf32> layout #layout0 state = blob <"e243675e10db825d010c439d">
// TILE-NEXT:       tile.variable @b : tensor<2x1x1xf32>
// TILE-NEXT:         state = blob <"2e7c1003c6772bed86611eff">
// TILE-NEXT:       tile.variable @image : tensor<1x4x6x6xf32>
// TILE-NEXT:       tile.variable @"conv/in0" : tensor<1x4x6x6xf32>
// TILE-NEXT:       tile.variable @"conv/partials" : tensor<2x1x2x3x3xf32>
// TILE-NEXT:       tile.variable @"conv/gather" : tensor<2x1x2x3x3xf32>
// TILE-NEXT:       tile.variable @conv : tensor<1x2x3x3xf32>
// TILE-NEXT:       tile.variable @bias : tensor<1x2x3x3xf32>
// TILE-NEXT:       tile.variable @transpose : tensor<1x3x3x2xf32>
// TILE-NEXT:       func.func @main() {
// TILE-NEXT:         tile.input "image" -> @image : tensor<1x4x6x6xf32>
// TILE-NEXT:         tile.copy [@image] -> @"conv/in0"
// TILE-NEXT:         tile.compute_set @"conv/partials" {
// TILE-NEXT:           tile.vertices {{.*}} reads [@"conv/in0", @w]
// TILE-NEXT:             writes @"conv/partials"
// TILE-NEXT:         }
// TILE-NEXT:         tile.copy [@"conv/partials"] -> @"conv/gather"
// TILE-NEXT:         tile.compute_set @conv {
// TILE-NEXT:           tile.vertices {{.*}} reads [@"conv/gather"] writes @conv
// TILE-NEXT:         }
// TILE-NEXT:         tile.compute_set @bias {
// TILE-NEXT:           tile.vertices {{.*}} reads [@conv, @b] writes @bias
// TILE-NEXT:         }
// TILE-NEXT:         tile.copy [@bias] -> @transpose moves [#space3]
// TILE-NEXT:         tile.output @transpose -> "out" : tensor<2x9xf32>
// TILE-NEXT:         func.return
//
// A copy runs in the superstep of the compute set that follows it.
//
// NUMBERED:        tile.input "image" {{.*}} {superstep = 1 : i64}
// NUMBERED-NEXT:   tile.copy [@image] {{.*}} {superstep = 2 : i64}
// NUMBERED-NEXT:   tile.compute_set @"conv/partials"
// NUMBERED:        } {superstep = 2 : i64}
// NUMBERED-NEXT:   tile.copy [@"conv/partials"] {{.*}} {superstep = 3 : i64}
// NUMBERED-NEXT:   tile.compute_set @conv
// NUMBERED:        } {superstep = 3 : i64}
// NUMBERED-NEXT:   tile.compute_set @bias
// NUMBERED:        } {superstep = 4 : i64}
// NUMBERED-NEXT:   tile.copy [@bias] {{.*}} {superstep = 5 : i64}
// NUMBERED-NEXT:   tile.output @transpose {{.*}} {superstep = 6 : i64}
//
// Each variable has one address on all its tiles. What is not live at the same time shares bytes: the
// partials take the place of the image, what is gathered that of the convolution's operand. The sum of
// partials overwrites the first of them; the bias does not lie where the result of it is moved to.
//
// ADDRESSED:       tile.variable @w {{.*}} {address = 0 : i64}
// ADDRESSED-NEXT:  tile.variable @b
// ADDRESSED-NEXT:    {address = 144 : i64}
// ADDRESSED-NEXT:  tile.variable @image {{.*}} {address = 320 : i64}
// ADDRESSED-NEXT:  tile.variable @"conv/in0" {{.*}} {address = 152 : i64}
// ADDRESSED-NEXT:  tile.variable @"conv/partials" {{.*}} {address = 320 : i64}
// ADDRESSED-NEXT:  tile.variable @"conv/gather" {{.*}} {address = 152 : i64}
// ADDRESSED-NEXT:  tile.variable @conv {{.*}} {address = 152 : i64}
// ADDRESSED-NEXT:  tile.variable @bias {{.*}} {address = 176 : i64}
// ADDRESSED-NEXT:  tile.variable @transpose {{.*}} {address = 152 : i64}
//
// Operations of one number share a superstep, which begins with a sync.
//
// GROUPED:         tile.superstep @host {
// GROUPED-NEXT:      tile.sync "external"
// GROUPED-NEXT:      tile.input "image" -> @image : tensor<1x4x6x6xf32>
// GROUPED-NEXT:    }
// GROUPED-NEXT:    tile.superstep @"conv/partials" {
// GROUPED-NEXT:      tile.sync "internal"
// GROUPED-NEXT:      tile.copy [@image] -> @"conv/in0"
// GROUPED-NEXT:      tile.vertices
// GROUPED-NEXT:        writes @"conv/partials"
// GROUPED-NEXT:    }
// GROUPED-NEXT:    tile.superstep @conv {
// GROUPED-NEXT:      tile.sync "internal"
// GROUPED-NEXT:      tile.copy [@"conv/partials"] -> @"conv/gather"
// GROUPED-NEXT:      tile.vertices {{.*}} writes @conv
// GROUPED-NEXT:    }
// GROUPED-NEXT:    tile.superstep @bias {
// GROUPED-NEXT:      tile.sync "internal"
// GROUPED-NEXT:      tile.vertices {{.*}} writes @bias
// GROUPED-NEXT:    }
// GROUPED-NEXT:    tile.superstep @transpose {
// GROUPED-NEXT:      tile.sync "internal"
// GROUPED-NEXT:      tile.copy [@bias] -> @transpose moves [#space3]
// GROUPED-NEXT:    }
// GROUPED-NEXT:    tile.superstep @host.1 {
// GROUPED-NEXT:      tile.sync "external"
// GROUPED-NEXT:      tile.output @transpose -> "out" : tensor<2x9xf32>
// GROUPED-NEXT:    }
// GROUPED-NEXT:    func.return
//
// At last, the addresses are part of the variables, and operations have names of the dialect exchange.
//
// EXCHANGE-NOT:    tile.
// EXCHANGE:        exchange.variable @w at 0 : {{.*}} state = blob <"e243675e10db825d010c439d">
// EXCHANGE:        exchange.variable @b at 144 :
// EXCHANGE:        exchange.variable @image at 320 :
// EXCHANGE:        exchange.variable @transpose at 152 :
// EXCHANGE:        exchange.superstep @"conv/partials" {
// EXCHANGE-NEXT:     exchange.sync "internal"
// EXCHANGE-NEXT:     exchange.move [@image] -> @"conv/in0"
// EXCHANGE-NEXT:     exchange.compute
builtin.module attributes {abele.target = "tiny:8"} {
  nn.state @w : tensor<2x4x3x3xf32> = <"e243675e10db825d010c439d">
  nn.state @b : tensor<2x1x1xf32> = <"2e7c1003c6772bed86611eff">
  func.func @main(%x: tensor<1x4x6x6xf32>) -> tensor<2x9xf32>
      attributes {arg_names = ["image"], result_names = ["out"]} {
    %w = nn.load @w : tensor<2x4x3x3xf32>
    %b = nn.load @b : tensor<2x1x1xf32>
    %0 = nn.conv %x, %w stride [2, 2] dilation [1, 1] pad [1, 1] to [0, 0]
      {plan = #abele.plan<split [1, 1, 3, 1, 2, 1, 1] combine split [1, 2, 3, 1, 1]>}
      : (tensor<1x4x6x6xf32>, tensor<2x4x3x3xf32>) -> tensor<1x2x3x3xf32> loc("conv")
    %1 = nn.add %0, %b {plan = #abele.plan<split [1, 2, 3, 1]>}
      : (tensor<1x2x3x3xf32>, tensor<2x1x1xf32>) -> tensor<1x2x3x3xf32> loc("bias")
    %2 = nn.transpose %1 [0, 2, 3, 1] {plan = #abele.plan<split [1, 3, 1, 1]>}
      : (tensor<1x2x3x3xf32>) -> tensor<1x3x3x2xf32> loc("transpose")
    %3 = nn.reshape %2 to [2, 9] : (tensor<1x3x3x2xf32>) -> tensor<2x9xf32> loc("flatten")
    func.return %3 : tensor<2x9xf32>
  }
}
