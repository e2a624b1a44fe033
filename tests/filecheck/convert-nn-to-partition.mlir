// RUN: abele opt %s -p convert-nn-to-partition | filecheck %s

// CHECK-DAG:   #[[SAME:space[0-9]+]] = {{.*}} (d0, d1) of [4, 6] -> (d0, d1) of [4, 6]>
// CHECK-DAG:   #[[SWAP:space[0-9]+]] = {{.*}} (d1, d0) of [4, 6] -> (d0, d1) of [6, 4]>
// CHECK-DAG:   #[[PARTS:space[0-9]+]] = {{.*}}d1 = 2 reduction, d1p = 3] {{.*}} -> (d1p, d0) of [3, 4]>
// CHECK-DAG:   #[[MERGE:space[0-9]+]] = {{.*}}d1p = 3 reduction] (d1p, d0) of [3, 4] -> (d0) of [4]>
// CHECK-DAG:   #[[WINDOW:space[0-9]+]] = #abele.space<[i = 6, k = 3 reduction] (i + k - 1 wrap) of [6] -> (i) of [6]>

builtin.module attributes {abele.target = "tiny:4"} {
  // The plan of each operation gives its operands and its result their layouts, and the program's
  // inputs and outputs too. The transposition is a movement: a relayout with a move.
  //
  // CHECK-LABEL: func.func @main
  // CHECK-SAME:    %x: !partition.tensor<4x6xf32, [4 by 2, 6] (d0, d1) of [4, 6]>
  // CHECK:         %[[POSITIVE:[0-9]+]] = partition.compute(%x) space #[[SAME]] body <relu> plan <split [2, 1]>
  // CHECK:         partition.relayout(%[[POSITIVE]]) moves [#[[SWAP]]]
  // CHECK-NEXT:      -> !partition.tensor<6x4xf32, [6 by 3, 4] (d0, d1) of [6, 4]>
  func.func @main(%x: tensor<4x6xf32>) -> tensor<6x4xf32> {
    %0 = nn.relu %x {plan = #abele.plan<split [2, 1]>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %1 = nn.transpose %0 [1, 0] {plan = #abele.plan<split [3, 1]>}
      : (tensor<4x6xf32>) -> tensor<6x4xf32>
    func.return %1 : tensor<6x4xf32>
  }

  // Three parts of a reduction leave three partials, which are gathered and merged by the plan
  // under combine. A function takes values where it reads them.
  //
  // CHECK-LABEL: func.func @partials
  // CHECK-SAME:    %x: !partition.tensor<4x6xf32, [6 by 3, 4] (d1, d0) of [4, 6]>
  // CHECK:         %[[PARTIALS:[0-9]+]] = partition.compute(%x) space #[[PARTS]] body <identity sum> plan <split [1, 1, 3]>
  // CHECK:           -> !partition.tensor<3x4xf32, [3 by 3, 4] (d0, d1) of [3, 4]>
  // CHECK:         %[[GATHERED:[0-9]+]] = partition.relayout(%[[PARTIALS]])
  // CHECK:         partition.compute(%[[GATHERED]]) space #[[MERGE]] body <identity sum> plan <split [1, 1]>
  func.func @partials(%x: tensor<4x6xf32>) -> tensor<4xf32> {
    %0 = nn.reduce "sum" %x axes [1] {plan = #abele.plan<split [1, 3] combine split [1, 1]>}
      : (tensor<4x6xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }

  // Readers that want one layout share a relayout; a reader that wants another has its own. The
  // first one has the value where it lies.
  //
  // CHECK-LABEL: func.func @readers
  // CHECK:         partition.compute(%x) {{.*}} body <sqrt>
  // CHECK:         %[[HALVES:[0-9]+]] = partition.relayout(%x)
  // CHECK-NEXT:      -> !partition.tensor<24xf32, [24 by 2] (d0) of [24]>
  // CHECK-NEXT:    partition.compute(%[[HALVES]]) {{.*}} body <relu>
  // CHECK:         partition.compute(%[[HALVES]]) {{.*}} body <neg>
  // CHECK:         %[[THREE:[0-9]+]] = partition.relayout(%x)
  // CHECK-NEXT:      -> !partition.tensor<24xf32, [24 by 3] (d0) of [24]>
  // CHECK-NEXT:    partition.compute(%[[THREE]]) {{.*}} body <exp>
  func.func @readers(%x: tensor<24xf32>)
      -> (tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>) {
    %0 = nn.sqrt %x {plan = #abele.plan<split [4]>} : (tensor<24xf32>) -> tensor<24xf32>
    %1 = nn.relu %x {plan = #abele.plan<split [2]>} : (tensor<24xf32>) -> tensor<24xf32>
    %2 = nn.neg %x {plan = #abele.plan<split [2]>} : (tensor<24xf32>) -> tensor<24xf32>
    %3 = nn.exp %x {plan = #abele.plan<split [3]>} : (tensor<24xf32>) -> tensor<24xf32>
    func.return %0, %1, %2, %3 : tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>
  }

  // An operation of any space keeps its space; its plan cuts it, and the layouts follow.
  //
  // CHECK-LABEL: func.func @any_space
  // CHECK:         partition.compute({{.*}}) space #[[WINDOW]] body <identity sum> plan <split [3, 1]>
  // CHECK-NEXT:      (!partition.tensor<6xf32, [6 by 3, 3] (d0 + d1 - 1 wrap) of [6]>)
  func.func @any_space(%x: tensor<6xf32>) -> tensor<6xf32> {
    %0 = nn.compute(%x) space <[i = 6, k = 3 reduction] (i + k - 1 wrap) of [6] -> (i) of [6]>
      body <identity sum> {plan = #abele.plan<split [3, 1]>} : (tensor<6xf32>) -> tensor<6xf32>
    func.return %0 : tensor<6xf32>
  }
}
