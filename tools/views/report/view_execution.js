/* Execution: supersteps in time, lanes of tiles, and what each superstep does. */

let span = null, laneTiles = [];
view("execution", "Execution", host => {
  const E = T.executions, N = E.start.length, W = data.work;
  if (!N) { host.append(make("p", { className: "note", textContent: "No superstep is executed." })); return; }
  const end = E.start[N - 1] + E.cycles[N - 1];
  const at = new Map(W.tiles.map((tile, k) => [tile, k]));
  const busy = W.tiles.map((tile) => T.tiles.compute_cycles[tile]);
  const order = busy.map((_, k) => k).sort((a, b) => busy[a] - busy[b]);
  const lanes = () => {
    const found = [["slowest", order.at(-1)], ["median", order[order.length >> 1]], ["fastest", order[0]]].filter(each => each[1] !== undefined);
    for (const tile of laneTiles) if (at.has(tile)) found.push(["chosen", at.get(tile)]);
    return found;
  };
  const clamp = (a, b) => { const wide = Math.min(Math.max(b - a, 20), end); a = Math.max(0, Math.min(a, end - wide)); return [a, a + wide]; };
  if (!span || span[1] > end) span = [0, end];
  const panel = make("section", { className: "panel" }), add = make("input", { className: "field", type: "number", min: 0, max: P.tiles - 1, placeholder: "tile", id: "lane" });
  add.style.width = "84px"; add.setAttribute("aria-label", "Add the lane of a tile");
  const where = make("span", { className: "note" });
  const button = (text, title, act) => { const node = make("button", { type: "button", className: "icon", textContent: text, title }); node.addEventListener("click", act); return node; };
  panel.append(make("div", { className: "tools" }, make("h2", {}, "Supersteps in time"), key([["--sync", "sync"], ["--exchange-c", "exchange"], ["--compute", "compute"], ["--idle", "idle"]]),
    where, make("span", { className: "push" }), button("+", "Closer (+)", () => zoom(.5)), button("−", "Farther (−)", () => zoom(2)), button("all", "The whole run (0)", () => move(0, end)), make("label", {}, "lane of ", add)));
  host.append(panel);
  const left = 108, right = 8, HEAD = 22, PHASE = 44, LANE = 18, MEMORY = 40;
  const x = (v, width) => left + (v - span[0]) / (span[1] - span[0]) * (width - left - right);
  const first = v => { let low = 0, high = N - 1; while (low < high) { const mid = (low + high + 1) >> 1; if (E.start[mid] <= v) low = mid; else high = mid - 1; } return low; };
  function move(a, b) { span = clamp(a, b); chart.redraw(); }
  function zoom(by, around = (span[0] + span[1]) / 2) { move(around - (around - span[0]) * by, around + (span[1] - around) * by); }
  const chart = canvas(panel, () => HEAD + PHASE + 10 + LANE * (lanes().length + 1) + MEMORY + 34, (pen, width, tall) => {
    const mine = lanes(), from = first(span[0]), yLane = HEAD + PHASE + 10, yMemory = yLane + LANE * (mine.length + 1) + 8;
    const most = highest(STEPS, step => step.live_bytes, P.bytes_per_tile - P.reserved_bytes);
    pen.save(); pen.beginPath(); pen.rect(left, 0, width - left - right, tall); pen.clip();
    let drawn = -1;
    for (let k = from; k < N && E.start[k] < span[1]; k++) {
      const a = x(E.start[k], width), b = x(E.start[k] + E.cycles[k], width);
      if (b - drawn < .35 && k > from) continue;
      drawn = b;
      const step = STEPS[E.superstep[k]];
      if (!step) { pen.fillStyle = css("--idle"); pen.fillRect(a, 0, b - a, tall - 30); pen.fillStyle = css("--soft"); clipped(pen, `${digits(E.turns[k])} more iterations`, a + 4, 12, b - a - 8); continue; }
      const wide = Math.max(b - a, .5), op = opOf(step.operation), gap = wide > 4 ? 1 : 0;
      pen.fillStyle = layerHue(op); pen.globalAlpha = place.op >= 0 && step.operation !== place.op ? .3 : .9;
      pen.fillRect(a, 0, wide - gap, HEAD - 3); pen.globalAlpha = 1;
      if (step.superstep === place.step) { pen.strokeStyle = css("--ink"); pen.lineWidth = 2; pen.strokeRect(a + 1, 1, Math.max(wide - gap - 2, 1), HEAD + PHASE + 4); pen.lineWidth = 1; }
      pen.fillStyle = "#fff"; clipped(pen, step.label, a + 4, HEAD / 2 - 1, wide - 8);
      const unit = wide / Math.max(step.cycles, 1);
      let to = a;
      for (const [name, colour, tallness] of [["sync_cycles", "--sync", .3], ["exchange_cycles", "--exchange-c", .6], ["compute_cycles", "--compute", 1]]) {
        const own = step[name] * unit;
        pen.fillStyle = css(colour);
        if (name === "compute_cycles") { pen.globalAlpha = .3; pen.fillRect(to, HEAD + 4, own, PHASE - 6); pen.globalAlpha = 1; const h = (PHASE - 6) * step.balance; pen.fillRect(to, HEAD + PHASE - 2 - h, own, h); }
        else pen.fillRect(to, HEAD + PHASE - 2 - (PHASE - 6) * tallness, own, (PHASE - 6) * tallness);
        to += own;
      }
      const lane = (row, exchange, compute) => {
        const y = yLane + LANE * row, h = LANE - 4;
        pen.fillStyle = css("--idle"); pen.fillRect(a, y, wide, h);
        pen.fillStyle = css("--sync"); pen.fillRect(a, y, step.sync_cycles * unit, h);
        pen.fillStyle = css("--exchange-c"); pen.fillRect(a + step.sync_cycles * unit, y, exchange * unit, h);
        pen.fillStyle = css("--compute"); pen.fillRect(a + (step.sync_cycles + exchange) * unit, y, compute * unit, h);
      };
      const row = step.superstep * W.tiles.length;
      const own = at.get(step.critical_tile);
      lane(0, own === undefined ? step.exchange_cycles : W.exchange[row + own], own === undefined ? step.compute_cycles : W.compute[row + own]);
      mine.forEach(([, t], n) => lane(n + 1, W.exchange[row + t], W.compute[row + t]));
      if (step.live_bytes >= 0) { const h = step.live_bytes / most * MEMORY; pen.fillStyle = css("--c0"); pen.fillRect(a, yMemory + MEMORY - h, wide, h); }
    }
    const capacity = (P.bytes_per_tile - P.reserved_bytes) / most * MEMORY;
    pen.strokeStyle = css("--worse"); pen.setLineDash([5, 4]); pen.beginPath(); pen.moveTo(left, yMemory + MEMORY - capacity); pen.lineTo(width - right, yMemory + MEMORY - capacity); pen.stroke(); pen.setLineDash([]);
    pen.fillStyle = css("--soft"); pen.textAlign = "center";
    const tick = stepOf(span[1] - span[0], Math.max(2, width / 120));
    for (let v = Math.ceil(span[0] / tick) * tick; v <= span[1]; v += tick) { pen.fillRect(x(v, width), tall - 20, 1, 4); pen.fillText(short(v), x(v, width), tall - 8); }
    pen.restore(); pen.textAlign = "right"; pen.fillStyle = css("--soft");
    const label = (text, y) => pen.fillText(text, left - 8, y);
    label("superstep", HEAD / 2); label("phases", HEAD + PHASE / 2); label("critical tile", yLane + LANE / 2 - 2);
    mine.forEach(([name, t], n) => label(`${name} ${W.tiles[t]}`, yLane + LANE * (n + 1) + LANE / 2 - 2));
    label("fullest tile", yMemory + MEMORY / 2); label("cycles", tall - 8); pen.textAlign = "left";
    where.textContent = `${digits(Math.round(span[0]))} – ${digits(Math.round(span[1]))} of ${digits(end)} cycles (${time(span[1] - span[0])})`;
  }, {
    label: "supersteps in time",
    tip: (px, py) => { const k = atX(px); if (k < 0) return null; const step = STEPS[E.superstep[k]]; if (!step) return [`${digits(E.turns[k])} more iterations`, `${digits(E.cycles[k])} cycles`]; return [step.label, step.name, `${digits(step.cycles)} cycles: sync ${step.sync_cycles}, exchange ${digits(step.exchange_cycles)}, compute ${digits(step.compute_cycles)}`, `balance ${percent(step.balance, 0)}, critical tile ${step.critical_tile}`, step.live_bytes >= 0 ? `${bytes(step.live_bytes)} live on the fullest tile` : ""]; },
    key: name => {
      const wide = span[1] - span[0];
      const act = { ArrowLeft: () => next(-1), ArrowRight: () => next(1), "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2), "0": () => move(0, end), PageUp: () => move(span[0] - wide / 2, span[1] - wide / 2), PageDown: () => move(span[0] + wide / 2, span[1] + wide / 2) }[name];
      act?.(); return Boolean(act);
    },
  });
  const atX = px => { if (px < left || px > chart.width - right) return -1; return first(span[0] + (px - left) / (chart.width - left - right) * (span[1] - span[0])); };
  function next(by) {
    const k = Math.max(0, Math.min(N - 1, E.superstep.indexOf(place.step) + by));
    if (E.superstep[k] >= 0) { go({ step: E.superstep[k] }); see(k); }
  }
  /** Move so that an execution is in sight. */
  function see(k) {
    const wide = span[1] - span[0], a = E.start[k], b = a + E.cycles[k];
    if (a < span[0] || b > span[1]) move((a + b - wide) / 2, (a + b + wide) / 2);
  }
  let drag = null;
  chart.node.addEventListener("wheel", event => {
    event.preventDefault();
    const around = span[0] + (event.offsetX - left) / (chart.width - left - right) * (span[1] - span[0]);
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) { const by = event.deltaX / chart.width * (span[1] - span[0]); move(span[0] + by, span[1] + by); } else zoom(Math.exp(event.deltaY / 400), around);
  }, { passive: false });
  chart.node.addEventListener("pointerdown", event => { drag = { x: event.clientX, span: [...span], moved: false }; chart.node.setPointerCapture(event.pointerId); });
  chart.node.addEventListener("pointermove", event => { if (!drag || Math.abs(event.clientX - drag.x) < 4 && !drag.moved) return; drag.moved = true; const by = (drag.x - event.clientX) / (chart.width - left - right) * (drag.span[1] - drag.span[0]); move(drag.span[0] + by, drag.span[1] + by); });
  chart.node.addEventListener("pointerup", event => { const k = drag && !drag.moved ? atX(event.offsetX) : -1; drag = null; if (k >= 0 && E.superstep[k] >= 0) go({ step: E.superstep[k] }); });
  add.addEventListener("change", () => { const tile = Number(add.value); if (at.has(tile) && !laneTiles.includes(tile)) laneTiles = [...laneTiles, tile].slice(-5); add.value = ""; chart.redraw(); });
  panel.append(make("p", { className: "note", textContent: `Click a superstep; the wheel zooms, dragging moves, ← and → step. The solid part of compute is the mean tile: what is pale is waiting.${W.every > 1 ? ` One tile in ${W.every} is kept in this page; the tables have all.` : ""}` }));
  const more = make("div"); more.style.display = "contents";
  host.append(more);
  let shown = null, refresh = null;
  const pickTile = tile => { laneTiles = [...laneTiles.filter(each => each !== tile), tile].slice(-5); go({ tile }); };
  const details = () => { shown = { ...place }; more.replaceChildren(); refresh = stepDetails(more, place.step, pickTile); };
  const update = () => {
    // Another tile changes only its own list, so that the picture of tiles keeps the keyboard.
    if (shown.step === place.step && shown.op === place.op && shown.tile !== place.tile) { shown = { ...place }; refresh?.(); redrawSoon(); return; }
    canvases = canvases.filter(each => each === chart);
    details();
    chart.redraw();
  };
  VIEWS.find(each => each.name === "execution").update = update;
  details();
  if (place.step >= 0) { const k = E.superstep.indexOf(place.step); if (k >= 0) see(k); }
});

/** What one superstep does, or all together. Returns what to call when another tile is chosen. */
function stepDetails(host, number, pickTile) {
  const W = data.work, n = W.tiles.length, step = STEPS[number];
  const box = make("div", { className: "columns" });
  host.append(box);
  const facts = make("section", { className: "panel w4" }), curve = make("section", { className: "panel w4" }), traffic = make("section", { className: "panel w4" }), floor = make("section", { className: "panel w7" }), parts = make("section", { className: "panel w5" });
  let refresh = null;
  const tileShown = () => place.tile >= 0 ? place.tile : step.critical_tile;
  box.append(facts, curve, traffic);
  if (!step) {
    facts.append(make("h2", { textContent: "All supersteps" }), pairs([["supersteps", digits(P.supersteps)], ["cycles", digits(P.cycles)], ["compute", share(P.compute_cycles)], ["exchange", share(P.exchange_cycles)], ["sync", share(P.sync_cycles)]]), make("p", { className: "note", textContent: "Click a superstep to see its tiles, its traffic and its parts." }));
    const worst = STEPS.filter(each => each.times && each.compute_cycles).toSorted((a, b) => b.times * b.compute_cycles * (1 - b.balance) - a.times * a.compute_cycles * (1 - a.balance)).slice(0, 9);
    curve.append(make("h2", {}, "Where tiles wait most", make("small", {}, "by ", term("balance"))), ...worst.map(each => { const row = make("div", { className: "key" }, linkish(each.label, () => go({ step: each.superstep })), make("span", { textContent: percent(each.balance, 0) })); row.style.cssText = "display:grid;grid-template-columns:minmax(0,1fr) auto"; return row; }));
  } else {
    facts.append(make("h2", {}, step.label), make("p", { className: "note", textContent: step.name }), ...(step.line ? [make("code", { className: "source", textContent: placeOf(step) })] : []), pairs([
      ["belongs to", step.operation < 0 ? "" : linkish(opName(step.operation), () => go({ op: step.operation }))], ["executions", digits(step.times)], ["cycles each", digits(step.cycles)], ["sync", digits(step.sync_cycles)], ["exchange", digits(step.exchange_cycles)], ["compute", digits(step.compute_cycles)],
      ["balance", percent(step.balance)], ["tiles that compute", digits(step.busy_tiles)], ["critical tile", linkish(String(step.critical_tile), () => pickTile(step.critical_tile))], ["received", bytes(step.exchange_bytes)], ["live, fullest tile", step.live_bytes < 0 ? "" : bytes(step.live_bytes)]]),
      make("p", { className: "note", textContent: whyCritical(step) }));
    const row = number * n, work = Array.from({ length: n }, (_, t) => [W.exchange[row + t], W.compute[row + t], W.tiles[t]]).sort((a, b) => b[0] + b[1] - a[0] - a[1]);
    curve.append(make("h2", {}, "Balance", make("small", { textContent: "tiles, the busiest first" })));
    const most = Math.max(1, step.exchange_cycles + step.compute_cycles), left = 44;
    const chart = canvas(curve, 200, (pen, width, tall) => {
      const w = width - left, h = tall - 22;
      yAxis(pen, left, 6, w, h - 6, most, short);
      for (let c = 0; c < w; c++) {
        const [exchange, compute] = work[Math.min(n - 1, Math.floor(c / w * n))];
        pen.fillStyle = css("--compute"); pen.fillRect(left + c, h - (exchange + compute) / most * (h - 6), 1.2, compute / most * (h - 6));
        pen.fillStyle = css("--exchange-c"); pen.fillRect(left + c, h - exchange / most * (h - 6), 1.2, exchange / most * (h - 6));
      }
      pen.fillStyle = css("--soft"); pen.fillText("busiest", left, tall - 8); pen.textAlign = "right"; pen.fillText("idlest", width, tall - 8); pen.textAlign = "left";
    }, { label: "balance", tip: px => { const each = work[Math.max(0, Math.min(n - 1, Math.floor((px - left) / (chart.width - left) * n)))]; return [`tile ${each[2]}`, `exchange ${digits(each[0])}, compute ${digits(each[1])} cycles`]; }, pick: px => pickTile(work[Math.max(0, Math.min(n - 1, Math.floor((px - left) / (chart.width - left) * n)))][2]) });
    const vertices = make("section", { className: "panel" });
    box.append(floor, parts, vertices);
    refresh = () => verticesOf(vertices, step, tileShown());
    refresh();
    floor.append(make("div", { className: "tools" }, make("h2", {}, "Tiles of this superstep", make("small", { textContent: "cycles of exchange and compute" })), heatKey("0", short(most))));
    const column = new Map(W.tiles.map((tile, k) => [tile, k])), value = t => column.has(t) ? W.exchange[row + column.get(t)] + W.compute[row + column.get(t)] : 0;
    floorPlan(floor, P.tiles, value, t => [`tile ${t}`, column.has(t) ? `exchange ${digits(W.exchange[row + column.get(t)])}, compute ${digits(W.compute[row + column.get(t)])} cycles` : "not in this page"], { label: "tiles of this superstep", cell: 18, pick: pickTile, selected: tileShown });
    parts.append(make("h2", { textContent: "Its copies and compute sets" }), ...(step.parts || []).map(part => {
      const row = make("div"); row.style.cssText = "display:grid;grid-template-columns:64px minmax(0,1fr) auto;gap:2px 10px";
      row.title = placeOf(part) || "";
      row.append(make("span", { className: "note", textContent: part.kind }), linkish(part.origin || part.writes, () => part.operation >= 0 && go({ op: part.operation })), make("span", { textContent: `${digits(part.kind === "copy" ? part.exchange_cycles + part.compute_cycles : part.compute_cycles)} cycles` }), make("span"), make("span", { className: "note", textContent: part.kind === "copy" ? `${bytes(part.exchange_bytes)} to ${part.writes}` : `${part.codelet}: ${count(part.vertices, "vertex").replace("vertexs", "vertices")} on ${count(part.tiles, "tile")}` }));
      return row;
    }));
  }
  if (step) lanesOf(box, number); else timetablesOf(box);
  /* Who sends to whom */
  const X = T.exchanges, groups = Math.ceil(P.tiles / P.group_tiles), cells = new Float64Array(groups * groups);
  for (let k = 0; k < X.bytes.length; k++) if (!step || X.superstep[k] === number) cells[X.source[k] * groups + X.destination[k]] += X.bytes[k] * (step ? 1 : STEPS[X.superstep[k]].times);
  const top = cells.reduce((a, b) => Math.max(a, b), 0);
  const name = g => `${g * P.group_tiles}–${Math.min(P.tiles, (g + 1) * P.group_tiles) - 1}`;
  traffic.append(make("h2", {}, "Who sends to whom", make("small", { textContent: `groups of ${count(P.group_tiles, "tile")}; senders down, receivers across` })));
  if (!top) { traffic.append(make("p", { className: "note", textContent: "Nothing is exchanged." })); return refresh; }
  let cell = 6;
  const find = (px, py) => { const to = Math.floor(px / cell), from = Math.floor(py / cell); return to < groups && from < groups ? [from, to] : null; };
  canvas(traffic, () => Math.max(60, Math.min(groups * 12, traffic.clientWidth - 30)), (pen, width, tall) => {
    cell = Math.max(2, Math.floor(Math.min(width, tall) / groups));
    for (let a = 0; a < groups; a++) for (let b = 0; b < groups; b++) { pen.fillStyle = heat(Math.sqrt(cells[a * groups + b] / top)); pen.fillRect(b * cell, a * cell, cell - (cell > 4 ? 1 : 0), cell - (cell > 4 ? 1 : 0)); }
  }, { label: "traffic", begin: () => [cell / 2, cell / 2], step: () => [cell, cell], tip: (px, py) => { const found = find(px, py); return found && [`tiles ${name(found[0])} to ${name(found[1])}`, `${bytes(cells[found[0] * groups + found[1]])}${step ? "" : " in a run"}`]; } });
  const exact = !step || !X.superstep.some((s, k) => s === number && !X.exact[k]);
  traffic.append(heatKey("0", bytes(top)), ...(exact ? [] : [make("p", { className: "note", textContent: "A very large copy is taken to be shared evenly." })]));
  return refresh;
}
/** The vertices of a superstep on one tile: equal ones of a worker are one row. */
function verticesOf(host, step, tile) {
  const V = T.vertices, R = T.vertex_tiles, kinds = new Map(), rows = [];
  const parts = new Map((step.parts || []).filter(part => part.kind === "compute").map(part => [part.part, part]));
  for (let k = 0; k < R.part.length; k++) if (parts.has(R.part[k]) && tile >= R.first_tile[k] && tile < R.first_tile[k] + R.tiles[k]) kinds.set(R.part[k], R.kind[k]);
  for (let k = 0; k < V.part.length; k++) if (kinds.get(V.part[k]) === V.kind[k]) rows.push({ part: parts.get(V.part[k]), worker: V.worker[k], cycles: V.cycles[k], bytes: V.bytes[k], vertices: V.vertices[k] });
  const workers = new Set(rows.map(row => row.worker));
  const total = sum(rows, row => row.vertices);
  host.replaceChildren(make("h2", {}, `Tile ${digits(tile)}: ${total === 1 ? "1 vertex" : `${digits(total)} vertices`}`, make("small", { textContent: place.tile >= 0 ? "the chosen tile" : "the critical tile; click another one above" })), ...lacks("vertices"));
  host.dataset.tile = tile;
  if (!rows.length) { host.append(make("p", { className: "note", textContent: "Nothing is computed on this tile in this superstep." })); return; }
  const most = Math.max(1, ...rows.map(row => row.cycles * row.vertices));
  const table = grid(host, [
    { name: "codelet", label: "codelet", width: "minmax(140px, 1.4fr)", value: row => row.part.codelet },
    { name: "operation", label: "operation", width: "minmax(160px, 2fr)", value: row => row.part.operation < 0 ? row.part.origin : opName(row.part.operation) },
    { name: "worker", label: "worker", width: "74px", num: true, value: row => row.worker, text: row => row.worker < 0 ? "all" : String(row.worker), tip: "the worker that runs them; all: the supervisor starts the workers itself" },
    { name: "vertices", label: "vertices", width: "74px", num: true, value: row => row.vertices, text: row => digits(row.vertices), tip: "equal vertices that this worker runs" },
    { name: "cycles", label: "cycles each", width: "90px", num: true, value: row => row.cycles, text: row => digits(row.cycles), tip: "of one vertex, as if all workers ran such vertices at the same time" },
    { name: "all", label: "cycles", width: "96px", num: true, value: row => row.cycles * row.vertices, text: row => digits(row.cycles * row.vertices), share: row => row.cycles * row.vertices / most },
    { name: "bytes", label: "writes each", width: "90px", num: true, value: row => row.bytes, text: row => bytes(row.bytes), tip: "bytes that one vertex writes" },
    { name: "result", label: "writes to", width: "minmax(120px, 1.2fr)", value: row => row.part.writes },
  ], { label: `Vertices of tile ${tile}`, least: 900, rows: compare => compare ? rows.toSorted(compare) : rows, pick: row => { if (row.part.operation >= 0) go({ op: row.part.operation }); } });
  table.node.style.height = `${Math.min(rows.length, 12) * ROW + 36}px`;
  if (workers.size > 1 || !workers.has(-1)) host.append(make("p", { className: "note", textContent: `A tile has ${count(P.target.workers, "worker")}, which take turns.` }));
}
function whyCritical(step) {
  const parts = (step.parts || []).filter(part => part.charged_compute > 0).toSorted((a, b) => b.charged_compute - a.charged_compute);
  const phases = [["compute", step.compute_cycles], ["exchange", step.exchange_cycles], ["sync", step.sync_cycles]].sort((a, b) => b[1] - a[1]);
  const why = phases[0][0] === "compute" && parts.length ? `: ${parts[0].codelet || "copies"} takes ${digits(parts[0].charged_compute)} of them` : "";
  return `Mostly ${phases[0][0]}, ${digits(phases[0][1])} cycles${why}.${step.balance < .6 && phases[0][0] === "compute" ? ` The mean tile works for ${percent(step.balance, 0)} of that and then waits for tile ${step.critical_tile}.` : ""}`;
}

/* Timetables of exchanges */

const inTimes = value => value === null ? "–" : value.toFixed(2);
const known = value => value < 0 ? "–" : digits(value);
/** The exchanges of all supersteps, the longest first. */
function timetablesOf(host) {
  const rows = rowsOf(T.timetables).toSorted((a, b) => b.cycles - a.cycles);
  const panel = make("section", { className: "panel" }, make("h2", {}, "Exchanges", make("small", {}, "by the ", term("timetable"), " of their messages, one execution each")), ...lacks("timetables"));
  host.append(panel);
  if (!rows.length) return;
  const number = (name, label, width, tip) => ({ name, label, width, num: true, tip, value: row => row[name], text: row => known(row[name]) });
  const table = grid(panel, [
    { name: "name", label: "superstep", width: "minmax(160px, 1.2fr)", value: row => STEPS[row.superstep].label },
    number("messages", "messages", "84px", "all that one tile wants of another one, or a piece of it"),
    number("bound", "bound", "80px", "cycles of a perfect order: what the busiest lane takes"),
    number("cycles", "cycles", "80px", "until the last message has arrived"),
    { name: "times", label: "times", width: "60px", num: true, tip: "cycles / bound", value: row => row.times_bound, text: row => inTimes(row.times_bound) },
    { name: "code", label: "code, most", width: "88px", num: true, tip: "bytes of the instructions that send and receive, on the tile with the most", value: row => row.code_most, text: row => digits(row.code_most) },
    { name: "mean", label: "code, mean", width: "88px", num: true, tip: "the mean of those tiles that have any", value: row => row.code_mean, text: row => digits(Math.round(row.code_mean)) },
    { name: "why", label: "ends with", width: "minmax(240px, 3fr)", value: row => row.why },
  ], { label: "Exchanges", least: 1040, rows: compare => compare ? rows.toSorted(compare) : rows, pick: row => go({ step: row.superstep }) });
  table.node.style.height = `${Math.min(rows.length, 12) * ROW + 36}px`;
}
/** The exchange of a superstep: its figures, and what each lane carries over time, if it is drawn. */
function lanesOf(host, number) {
  const row = rowsOf(T.timetables).find(each => each.superstep === number);
  if (!row) return;
  const panel = make("section", { className: "panel" }, make("h2", {}, "Its exchange", make("small", {}, "by the ", term("timetable"), " of its messages")), pairs([
    ["messages", known(row.messages)], ["bound", known(row.bound)], ["cycles", row.cycles < 0 ? "–" : `${digits(row.cycles)}, ${inTimes(row.times_bound)} times the bound`], ["ends with", row.why],
    ["exchange code", `${digits(row.code_most)} bytes at most, ${digits(Math.round(row.code_mean))} on the mean of ${count(row.code_tiles, "tile")}`]]), ...(row.cycles < 0 ? lacks("timetables") : []));
  host.append(panel);
  const drawn = data.lanes.find(each => each.supersteps.includes(number));
  if (!drawn) { if (row.cycles > 0) panel.append(make("p", { className: "note", textContent: "Lanes are drawn for the longest exchanges; abele exchange --draw draws any." })); return; }
  const sides = [drawn.lanes_out, drawn.lanes_in].map(text => Uint8Array.from(atob(text), each => each.charCodeAt(0)));
  const N = drawn.tiles.length, up = 22, left = 44, between = 20;
  const wide = width => (width - left - between) / 2, x = (side, width) => left + side * (wide(width) + between);
  const find = (px, py) => {
    const side = px >= x(1, chart.width) ? 1 : 0, at = Math.floor((px - x(side, chart.width)) / wide(chart.width) * drawn.columns), tile = Math.floor((py - up) / (chart.height - up - 20) * N);
    return at >= 0 && at < drawn.columns && tile >= 0 && tile < N ? { side, at, tile } : null;
  };
  const chart = canvas(panel, up + 20 + Math.max(120, Math.min(N * 12, 360)), (pen, width, tall) => {
    const own = tall - up - 20;
    sides.forEach((cells, side) => {
      const picture = make("canvas"); picture.width = drawn.columns; picture.height = N;
      const brush = picture.getContext("2d");
      // A run of one colour is one rectangle.
      for (let tile = 0; tile < N; tile++) for (let a = 0; a < drawn.columns;) {
        const shade = cells[tile * drawn.columns + a];
        let b = a + 1;
        while (b < drawn.columns && cells[tile * drawn.columns + b] === shade) b++;
        if (shade) { brush.fillStyle = `hsl(${280 - (shade - 1) / 254 * 280} 70% ${isDark() ? 58 : 48}%)`; brush.fillRect(a, tile, b - a, 1); }
        a = b;
      }
      pen.imageSmoothingEnabled = false;
      pen.fillStyle = css("--idle"); pen.fillRect(x(side, width), up, wide(width), own);
      pen.drawImage(picture, x(side, width), up, wide(width), own);
      const bound = x(side, width) + Math.min(drawn.bound / Math.max(drawn.cycles, 1), 1) * wide(width);
      pen.strokeStyle = css("--ink"); pen.setLineDash([4, 3]); pen.beginPath(); pen.moveTo(bound, up - 4); pen.lineTo(bound, up + own); pen.stroke(); pen.setLineDash([]);
      pen.fillStyle = css("--soft"); pen.fillText(side ? "lanes in" : "lanes out", x(side, width), 10);
      pen.fillText("0", x(side, width), tall - 8); pen.textAlign = "right"; pen.fillText(`${digits(drawn.cycles)} cycles`, x(side, width) + wide(width), tall - 8); pen.textAlign = "left";
    });
    pen.textAlign = "right"; pen.fillText(String(drawn.tiles[0]), left - 6, up + 6); pen.fillText(String(drawn.tiles[N - 1]), left - 6, up + own - 6); pen.textAlign = "left";
  }, { label: "lanes of this exchange over time", begin: () => [left + 2, up + 2], step: () => [wide(chart.width) / 60, (chart.height - up - 20) / Math.min(N, 60)], tip: (px, py) => {
    const found = find(px, py);
    if (!found) return null;
    const shade = sides[found.side][found.tile * drawn.columns + found.at], last = P.tiles - 1;
    const sender = last < 254 ? `tile ${Math.ceil((shade - 1) * last / 254)}` : `a tile near ${digits(Math.round((shade - .5) * last / 254))}`;
    return [`tile ${drawn.tiles[found.tile]}, lane ${found.side ? "in" : "out"}`, `from cycle ${digits(Math.floor(found.at * drawn.cycles / drawn.columns))}`, shade ? `words of ${sender}` : "idle"];
  } });
  panel.append(make("p", { className: "note", textContent: `A row is a tile${N < row.code_tiles ? ` (${digits(N)} of ${digits(row.code_tiles)})` : ""}, a colour is a sender, and grey is an idle lane. The dashed line is the bound: where a perfect order would end.` }));
}
