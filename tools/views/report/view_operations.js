/* Operations: a table to sort and filter, also by layer. */

let byLayer = false, wanted = "";
const openLayers = new Set();
view("operations", "Operations", host => {
  const filter = make("input", { className: "field", type: "search", placeholder: "Filter: name, kind, line, plan", value: wanted, id: "filter" });
  filter.setAttribute("aria-label", "Filter operations");
  const groups = make("div", { className: "tabs" });
  const total = make("span", { className: "note", id: "filtered" });
  host.append(make("div", { className: "tools" }, filter, groups, total, make("span", { className: "note push", textContent: "click a row for its details" })), ...lacks("plans"));
  const most = Math.max(1, ...OPS.map(op => op.cycles));
  const columns = [
    { name: "name", label: "operation", width: "minmax(240px, 2.4fr)", value: row => row.group ? row.layer : row.name, text: row => row.group ? `${openLayers.has(row.layer) ? "▾" : "▸"} ${row.layer}  (${row.size})` : (byLayer ? "    " : "") + row.name },
    { name: "kind", label: "kind", width: "104px", value: row => row.kind.replace(/^nn\./, "") },
    ...(OPS.some(op => op.phase) ? [{ name: "phase", label: "phase", width: "70px", value: row => row.phase }] : []),
    { name: "cycles", label: "cycles", width: "92px", num: true, value: row => row.cycles, text: row => digits(row.cycles), share: row => row.cycles / (row.group ? P.cycles : most) },
    { name: "share", label: "share", width: "58px", num: true, value: row => row.cycles, text: row => share(row.cycles), tip: "of all cycles of a run" },
    { name: "compute", label: "compute", width: "66px", num: true, value: row => row.compute_cycles, text: row => short(row.compute_cycles) },
    { name: "exchange", label: "exchange", width: "66px", num: true, value: row => row.exchange_cycles, text: row => short(row.exchange_cycles) },
    { name: "received", label: "received", width: "74px", num: true, value: row => row.exchange_bytes, text: row => bytes(row.exchange_bytes), tip: "bytes that all tiles receive for it" },
    { name: "utilisation", label: "utilisation", width: "78px", num: true, value: row => row.utilisation, text: row => percent(row.utilisation), share: row => row.utilisation || 0 },
    { name: "weights", label: "weights", width: "76px", num: true, value: row => row.resident_bytes, text: row => bytes(row.resident_bytes), tip: "bytes of weights and constants on all tiles" },
    { name: "peak", label: "at the peak", width: "82px", num: true, value: row => row.peak_bytes, text: row => bytes(row.peak_bytes), tip: "its bytes on the fullest tile in that tile's worst superstep" },
    { name: "limited", label: "limited by", width: "minmax(120px, 1.2fr)", value: row => row.limited_by },
    { name: "split", label: "plan", width: "minmax(120px, 1.4fr)", code: true, value: row => row.split },
    { name: "runner", label: "runner-up", width: "96px", num: true, value: row => row.runner_up_slower, text: row => row.runner_up_slower === null ? "–" : slower(row.runner_up_slower).replace(" alone", "") },
    { name: "line", label: "line", width: "110px", value: row => row.line },
  ];
  const text = op => `${op.name} ${op.kind} ${op.phase} ${op.line} ${op.split} ${op.limited_by} ${op.nodes.map(n => n.node).join(" ")}`.toLowerCase();
  const table = grid(host, columns, {
    label: "Operations", className: "fill", least: 1480, nothing: "no operation has all these words",
    isOn: row => !row.group && row.operation === place.op,
    rows: compare => {
      const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
      const kept = OPS.filter(op => words.every(word => text(op).includes(word)));
      total.textContent = `${count(kept.length, "operation")}, ${share(sum(kept, op => op.cycles))} of the cycles`;
      if (!byLayer) return compare ? kept.toSorted(compare) : kept;
      const heads = [...Map.groupBy(kept, op => op.layer)].map(([layer, ops]) => groupOf(layer, ops));
      if (compare) heads.sort(compare);
      return heads.flatMap(head => openLayers.has(head.layer) ? [head, ...(compare ? head.ops.toSorted(compare) : head.ops)] : [head]);
    },
    pick: row => {
      if (!row.group) { go({ op: row.operation }); return; }
      openLayers.has(row.layer) ? openLayers.delete(row.layer) : openLayers.add(row.layer);
      table.arrange();
    },
  });
  table.node.style.flex = "1"; table.node.style.minHeight = "300px";
  const tabs = [["one by one", false], ["by layer", true]].map(([name, on]) => {
    const node = make("button", { type: "button", textContent: name });
    node.addEventListener("click", () => { byLayer = on; mark(); table.arrange(); });
    groups.append(node);
    return [node, on];
  });
  const mark = () => tabs.forEach(([node, on]) => node.setAttribute("aria-selected", String(on === byLayer)));
  mark();
  filter.addEventListener("input", () => { wanted = filter.value; table.arrange(); });
  VIEWS.find(each => each.name === "operations").update = () => table.arrange();
});
function groupOf(layer, ops) {
  const head = { group: true, layer, ops, size: ops.length, name: layer, kind: "", phase: "", limited_by: "", split: "", line: "", runner_up_slower: null };
  for (const name of ["cycles", "compute_cycles", "exchange_cycles", "exchange_bytes", "resident_bytes", "peak_bytes"]) head[name] = sum(ops, op => op[name]);
  const known = ops.filter(op => op.utilisation !== null && op.peak === "MACs");
  head.utilisation = known.length ? sum(known, op => op.utilisation * op.cycles) / (sum(known, op => op.cycles) || 1) : null;
  return head;
}
