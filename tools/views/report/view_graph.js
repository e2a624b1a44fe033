/* Graph: operations as nodes, folded by layer; what flows between them as edges. */

const openGroups = new Set();
let graphFigure = "cycles", graphScale = 1;
const FIGURES = {
  cycles: ["cycles", op => op.cycles, n => share(n)],
  bytes: ["bytes at the peak", op => op.peak_bytes, n => bytes(n)],
  exchange: ["received bytes", op => op.exchange_bytes, n => bytes(n)],
};
/** The only figure of a program that was not planned. */
const SIZES = { sizes: ["weights and results", op => op.resident_bytes + op.value_bytes, n => bytes(n)] };
view("graph", "Graph", host => {
  if (!P.planned && !FIGURES.sizes) { for (const name of Object.keys(FIGURES)) delete FIGURES[name]; Object.assign(FIGURES, SIZES); graphFigure = "sizes"; }
  const G = data.graph;
  if (!G.groups.length) { host.append(make("p", { className: "note", textContent: "The program has no operations." })); return; }
  const W = 188, H = 40, GAP = 26, SIDE = 20, HEAD = 26, PAD = 14;
  const groupOfOp = [];
  G.groups.forEach((group, k) => group.operations.forEach(op => { groupOfOp[op] = k; }));
  const folds = k => G.groups[k].operations.length > 1;
  const isOpen = k => !folds(k) || openGroups.has(k);
  /** Unfold the layer of an operation. Returns whether it was folded; no, if the operation is not drawn. */
  const unfold = op => {
    const k = groupOfOp[op];
    if (k === undefined || isOpen(k)) return false;
    openGroups.add(k);
    return true;
  };
  unfold(place.op);
  const [bends, innerBends] = [G.bends, G.inner_bends].map(every => new Map(every.map(([a, b, ...at]) => [`${a} ${b}`, at])));
  const titleOf = group => group.phase && group.phase !== "forward" && !group.layer.split("/").includes(group.phase) ? `${group.layer} · ${group.phase}` : group.layer;

  const figures = make("div", { className: "tabs" }), scales = make("span", { className: "note" });
  const button = (text, title, act) => { const node = make("button", { type: "button", className: "icon", textContent: text, title }); node.setAttribute("aria-label", title); node.addEventListener("click", act); return node; };
  const low = make("span"), high = make("span"), keyBox = heatKey(low, high);
  host.append(make("div", { className: "tools" }, figures, button("unfold all", "Unfold all layers (U)", () => foldAll(false)), button("fold all", "Fold all layers (F)", () => foldAll(true)), button("−", "Smaller (−)", () => scaled(1 / 1.25)), button("+", "Larger (+)", () => scaled(1.25)), button("fit", "The whole graph (0)", () => fit()), scales, keyBox, make("span", { className: "note push", textContent: "click opens; arrows move along the edges" })));
  const tabs = Object.entries(FIGURES).map(([name, [title]]) => {
    const node = make("button", { type: "button", textContent: title });
    node.addEventListener("click", () => { graphFigure = name; draw(); });
    figures.append(node);
    return [node, name];
  });
  const box = make("div", { className: "graph fill" }), picture = svg("svg", { role: "application", "aria-label": "Graph of operations: arrows move, Enter opens" });
  box.append(picture); host.append(box);

  let nodes = [], edges = [], size = [0, 0], at = null;
  /** A node for each thing in sight: an operation, a folded layer, or the frame of an open one. */
  function arranged() {
    nodes = []; edges = [];
    const inner = G.groups.map((group, k) => {
      if (!isOpen(k) || !folds(k)) return { w: W, h: H };
      const rows = [...new Set(group.operations.map(op => G.rows[op]))].sort((a, b) => a - b);
      const xs = apart(group.operations.map(op => [G.rows[op], G.places[op], W]));
      const least = Math.min(...xs) - W / 2, most = Math.max(...xs) + W / 2;
      return { w: most - least + 2 * PAD, least: least - PAD, rows, h: HEAD + rows.length * (H + GAP) - GAP + PAD, ops: group.operations.map((op, n) => [op, xs[n] - least + PAD, HEAD + rows.indexOf(G.rows[op]) * (H + GAP)]) };
    });
    // Rows are as high as what is highest in them; nodes keep their places as far as there is room.
    const tall = [];
    G.groups.forEach((group, k) => { tall[group.row] = Math.max(tall[group.row] || 0, inner[k].h); });
    const top = []; let y = PAD;
    for (let row = 0; row < tall.length; row++) { top[row] = y; y += (tall[row] || 0) + GAP + 6; }
    const xs = apart(G.groups.map((group, k) => [group.row, group.place, inner[k].w]));
    const least = Math.min(...xs.map((x, k) => x - inner[k].w / 2)) - PAD;
    const boxes = G.groups.map((group, k) => ({ x: xs[k] - least, y: top[group.row] + (tall[group.row] - inner[k].h) / 2, w: inner[k].w, h: inner[k].h, row: group.row }));
    const shown = [];
    G.groups.forEach((group, k) => {
      const b = boxes[k];
      if (inner[k].ops) {
        nodes.push({ kind: "frame", group: k, x: b.x, y: b.y, w: b.w, h: b.h, ops: group.operations });
        for (const [op, x, down] of inner[k].ops) { shown[op] = nodes.length; nodes.push({ kind: "op", group: k, x: b.x - b.w / 2 + x, y: b.y + down, w: W, h: H, ops: [op] }); }
      } else {
        for (const op of group.operations) shown[op] = nodes.length;
        nodes.push({ kind: folds(k) ? "group" : "op", group: k, x: b.x, y: b.y, w: W, h: H, ops: group.operations });
      }
    });
    const found = new Map();
    for (const [a, b, n] of G.edges) {
      const key = `${shown[a]} ${shown[b]}`;
      if (shown[a] === shown[b]) continue;
      found.has(key) ? found.get(key).bytes += n : found.set(key, { from: shown[a], to: shown[b], bytes: n });
    }
    edges = [...found.values()];
    const middle = place => place * (W + SIDE) - least;
    const passes = (row, other, bends, key) => Math.abs(row - other) > 1 && !bends.has(key);
    for (const edge of edges) {
      const a = nodes[edge.from], b = nodes[edge.to], from = boxes[a.group], to = boxes[b.group];
      const inside = a.group === b.group, down = a.y + a.h <= b.y, up = b.y + b.h <= a.y;
      edge.side = !down && !up;
      // What goes to another phase, or straight through many rows, is faint: it would cover the rest.
      edge.far = inside ? passes(G.rows[a.ops[0]], G.rows[b.ops[0]], innerBends, `${a.ops[0]} ${b.ops[0]}`)
        : G.groups[a.group].phase !== G.groups[b.group].phase || passes(from.row, to.row, bends, `${a.group} ${b.group}`);
      const points = [[a.x, up ? a.y : a.y + a.h]];
      if (edge.side) { const right = b.x > a.x; edge.points = [[a.x + (right ? W : -W) / 2, a.y + H / 2], [b.x + (right ? -W : W) / 2, b.y + H / 2]]; continue; }
      if (!inside) {
        if (a.y !== from.y || a.h !== from.h) points.push([a.x, up ? from.y : from.y + from.h]);
        const step = to.row > from.row ? 1 : -1;
        (bends.get(`${a.group} ${b.group}`) || []).forEach((place, k) => {
          const row = from.row + step * (k + 1), x = clear(middle(place), row, boxes);
          points.push([x, step > 0 ? top[row] : top[row] + tall[row]], [x, step > 0 ? top[row] + tall[row] : top[row]]);
        });
        if (b.y !== to.y || b.h !== to.h) points.push([b.x, up ? to.y + to.h : to.y]);
      }
      if (inside) {
        const own = inner[a.group], step = down ? 1 : -1, left = from.x - from.w / 2 - own.least;
        (innerBends.get(`${a.ops[0]} ${b.ops[0]}`) || []).forEach((place, k) => {
          const high = from.y + HEAD + (own.rows.indexOf(G.rows[a.ops[0]]) + step * (k + 1)) * (H + GAP), x = left + place * (W + SIDE);
          points.push([x, down ? high : high + H], [x, down ? high + H : high]);
        });
      }
      points.push([b.x, up ? b.y + b.h : b.y]);
      edge.points = points;
    }
    size = [highest(edges, edge => highest(edge.points, point => point[0]), highest(nodes, n => n.x + n.w / 2)) + PAD, y];
  }
  /** Middles of boxes, given as [row, place, width], that do not overlap in their rows. */
  function apart(items) {
    const out = items.map(([, place]) => place * (W + SIDE));
    for (const own of Map.groupBy(items.keys(), k => items[k][0]).values()) {
      own.sort((a, b) => items[a][1] - items[b][1]);
      let offset = 0;
      const offsets = own.map((k, n) => (offset += n ? (items[own[n - 1]][2] + items[k][2]) / 2 + SIDE : 0));
      const free = own.map((k, n) => out[k] - offsets[n]), right = free.slice(), left = free.slice();
      for (let n = 1; n < own.length; n++) right[n] = Math.max(right[n], right[n - 1]);
      for (let n = own.length - 2; n >= 0; n--) left[n] = Math.min(left[n], left[n + 1]);
      own.forEach((k, n) => { out[k] = (right[n] + left[n]) / 2 + offsets[n]; });
    }
    return out;
  }
  /** A place for an edge in a row, beside the boxes there. */
  function clear(x, row, boxes) {
    for (const b of boxes) if (b.row === row && Math.abs(x - b.x) < b.w / 2 + 8) return x < b.x ? b.x - b.w / 2 - 10 : b.x + b.w / 2 + 10;
    return x;
  }
  const path = edge => {
    const [first, ...rest] = edge.points;
    let d = `M${first[0]} ${first[1]}`, [x, y] = first;
    for (const [u, v] of rest) {
      const mid = (y + v) / 2, across = (x + u) / 2;
      d += u === x || v === y ? `L${u} ${v}` : edge.side ? `C${across} ${y} ${across} ${v} ${u} ${v}` : `C${x} ${mid} ${u} ${mid} ${u} ${v}`;
      [x, y] = [u, v];
    }
    return d;
  };
  const isChosen = node => node.ops.includes(place.op) && node.kind !== "frame";
  const nameOf = node => node.kind === "op" ? OPS[node.ops[0]].name : titleOf(G.groups[node.group]);
  const keyOf = node => `${node.kind} ${node.kind === "op" ? node.ops[0] : node.group}`;

  function draw(focus = false) {
    const [, of, text] = FIGURES[graphFigure];
    const was = at, held = focus || box.contains(document.activeElement);
    arranged();
    for (const [node, name] of tabs) node.setAttribute("aria-selected", String(name === graphFigure));
    const value = node => sum(node.ops, op => of(OPS[op]));
    const most = highest(nodes.filter(node => node.kind !== "frame"), value, 1);
    low.textContent = "0"; high.textContent = text(most);
    const thick = edges.reduce((a, edge) => Math.max(a, edge.bytes), 1);
    const marker = svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" });
    marker.append(svg("path", { d: "M0 0L8 4L0 8z", class: "tip" }));
    const defs = svg("defs"); defs.append(marker);
    const frames = svg("g"), lines = svg("g"), boxes = svg("g");
    for (const edge of edges) {
      const line = svg("path", { d: path(edge), class: `edge${edge.far ? " far" : ""}`, "stroke-width": (1 + 3 * Math.sqrt(edge.bytes / thick)).toFixed(1), ...(edge.far ? {} : { "marker-end": "url(#arrow)" }) });
      line.addEventListener("mousemove", event => showTip(event.clientX, event.clientY, [`${bytes(edge.bytes)} on all tiles`, `${nameOf(nodes[edge.from])} → ${nameOf(nodes[edge.to])}`]));
      line.addEventListener("mouseleave", hideTip);
      edge.line = line; lines.append(line);
    }
    nodes.forEach(node => {
      const part = value(node) / most, x = node.x - node.w / 2;
      const it = svg("g", { class: `node ${node.kind}`, transform: `translate(${x} ${node.y})`, tabindex: -1, role: "button" });
      const name = nameOf(node), cost = text(value(node)), op = OPS[node.ops[0]];
      it.setAttribute("aria-label", node.kind === "op" ? `${name}, ${cost}` : `${node.kind === "group" ? "unfold" : "fold"} ${name}, ${count(node.ops.length, "operation")}, ${cost}`);
      if (node.kind !== "op") it.setAttribute("aria-expanded", String(node.kind === "frame"));
      if (node.kind === "group") it.append(svg("rect", { x: 4, y: 4, width: node.w, height: node.h, rx: 7, class: "under" }));
      const rect = svg("rect", { width: node.w, height: node.h, rx: 7, class: "box" });
      if (node.kind !== "frame") rect.style.fill = heat(part * .9 + .02);
      it.append(rect);
      const light = node.kind !== "frame" && (isDark() ? part < .62 : part > .42);
      const colour = node.kind === "frame" ? "var(--soft)" : light ? "#fff" : "#1d1b18";
      const first = svg("text", { x: 10, y: 16, class: "name" }), second = svg("text", { x: 10, y: 31 });
      first.textContent = fitted(node.kind === "op" ? name : `${node.kind === "frame" ? "▾" : "▸"} ${name}`, node.w - 20);
      second.textContent = node.kind === "frame" ? "" : fitted(`${cost}  ·  ${node.kind === "op" ? op.kind.replace(/^nn\./, "") : count(node.ops.length, "operation")}`, node.w - 20);
      for (const each of [first, second]) each.style.fill = colour;
      it.append(first, second);
      it.addEventListener("click", event => { event.stopPropagation(); at = node; act(node); });
      it.addEventListener("mousemove", event => { event.stopPropagation(); showTip(event.clientX, event.clientY, [name, ...(node.kind === "op" ? [op.nodes, op.limited_by && `limited by ${op.limited_by}`] : [count(node.ops.length, "operation")]), `${digits(sum(node.ops, k => OPS[k].cycles))} cycles, ${share(sum(node.ops, k => OPS[k].cycles))} of the run`]); });
      it.addEventListener("mouseenter", () => lit(node)); it.addEventListener("mouseleave", () => { hideTip(); lit(null); });
      it.addEventListener("focus", () => { at = node; stop(); lit(node); });
      it.addEventListener("blur", () => lit(null));
      node.it = it; (node.kind === "frame" ? frames : boxes).append(it);
    });
    picture.replaceChildren(defs, frames, lines, boxes);
    picture.setAttribute("viewBox", `0 0 ${size[0]} ${size[1]}`);
    sized();
    at = (was && nodes.find(node => keyOf(node) === keyOf(was))) || (was && nodes.find(node => node.group === was.group)) || nodes.find(isChosen) || nodes[0];
    stop(); chosen();
    if (held) at.it.focus({ preventScroll: !focus });
  }
  // Letters are measured once, so that a long name ends before its box does.
  const pen = make("canvas").getContext("2d"); pen.font = "600 11.5px system-ui, sans-serif";
  function fitted(text, room) {
    if (pen.measureText(text).width <= room) return text;
    let end = text.length;
    while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > room) end--;
    return `${text.slice(0, end)}…`;
  }
  const stop = () => nodes.forEach(node => node.it.setAttribute("tabindex", node === at ? 0 : -1));
  const lit = node => {
    const own = node && (node.kind === "frame" ? null : nodes.indexOf(node));
    picture.classList.toggle("lit", own !== null && own !== undefined);
    for (const edge of edges) edge.line.classList.toggle("on", edge.from === own || edge.to === own || isChosen(nodes[edge.from]) || isChosen(nodes[edge.to]));
  };
  const chosen = () => { nodes.forEach(node => node.it.classList.toggle("on", isChosen(node))); lit(null); };
  function act(node) {
    hideTip();
    if (node.kind === "op") { go({ op: node.ops[0] }); return; }
    openGroups.has(node.group) ? openGroups.delete(node.group) : openGroups.add(node.group);
    const before = node.it.getBoundingClientRect();
    draw(true);
    // What was clicked stays where it is.
    const now = at.it.getBoundingClientRect();
    box.scrollTop += now.top - before.top; box.scrollLeft += now.left - before.left;
  }
  function foldAll(folded) { openGroups.clear(); if (!folded) G.groups.forEach((_, k) => { if (folds(k)) openGroups.add(k); }); draw(); }
  function sized() { picture.setAttribute("width", size[0] * graphScale); picture.setAttribute("height", size[1] * graphScale); scales.textContent = percent(graphScale, 0); }
  function scaled(by) {
    const middle = [(box.scrollLeft + box.clientWidth / 2) / graphScale, (box.scrollTop + box.clientHeight / 2) / graphScale];
    graphScale = Math.max(.15, Math.min(2.5, graphScale * by)); sized();
    box.scrollLeft = middle[0] * graphScale - box.clientWidth / 2; box.scrollTop = middle[1] * graphScale - box.clientHeight / 2;
  }
  function fit() { graphScale = Math.max(.15, Math.min(1.2, (box.clientWidth - 4) / size[0], (box.clientHeight - 4) / size[1])); sized(); }
  box.addEventListener("wheel", event => { if (event.ctrlKey) { event.preventDefault(); scaled(event.deltaY < 0 ? 1.1 : 1 / 1.1); } }, { passive: false });
  box.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !at) return;
    const own = nodes.indexOf(at), middle = node => [node.x, node.y + (node.kind === "frame" ? 0 : node.h / 2)];
    const [x, y] = middle(at);
    const next = name => {
      const joined = edges.flatMap(edge => edge.from === own ? [edge.to] : edge.to === own ? [edge.from] : []);
      const toward = (list, strict) => list.map(k => nodes[k]).filter(node => node !== at).map(node => { const [u, v] = middle(node); return [node, u - x, v - y]; })
        .filter(([, dx, dy]) => ({ ArrowDown: dy > 8, ArrowUp: dy < -8, ArrowLeft: dx < -8 && (!strict || Math.abs(dx) > Math.abs(dy)), ArrowRight: dx > 8 && (!strict || Math.abs(dx) > Math.abs(dy)) })[name])
        .sort((a, b) => Math.hypot(a[1], a[2]) - Math.hypot(b[1], b[2]))[0]?.[0];
      return (name === "ArrowDown" || name === "ArrowUp" ? toward(joined, false) : null) || toward(nodes.keys().toArray(), true);
    };
    const acts = { Enter: () => act(at), " ": () => act(at), "+": () => scaled(1.25), "=": () => scaled(1.25), "-": () => scaled(1 / 1.25), 0: () => fit(), u: () => foldAll(false), f: () => foldAll(true) };
    if (event.key.startsWith("Arrow")) { const to = next(event.key); if (to) { at = to; stop(); to.it.focus(); to.it.scrollIntoView({ block: "nearest", inline: "nearest" }); } }
    else if (acts[event.key]) acts[event.key]();
    else return;
    event.preventDefault(); event.stopPropagation();
  });
  const again = () => { if (picture.isConnected) draw(); else themed.delete(again); };
  themed.add(again);
  draw();
  // A graph that is wider than the window begins as wide as the window.
  queueMicrotask(() => {
    graphScale = Math.max(.45, Math.min(1, (box.clientWidth - 4) / size[0])); sized();
    (nodes.find(isChosen) || nodes[0]).it.scrollIntoView({ block: "center", inline: "center" });
  });
  VIEWS.find(each => each.name === "graph").update = () => {
    if (unfold(place.op)) { draw(); nodes.find(isChosen)?.it.scrollIntoView({ block: "center" }); } else chosen();
  };
});
