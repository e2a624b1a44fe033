/* Graph: operations as nodes, in folders by module; what flows between them as edges. */

const openFolders = new Set();
let graphFigure = "cycles", graphScale = 1, opened = false;
/** A folder with more than this share of all operations is open at first. */
const MOST_FOLDED = .6;
const FIGURES = {
  cycles: ["cycles", op => op.cycles, n => share(n)],
  bytes: ["bytes at the peak", op => op.peak_bytes, n => bytes(n)],
  exchange: ["received bytes", op => op.exchange_bytes, n => bytes(n)],
};
/** The only figure of a program that was not planned. */
const SIZES = { sizes: ["weights and results", op => op.resident_bytes + op.value_bytes, n => bytes(n)] };
view("graph", "Graph", host => {
  if (!P.planned && !FIGURES.sizes) { for (const name of Object.keys(FIGURES)) delete FIGURES[name]; Object.assign(FIGURES, SIZES); graphFigure = "sizes"; }
  const G = data.graph, N = OPS.length;
  if (!G.top.length) { host.append(make("p", { className: "note", textContent: "The program has no operations." })); return; }
  const W = 188, H = 54, GAP = 28, SIDE = 20, HEAD = 26, PAD = 14;
  // Operations are the numbers below N; folders follow them.
  const folder = id => G.folders[id - N], isOpen = id => openFolders.has(id), opsOf = id => id < N ? [id] : folder(id).operations;
  const around = new Map(G.folders.flatMap(({ items }, k) => items.map(id => [id, k + N])));
  /** A folder or operation, with the folders around it, the outermost first. */
  const chains = new Map();
  const chain = id => { if (!chains.has(id)) chains.set(id, [...(around.has(id) ? chain(around.get(id)) : []), id]); return chains.get(id); };
  /** Unfold the folders around an operation. Returns whether one was folded; no, if the operation is not drawn. */
  const unfold = op => {
    const closed = chain(op).slice(0, -1).filter(id => !isOpen(id));
    for (const id of closed) openFolders.add(id);
    return closed.length > 0;
  };
  if (!opened) {
    opened = true;
    const drawn = sum(G.top, id => opsOf(id).length);
    G.folders.forEach(({ operations }, k) => { if (operations.length > MOST_FOLDED * drawn) openFolders.add(k + N); });
  }
  if (place.op >= 0) unfold(place.op);
  const bends = new Map(G.bends.map(([a, b, ...at]) => [`${a} ${b}`, at]));
  /** A name without the path of the folder around it: in "blocks.0", "blocks.0.attn" is "attn". */
  const within = (name, id) => { const outer = around.has(id) ? folder(around.get(id)).name : ""; return outer ? name.split("+").map(part => part.startsWith(outer) && /^[./]/.test(part.slice(outer.length)) ? part.slice(outer.length + 1) : part).join("+") : name; };
  const titleOf = id => { const { name, phase } = folder(id); return phase && phase !== "forward" && !name.split("/").includes(phase) ? `${name} · ${phase}` : name; };

  const figures = make("div", { className: "tabs" }), scales = make("span", { className: "note" });
  const button = (text, title, act) => { const node = make("button", { type: "button", className: "icon", textContent: text, title }); node.setAttribute("aria-label", title); node.addEventListener("click", act); return node; };
  const low = make("span"), high = make("span"), keyBox = heatKey(low, high);
  host.append(make("div", { className: "tools" }, figures, button("unfold all", "Unfold everything (U)", () => foldAll(false)), button("fold all", "Fold everything (F)", () => foldAll(true)), button("−", "Smaller (−)", () => scaled(1 / 1.25)), button("+", "Larger (+)", () => scaled(1.25)), button("fit", "The whole graph (0)", () => fit()), scales, keyBox, make("span", { className: "note push", textContent: "click opens; arrows move along the edges" })));
  const tabs = Object.entries(FIGURES).map(([name, [title]]) => {
    const node = make("button", { type: "button", textContent: title });
    node.addEventListener("click", () => { graphFigure = name; draw(); });
    figures.append(node);
    return [node, name];
  });
  const box = make("div", { className: "graph" }), picture = svg("svg", { role: "application", "aria-label": "Graph of operations: arrows move, Enter opens" });
  const map = svg("svg", { class: "minimap", "aria-hidden": "true" }), sight = svg("rect", { class: "sight" });
  box.append(picture); host.append(make("div", { className: "around fill" }, box, map));

  let nodes = [], edges = [], size = [0, 0], at = null;
  /** The layout of neighbours: the top of the graph, or the inside of an open folder. Middles and tops are relative to its own corner. */
  function laid(items, head) {
    const inner = items.map(id => id >= N && isOpen(id) ? laid(folder(id).items, HEAD) : { w: W, h: H });
    // Rows are as high as what is highest in them; nodes keep their places as far as there is room.
    const tall = [];
    items.forEach((id, k) => { const row = G.rows[id]; tall[row] = Math.max(tall[row] || 0, inner[k].h); });
    const top = []; let y = head;
    for (let row = 0; row < tall.length; row++) { top[row] = y; y += (tall[row] || 0) + GAP; }
    const xs = apart(items.map((id, k) => [G.rows[id], G.places[id], inner[k].w]));
    const least = Math.min(...xs.map((x, k) => x - inner[k].w / 2)) - PAD;
    const boxes = items.map((id, k) => ({ id, row: G.rows[id], x: xs[k] - least, y: top[G.rows[id]] + (tall[G.rows[id]] - inner[k].h) / 2, w: inner[k].w, h: inner[k].h, inner: inner[k] }));
    return { w: Math.max(W, highest(boxes, b => b.x + b.w / 2) + PAD), h: y - GAP + PAD, boxes, top, tall, least };
  }
  /** A node for each thing in sight: an operation, a folder, or the frame of an open one. */
  function arranged() {
    nodes = []; edges = [];
    const shown = new Map(), placed = new Map(), layouts = new Map(), root = laid(G.top, PAD);
    (function put(layout, x, y, own) {
      layouts.set(own, { ...layout, x, y });
      for (const b of layout.boxes) {
        const { id, w, h, row } = b, node = { id, row, x: x + b.x, y: y + b.y, w, h, ops: opsOf(id), kind: id < N ? "op" : b.inner.boxes ? "frame" : "group" };
        placed.set(id, node); nodes.push(node);
        if (node.kind === "frame") put(b.inner, node.x - w / 2, node.y, id);
        else for (const op of node.ops) shown.set(op, node);
      }
    })(root, 0, 0, -1);
    const found = new Map();
    for (const [a, b, n, shape] of G.edges) {
      const from = shown.get(a), to = shown.get(b), key = `${from.id} ${to.id}`;
      if (from === to) continue;
      const known = found.get(key);
      if (!known) found.set(key, { from, to, bytes: n, shape, most: n });
      else { known.bytes += n; if (n > known.most) Object.assign(known, { shape, most: n }); }
    }
    edges = [...found.values()];
    for (const edge of edges) {
      const { from: a, to: b } = edge, left = chain(a.id), right = chain(b.id), k = left.findIndex((id, n) => id !== right[n]);
      const from = placed.get(left[k]), to = placed.get(right[k]), layout = layouts.get(k ? left[k - 1] : -1);
      const key = `${from.id} ${to.id}`, down = a.y + a.h <= b.y, up = b.y + b.h <= a.y;
      edge.side = !down && !up;
      // What goes to another phase, or straight through many rows, is faint: it would cover the rest.
      edge.far = OPS[a.ops[0]].phase !== OPS[b.ops[0]].phase || Math.abs(from.row - to.row) > 1 && !bends.has(key);
      if (edge.side) { const right = b.x > a.x; edge.points = [[a.x + (right ? a.w : -a.w) / 2, a.y + a.h / 2], [b.x + (right ? -b.w : b.w) / 2, b.y + b.h / 2]]; continue; }
      const points = [[a.x, up ? a.y : a.y + a.h]];
      if (a !== from) points.push([a.x, up ? from.y : from.y + from.h]);
      const step = to.row > from.row ? 1 : -1;
      (bends.get(key) || []).forEach((at, n) => {
        const row = from.row + step * (n + 1), x = layout.x + clear(at * (W + SIDE) - layout.least, row, layout.boxes), high = layout.y + layout.top[row], tall = layout.tall[row] || 0;
        points.push([x, step > 0 ? high : high + tall], [x, step > 0 ? high + tall : high]);
      });
      if (b !== to) points.push([b.x, up ? to.y + to.h : to.y]);
      points.push([b.x, up ? b.y + b.h : b.y]);
      edge.points = points;
    }
    size = [highest(edges, edge => highest(edge.points, point => point[0]), root.w - PAD) + PAD, root.h];
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
  const nameOf = node => node.kind === "op" ? OPS[node.id].name : titleOf(node.id);

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
      line.addEventListener("mousemove", event => showTip(event.clientX, event.clientY, [edge.shape, `${bytes(edge.bytes)} on all tiles`, `${nameOf(edge.from)} → ${nameOf(edge.to)}`]));
      line.addEventListener("mouseleave", hideTip);
      edge.line = line; lines.append(line);
    }
    // The shape is said once where edges begin, if all that begin there have it.
    for (const [from, own] of Map.groupBy(edges.filter(edge => !edge.side && !edge.far && edge.points[1][1] > edge.points[0][1]), edge => edge.from)) {
      if (own.some(edge => edge.shape !== own[0].shape)) continue;
      const label = svg("text", { x: from.x + 5, y: from.y + from.h + 11, class: "shape" }, own[0].shape);
      lines.append(label);
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
      const first = svg("text", { x: 10, y: 16, class: "name" }), second = svg("text", { x: 10, y: 31 }), third = svg("text", { x: 10, y: 45 });
      const short = within(name, node.id);
      first.textContent = fitted(node.kind === "op" ? short : `${node.kind === "frame" ? "▾" : "▸"} ${short}`, node.w - 20);
      second.textContent = node.kind === "frame" ? "" : fitted(`${cost}  ·  ${node.kind === "op" ? op.kind.replace(/^nn\./, "") : count(node.ops.length, "operation")}`, node.w - 20);
      third.textContent = node.kind === "op" ? fitted([op.shape, op.attributes].filter(Boolean).join("  ·  "), node.w - 20) : "";
      for (const each of [first, second, third]) each.style.fill = colour;
      it.append(first, second, third);
      it.addEventListener("click", event => { event.stopPropagation(); at = node; act(node); });
      it.addEventListener("mousemove", event => { event.stopPropagation(); showTip(event.clientX, event.clientY, [name, ...(node.kind === "op" ? [op.nodes.length > 1 && op.nodes_.join(" + "), placeOf(op), op.shape, op.attributes, op.limited_by && `limited by ${op.limited_by}`].filter(Boolean) : [count(node.ops.length, "operation")]), `${digits(sum(node.ops, k => OPS[k].cycles))} cycles, ${share(sum(node.ops, k => OPS[k].cycles))} of the run`]); });
      it.addEventListener("mouseenter", () => lit(node)); it.addEventListener("mouseleave", () => { hideTip(); lit(null); });
      it.addEventListener("focus", () => { at = node; stop(); lit(node); });
      it.addEventListener("blur", () => lit(null));
      node.it = it; (node.kind === "frame" ? frames : boxes).append(it);
    });
    picture.replaceChildren(defs, frames, lines, boxes);
    picture.setAttribute("viewBox", `0 0 ${size[0]} ${size[1]}`);
    sized();
    at = (was && (nodes.find(node => node.id === was.id) || nodes.find(node => chain(was.id).includes(node.id)))) || nodes.find(isChosen) || nodes[0];
    mapped();
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
    const own = node && node.kind !== "frame" ? node : null;
    picture.classList.toggle("lit", own !== null);
    for (const edge of edges) edge.line.classList.toggle("on", edge.from === own || edge.to === own || isChosen(edge.from) || isChosen(edge.to));
  };
  const chosen = () => { nodes.forEach(node => node.it.classList.toggle("on", isChosen(node))); lit(null); };
  function act(node) {
    hideTip();
    if (node.kind === "op") { go({ op: node.id }); return; }
    isOpen(node.id) ? openFolders.delete(node.id) : openFolders.add(node.id);
    const before = node.it.getBoundingClientRect();
    draw(true);
    // What was clicked stays where it is.
    const now = at.it.getBoundingClientRect();
    box.scrollTop += now.top - before.top; box.scrollLeft += now.left - before.left;
  }
  function foldAll(folded) { openFolders.clear(); if (!folded) G.folders.forEach((_, k) => openFolders.add(k + N)); draw(); }
  function sized() { picture.setAttribute("width", size[0] * graphScale); picture.setAttribute("height", size[1] * graphScale); scales.textContent = percent(graphScale, 0); sighted(); }
  function scaled(by) {
    const middle = [(box.scrollLeft + box.clientWidth / 2) / graphScale, (box.scrollTop + box.clientHeight / 2) / graphScale];
    graphScale = Math.max(.1, Math.min(2.5, graphScale * by)); sized();
    box.scrollLeft = middle[0] * graphScale - box.clientWidth / 2; box.scrollTop = middle[1] * graphScale - box.clientHeight / 2;
  }
  const room = axis => ((axis ? box.clientHeight : box.clientWidth) - 4) / size[axis];
  function fit(least = .1) { graphScale = Math.max(least, Math.min(1.2, room(0), room(1))); sized(); }
  // The map: everything in little, and what is in sight.
  const MAP = 150;
  let mapScale = 1;
  function mapped() {
    mapScale = Math.min(MAP / size[0], MAP / size[1]);
    map.setAttribute("viewBox", `0 0 ${size[0]} ${size[1]}`);
    map.setAttribute("width", Math.max(size[0] * mapScale, 8)); map.setAttribute("height", Math.max(size[1] * mapScale, 8));
    const path = kinds => nodes.filter(node => kinds.includes(node.kind)).map(({ x, y, w, h }) => `M${x - w / 2} ${y}h${w}v${h}h${-w}z`).join("");
    map.replaceChildren(svg("path", { d: path(["frame"]), class: "frames" }), svg("path", { d: path(["op", "group"]), class: "all" }), sight);
    sighted();
  }
  function sighted() {
    const [p, b] = [picture, box].map(each => each.getBoundingClientRect());
    const x = Math.max(0, (b.left - p.left) / graphScale), y = Math.max(0, (b.top - p.top) / graphScale);
    const w = Math.min(size[0] - x, box.clientWidth / graphScale), h = Math.min(size[1] - y, box.clientHeight / graphScale);
    for (const [name, value] of Object.entries({ x, y, width: Math.max(w, 0), height: Math.max(h, 0), "stroke-width": 2 / mapScale })) sight.setAttribute(name, value);
  }
  function lookAt(event) {
    const m = map.getBoundingClientRect();
    box.scrollLeft = (event.clientX - m.left) / mapScale * graphScale - box.clientWidth / 2; box.scrollTop = (event.clientY - m.top) / mapScale * graphScale - box.clientHeight / 2;
  }
  map.addEventListener("pointerdown", event => { map.setPointerCapture(event.pointerId); lookAt(event); });
  map.addEventListener("pointermove", event => { if (event.buttons) lookAt(event); });
  box.addEventListener("scroll", sighted);
  new ResizeObserver(sighted).observe(box);
  box.addEventListener("wheel", event => { if (event.ctrlKey) { event.preventDefault(); scaled(event.deltaY < 0 ? 1.1 : 1 / 1.1); } }, { passive: false });
  box.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !at) return;
    const middle = node => [node.x, node.y + (node.kind === "frame" ? 0 : node.h / 2)];
    const [x, y] = middle(at);
    const next = name => {
      const joined = edges.flatMap(edge => edge.from === at ? [edge.to] : edge.to === at ? [edge.from] : []);
      const toward = (list, strict) => list.filter(node => node !== at).map(node => { const [u, v] = middle(node); return [node, u - x, v - y]; })
        .filter(([, dx, dy]) => ({ ArrowDown: dy > 8, ArrowUp: dy < -8, ArrowLeft: dx < -8 && (!strict || Math.abs(dx) > Math.abs(dy)), ArrowRight: dx > 8 && (!strict || Math.abs(dx) > Math.abs(dy)) })[name])
        .sort((a, b) => Math.hypot(a[1], a[2]) - Math.hypot(b[1], b[2]))[0]?.[0];
      return (name === "ArrowDown" || name === "ArrowUp" ? toward(joined, false) : null) || toward(nodes, true);
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
  // It begins fitted, unless nothing could be read then; then it is as wide as the window.
  queueMicrotask(() => {
    const own = nodes.find(isChosen);
    fit(Math.max(.3, Math.min(1, room(0))) > room(1) && room(1) < .3 ? Math.max(.3, Math.min(1, room(0))) : own ? .45 : .3);
    if (own || Math.min(room(0), room(1)) < graphScale) (own || nodes[0]).it.scrollIntoView({ block: own ? "center" : "nearest", inline: "center" });
    sighted();
  });
  VIEWS.find(each => each.name === "graph").update = () => {
    if (place.op >= 0 && unfold(place.op)) { draw(); nodes.find(isChosen)?.it.scrollIntoView({ block: "center" }); } else chosen();
  };
});
