/* Provenance: the framework's nodes and lines, what became of them, and the passes. */

view("provenance", "Provenance", host => {
  const every = rowsOf(T.provenance), NODES = [...every.filter(node => node.operation >= 0), ...every.filter(node => node.operation < 0)], levels = ["nn", "partition", "tile", "exchange"].filter(level => NODES.some(node => node[level] >= 0));
  const filter = make("input", { className: "field", type: "search", placeholder: "Filter: node, line, operation", id: "nodefilter" });
  filter.setAttribute("aria-label", "Filter nodes");
  const total = make("span", { className: "note" });
  const box = make("div", { className: "columns fill" }), left = make("section", { className: "panel w8" }), right = make("section", { className: "panel w4" });
  host.append(box); box.append(left, right);
  left.append(make("div", { className: "tools" }, make("h2", {}, "From source to cycles"), filter, total), ...lacks("provenance"));
  const of = (row, name) => { const op = opOf(row.operation); return op ? op[name] : 0; };
  const most = highest(OPS, op => op.cycles, 1);
  const table = grid(left, [
    { name: "node", label: "node of the framework", width: "minmax(140px, 1.6fr)", value: row => row.node },
    ...(NODES.some(node => node.line) ? [{ name: "line", label: "line", width: "minmax(76px, .9fr)", value: row => row.line }] : []),
    { name: "operation", label: "operation", width: "minmax(140px, 1.6fr)", value: row => row.operation < 0 ? "folded or removed" : opName(row.operation) },
    ...(P.planned ? [{ name: "cycles", label: "cycles", width: "76px", num: true, value: row => of(row, "cycles"), text: row => digits(of(row, "cycles")), share: row => of(row, "cycles") / most },
      { name: "bytes", label: "at the peak", width: "80px", num: true, value: row => of(row, "peak_bytes"), text: row => bytes(of(row, "peak_bytes")) }]
      : [{ name: "weights", label: "weights", width: "80px", num: true, value: row => of(row, "resident_bytes"), text: row => bytes(of(row, "resident_bytes")) }]),
    ...levels.map(level => ({ name: level, label: level, width: level.length > 5 ? "66px" : "36px", num: true, value: row => row[level], text: row => row[level] > 0 ? digits(row[level]) : "·", tip: `operations of ${level} that came from it` })),
  ], {
    label: "Nodes", least: 640 + (NODES.some(node => node.line) ? 90 : 0), nothing: "no node has all these words", isOn: row => place.op >= 0 && row.operation === place.op,
    rows: compare => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      const kept = NODES.filter(node => words.every(word => `${node.node} ${node.line} ${node.operation < 0 ? "" : opName(node.operation)}`.toLowerCase().includes(word)));
      total.textContent = count(kept.length, "node") + (P.planned ? "; cycles are those of the operation that a node is part of" : "");
      return compare ? kept.toSorted(compare) : kept;
    },
    pick: row => go({ op: row.operation }),
  });
  table.node.style.flex = "1"; table.node.style.minHeight = "300px";
  filter.addEventListener("input", table.arrange);
  VIEWS.find(each => each.name === "provenance").update = () => table.arrange();
  const passes = rowsOf(T.passes), seconds = sum(passes, each => each.seconds), longest = Math.max(1e-9, ...passes.map(each => each.seconds));
  right.append(make("h2", {}, "Passes", make("small", { textContent: passes.length ? `${seconds.toFixed(2)} s; operations before and after` : "" })), ...lacks("passes"));
  for (const each of passes) {
    const row = make("div"); row.style.cssText = "display:grid;grid-template-columns:minmax(104px,2fr) minmax(30px,1fr) 58px 92px;gap:8px;align-items:center";
    const level = make("span", { className: `level ${each.level}`, textContent: "" }), number = text => { const node = make("span", { className: "note", textContent: text }); node.style.cssText = "text-align:right;font-variant-numeric:tabular-nums"; return node; };
    const name = make("span", {}, level, each.name); name.style.cssText = "overflow:hidden;text-overflow:ellipsis;white-space:nowrap"; name.title = `${each.name}, towards ${each.level}`;
    row.append(name, bar([[each.seconds, "--compute", each.name]], longest), number(`${each.seconds.toFixed(3)} s`), number(each.operations_before === each.operations_after ? digits(each.operations_after) : `${digits(each.operations_before)} → ${digits(each.operations_after)}`));
    right.append(row);
  }
});
