/* Program: the control program as a flame graph, and what a node costs. */

let root = 0;
view("program", "Program", host => {
  const N = rowsOf(T.tree), within = N.map(() => []);
  N.forEach((node, k) => { if (node.parent >= 0) within[node.parent].push(k); });
  if (!N.length) { host.append(make("p", { className: "note", textContent: "The program is empty." })); return; }
  if (root >= N.length) root = 0;
  const colour = node => ({ part: layerHue(opOf(node.operation)), superstep: layerHue(opOf(node.operation)), repeat: css("--c3"), while: css("--c3"), if: css("--c6"), call: css("--c9"), function: css("--c2") })[node.kind] || css("--faint");
  const title = node => node.kind === "superstep" ? STEPS[node.superstep].label : node.kind === "part" ? node.name : `${node.kind} ${node.name}`;
  const panel = make("section", { className: "panel" }), path = make("div", { className: "tools" });
  panel.append(make("h2", {}, "Control program", make("small", {}, "as wide as its ", term("inclusive"), " cycles; click goes in, Esc or ↑ goes out")), path);
  host.append(panel);
  let boxes = [], chosen = N.findIndex(node => node.kind === "superstep" && node.superstep === place.step && place.step >= 0);
  if (chosen < 0) chosen = root;
  const depth = k => 1 + Math.max(0, ...within[k].map(depth));
  const levels = () => Math.min(depth(root) + (root ? 1 : 0), 12);
  const high = depth(0) > 5 ? 24 : 34;
  const chart = canvas(panel, () => levels() * high + 4, (pen, width) => {
    boxes = [];
    const add = (k, x, wide, row) => {
      if (wide < .4) return;
      const node = N[k];
      boxes.push([k, x, wide, row]);
      pen.fillStyle = colour(node); pen.globalAlpha = place.op >= 0 && node.operation !== place.op && node.kind !== "function" ? .35 : node.kind === "part" ? .65 : .9;
      pen.fillRect(x, row * high, Math.max(wide - (wide > 3 ? 1 : 0), .5), high - 2); pen.globalAlpha = 1;
      if (k === chosen) { pen.strokeStyle = css("--ink"); pen.lineWidth = 2; pen.strokeRect(x + 1, row * high + 1, Math.max(wide - 3, 1), high - 4); pen.lineWidth = 1; }
      pen.fillStyle = node.kind === "function" ? css("--ink") : "#fff";
      clipped(pen, title(node), x + 5, row * high + high / 2 - 1, wide - 10);
      let at = x;
      const total = node.inclusive_cycles || 1;
      for (const inner of within[k]) { const own = N[inner].inclusive_cycles / total * wide; add(inner, at, own, row + 1); at += own; }
    };
    let row = 0;
    if (root) { pen.fillStyle = css("--idle"); pen.fillRect(0, 0, width, high - 2); pen.fillStyle = css("--soft"); clipped(pen, `out to ${title(N[N[root].parent])}`, 6, high / 2 - 1, width - 12); boxes.push([N[root].parent, 0, width, 0]); row = 1; }
    add(root, 0, width, row);
  }, {
    label: "flame graph",
    tip: (x, y) => { const found = hit(x, y); if (found < 0) return null; const node = N[found]; return [title(node), `${digits(node.inclusive_cycles)} cycles, ${share(node.inclusive_cycles)} of the run; ${digits(node.exclusive_cycles)} of its own`, node.times > 1 ? `${digits(node.times)} executions` : "", node.operation >= 0 ? opName(node.operation) : ""]; },
    pick: (x, y) => { const found = hit(x, y); if (found >= 0) enter(found); },
    key: name => {
      const node = N[chosen], beside = node.parent >= 0 ? within[node.parent] : [chosen], k = beside.indexOf(chosen);
      const to = { ArrowUp: node.parent, ArrowDown: within[chosen][0], ArrowLeft: beside[k - 1], ArrowRight: beside[k + 1] }[name];
      if (name === "Enter") { enter(chosen); return true; }
      if (to === undefined || to < 0) return name.startsWith("Arrow");
      chosen = to; if (name === "ArrowUp" && !inside(to)) root = to; details(); chart.redraw(); return true;
    },
  });
  const inside = k => { for (let at = k; at >= 0; at = N[at].parent) if (at === root) return true; return false; };
  const hit = (x, y) => boxes.find(([, a, wide, row]) => x >= a && x < a + wide && Math.floor(y / high) === row)?.[0] ?? -1;
  function enter(k) { chosen = k; if (within[k].length || !inside(k)) root = k; if (N[k].operation >= 0 && N[k].kind === "part") go({ op: N[k].operation }); details(); crumbs(); chart.redraw(); }
  function crumbs() {
    const way = []; for (let k = root; k >= 0; k = N[k].parent) way.unshift(k);
    path.replaceChildren(...way.flatMap((k, n) => [n ? "›" : "", linkish(title(N[k]), () => enter(k))]));
  }
  const box = make("div", { className: "columns fill" }), about = make("section", { className: "panel w4" }), list = make("section", { className: "panel w8" });
  host.append(box); box.append(about, list);
  function details() {
    const node = N[chosen];
    about.replaceChildren(make("h2", { textContent: title(node) }), pairs([["kind", node.kind], ["executions", digits(node.times)], ["inclusive", `${digits(node.inclusive_cycles)} (${share(node.inclusive_cycles)})`], ["exclusive", digits(node.exclusive_cycles)], ["inside", count(within[chosen].length, "node")],
      ["operation", node.operation < 0 ? "" : linkish(opName(node.operation), () => go({ op: node.operation }))], ["superstep", node.superstep < 0 ? "" : linkish(STEPS[node.superstep].label, () => go({ view: "execution", step: node.superstep }))]]));
    list.replaceChildren(make("h2", { textContent: "What is inside, in order" }));
    const rows = within[chosen].map(k => N[k]), most = highest(rows, each => each.inclusive_cycles, 1);
    const table = grid(list, [
      { name: "name", label: "what", width: "minmax(200px, 2fr)", value: row => title(row) },
      { name: "kind", label: "kind", width: "80px", value: row => row.kind },
      { name: "times", label: "executions", width: "78px", num: true, value: row => row.times, text: row => digits(row.times) },
      { name: "in", label: "inclusive", width: "100px", num: true, value: row => row.inclusive_cycles, text: row => digits(row.inclusive_cycles), share: row => row.inclusive_cycles / most },
      { name: "ex", label: "exclusive", width: "84px", num: true, value: row => row.exclusive_cycles, text: row => digits(row.exclusive_cycles) },
      { name: "share", label: "share", width: "60px", num: true, value: row => row.inclusive_cycles, text: row => share(row.inclusive_cycles) },
    ], { label: "Inside", least: 640, nothing: "nothing is inside", rows: compare => compare ? rows.toSorted(compare) : rows, pick: row => { enter(row.node); } });
    table.node.style.minHeight = "220px"; table.node.style.flex = "1";
  }
  details(); crumbs();
  VIEWS.find(each => each.name === "program").update = () => chart.redraw();
});
