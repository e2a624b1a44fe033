/* Operations: a table to sort and filter, also by layer or line, and with equal blocks folded into one row. */

let grouping = "", wanted = "";
const openHeads = new Set();
view("operations", "Operations", host => {
  const filter = make("input", { className: "field", type: "search", placeholder: "Filter: name, kind, line, plan", value: wanted, id: "filter" });
  filter.setAttribute("aria-label", "Filter operations");
  const groups = make("div", { className: "tabs" });
  const total = make("span", { className: "note", id: "filtered" });
  host.append(make("div", { className: "tools" }, filter, groups, total, make("span", { className: "note push", textContent: "click a row for its details" })), ...lacks("plans"), ...sparseProducts());
  const most = highest(OPS, op => op.cycles, 1);
  const every = [
    { name: "name", label: "operation", width: "minmax(330px, 2.4fr)", value: row => row.name, text: row => "    ".repeat(row.depth || 0) + (row.group ? `${openHeads.has(row.key) ? "▾" : "▸"} ${row.name}  (${row.size})` : row.name) },
    { name: "kind", label: "kind", width: "104px", value: row => row.kind.replace(/^nn\./, "") },
    ...(OPS.some(op => op.phase) ? [{ name: "phase", label: "phase", width: "70px", value: row => row.phase }] : []),
    ...(OPS.some(op => op.line) ? [{ name: "line", label: "line", width: "110px", value: row => row.line, text: row => row.line }] : []),
    { name: "cycles", label: "cycles", width: "92px", num: true, value: row => row.cycles, text: row => digits(row.cycles), share: row => row.cycles / (row.group ? P.cycles : most) },
    { name: "share", label: "share", width: "58px", num: true, value: row => row.cycles, text: row => share(row.cycles), tip: "of all cycles of a run" },
    { name: "compute", label: "compute", width: "66px", num: true, value: row => row.compute_cycles, text: row => short(row.compute_cycles) },
    { name: "exchange", label: "exchange", width: "66px", num: true, value: row => row.exchange_cycles, text: row => short(row.exchange_cycles) },
    { name: "received", label: "received", width: "74px", num: true, value: row => row.exchange_bytes, text: row => bytes(row.exchange_bytes), tip: "bytes that all tiles receive for it" },
    { name: "utilisation", label: "utilisation", width: "78px", num: true, value: row => row.utilisation, text: row => percent(row.utilisation), share: row => row.utilisation || 0 },
    { name: "weights", label: "weights", width: "76px", num: true, value: row => row.resident_bytes, text: row => bytes(row.resident_bytes), tip: "bytes of weights and constants on all tiles" },
    ...(P.planned ? [] : [{ name: "values", label: "results", width: "76px", num: true, value: row => row.value_bytes, text: row => bytes(row.value_bytes), tip: "bytes of its results" }]),
    { name: "peak", label: "at the peak", width: "82px", num: true, value: row => row.peak_bytes, text: row => bytes(row.peak_bytes), tip: "its bytes on the fullest tile in that tile's worst superstep" },
    { name: "limited", label: "limited by", width: "minmax(120px, 1.2fr)", value: row => row.limited_by },
    { name: "split", label: "plan", width: "minmax(120px, 1.4fr)", code: true, value: row => row.split },
    { name: "runner", label: "runner-up", width: "96px", num: true, value: row => row.runner_up_slower, text: row => row.runner_up_slower === null ? "–" : slower(row.runner_up_slower).replace(" alone", "") },
  ];
  const columns = P.planned ? every : every.filter(each => ["name", "kind", "phase", "weights", "values", "line"].includes(each.name));
  const text = op => `${op.name} ${op.kind} ${op.phase} ${op.line} ${data.sources[op.line] || ""} ${op.split} ${op.limited_by} ${op.nodes.map(n => n.node).join(" ")}`.toLowerCase();
  const table = grid(host, columns, {
    label: "Operations", className: "fill", least: P.planned ? 1570 : 700, nothing: "no operation has all these words",
    isOn: row => !row.group && row.operation === place.op,
    rows: compare => {
      const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
      const kept = OPS.filter(op => words.every(word => text(op).includes(word)));
      total.textContent = count(kept.length, "operation") + (P.planned ? `, ${share(sum(kept, op => op.cycles))} of the cycles` : "");
      const unfolded = (rows, depth) => (compare ? rows.toSorted(compare) : rows).flatMap(row => {
        row.depth = depth;
        return row.group && openHeads.has(row.key) ? [row, ...unfolded(row.inside, depth + 1)] : [row];
      });
      return unfolded({ "": ops => ops, layers: layersOf, blocks: blocksOf, lines: linesOf }[grouping](kept), 0);
    },
    pick: row => {
      if (!row.group) { go({ op: row.operation }); return; }
      openHeads.has(row.key) ? openHeads.delete(row.key) : openHeads.add(row.key);
      table.arrange();
    },
  });
  table.node.style.flex = "1"; table.node.style.minHeight = "300px";
  const tabs = [["one by one", "", "every operation"], ["by layer", "layers", "the operations of a layer in one row"], ["by block", "blocks", "equal layers that follow each other in one row, with how often they run"], ...(OPS.some(op => op.line) ? [["by line", "lines", "the operations of a line of the model's source in one row"]] : [])].map(([name, on, title]) => {
    const node = make("button", { type: "button", textContent: name, title });
    node.addEventListener("click", () => { grouping = on; mark(); table.arrange(); });
    groups.append(node);
    return [node, on];
  });
  const mark = () => tabs.forEach(([node, on]) => node.setAttribute("aria-selected", String(on === grouping)));
  mark();
  filter.addEventListener("input", () => { wanted = filter.value; table.arrange(); });
  VIEWS.find(each => each.name === "operations").update = () => table.arrange();
});
/** Products with a known matrix: what they take with their zeros and without. */
function sparseProducts() {
  const cycles = (name, value) => value === null ? "" : `${name} ${digits(value)}, `;
  const shown = listOf("Products with a known matrix, cycles of each alone", rowsOf(T.sparse_products).map(row =>
    [`${row.node}  ${row.matrix}${row.block && ` in blocks of ${row.block}`}, ${percent(row.held)} not 0`, `${cycles("dense", row.dense)}${cycles("sparse", row.sparse)}zeros ${row.verdict}`]));
  return shown.length ? [make("div", { className: "sparse" }, ...shown)] : [];
}
const layersOf = ops => [...Map.groupBy(ops, op => op.layer)].map(([layer, own]) => groupOf(`layer ${layer}`, layer, own));
const linesOf = ops => [...Map.groupBy(ops, op => op.line)].map(([line, own]) => line ? groupOf(`line ${line}`, data.sources[line] || line, own) : own).flat();
/** Blocks that repeat, each in one row; other layers as they are, and alone if they have one operation. */
function blocksOf(ops) {
  const kept = new Set(ops.map(op => op.operation)), inBlock = new Map(), done = new Set(), rows = [];
  data.blocks.forEach((turns, k) => turns.flat().forEach(op => inBlock.set(op, k)));
  const layers = Map.groupBy(ops, op => `${op.phase} ${op.layer}`);
  for (const op of ops) {
    const k = inBlock.get(op.operation), key = k === undefined ? `layer ${op.phase} ${op.layer}` : `block ${k}`;
    if (done.has(key)) continue;
    done.add(key);
    if (k === undefined) {
      const own = layers.get(`${op.phase} ${op.layer}`).filter(each => !inBlock.has(each.operation));
      rows.push(own.length > 1 ? groupOf(key, op.layer, own) : op);
      continue;
    }
    const turns = data.blocks[k], name = turn => OPS[turn[0]].layer;
    // Within a block, the operations at the same place of all turns are one row.
    const inside = turns[0].map((_, n) => {
      const same = turns.map(turn => turn[n]).filter(each => kept.has(each)).map(opOf);
      return same.length > 1 ? { ...groupOf(`${key} ${n}`, same[0].name, same), size: `× ${same.length}`, kind: same[0].kind, phase: same[0].phase, limited_by: common(same, "limited_by"), split: common(same, "split") } : same[0];
    }).filter(Boolean);
    const every = turns.flat().filter(each => kept.has(each)).map(opOf);
    rows.push({ ...groupOf(key, `${name(turns[0])} … ${name(turns.at(-1))}`, every), inside, size: `× ${turns.length}`, phase: op.phase });
  }
  return rows;
}
/** What all rows have; empty if they differ. */
const common = (rows, name) => rows.every(row => row[name] === rows[0][name]) ? rows[0][name] : "";
function groupOf(key, name, ops) {
  const head = { group: true, key, name, inside: ops, size: ops.length, kind: "", phase: "", limited_by: "", split: "", line: common(ops, "line"), runner_up_slower: null };
  for (const name of ["cycles", "compute_cycles", "exchange_cycles", "exchange_bytes", "resident_bytes", "value_bytes", "peak_bytes"]) head[name] = sum(ops, op => op[name]);
  const known = ops.filter(op => op.utilisation !== null && op.peak === "MACs");
  head.utilisation = known.length ? sum(known, op => op.utilisation * op.cycles) / (sum(known, op => op.cycles) || 1) : null;
  return head;
}
