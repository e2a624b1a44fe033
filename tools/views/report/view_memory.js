/* Memory: by tile, over time, by address, by variable. */

const CATEGORIES = [["always_live", "always live"], ["live_now", "live now"], ["gaps", "gaps"], ["code", "code"], ["vertex_state", "vertex state"], ["exchange_code", "exchange code"], ["stacks", "stacks"], ["reserved_unused", "reserved, unused"]];
const RESERVED = ["code", "vertex_state", "exchange_code", "stacks"];
let memoryTab = "tiles", plotted = new Set(CATEGORIES.map(each => each[0])), planned = "all";
const MEMORY_TABS = [["tiles", "by tile", memoryByTile], ["time", "over time", memoryOverTime], ["addresses", "by address", memoryByAddress], ["variables", "by variable", memoryByVariable]];

view("memory", "Memory", host => {
  const tabs = make("div", { className: "tabs" });
  tabs.setAttribute("role", "tablist");
  if (!P.planned) memoryTab = "variables";
  for (const [name, title] of P.planned ? MEMORY_TABS : MEMORY_TABS.filter(each => each[0] === "variables")) {
    const node = make("button", { type: "button", textContent: title });
    node.dataset.tab = name; node.setAttribute("role", "tab"); node.setAttribute("aria-selected", String(name === memoryTab));
    node.addEventListener("click", () => { memoryTab = name; shownView = ""; go({ view: "memory" }); });
    tabs.append(node);
  }
  const state = make("span", { className: P.fits ? "note" : "greater" });
  state.textContent = P.shortage || (P.code_shortage ? `variables fit; code does not, by ${digits(P.code_shortage)} bytes (estimate)` : `fits: tile ${P.fullest_tile} has ${digits(P.bytes_per_tile - P.max_tile_bytes)} bytes left`);
  host.append(make("div", { className: "tools" }, tabs, state));
  const outside = P.planned ? highest(T.tiles.tile, t => RESERVED.reduce((a, name) => a + T.tiles[name][t], 0)) : 0;
  if (outside > P.reserved_bytes) host.append(make("p", { className: "note", textContent: `Whether it fits is a matter of variables. Code, vertex state, exchange code and stacks (at most ${digits(outside)} B) are estimates; the target reserves ${digits(P.reserved_bytes)} B for them.` }));
  VIEWS.find(each => each.name === "memory").update = null;
  MEMORY_TABS.find(each => each[0] === memoryTab)[2](host);
});

const tileValue = (t, names) => { let total = 0; for (const name of names) total += T.tiles[name][t]; return total; };
function aboutTile(t) {
  return [`tile ${t}${P.target.chips > 1 ? ` of chip ${chipOf(t)}` : ""}`, ...CATEGORIES.map(([name, label]) => `${label}: ${digits(T.tiles[name][t])} B`), `computes ${short(T.tiles.compute_cycles[t])} and exchanges ${short(T.tiles.exchange_cycles[t])} cycles of a run`];
}

function memoryByTile(host) {
  const tiles = P.tiles, chosen = () => CATEGORIES.map(each => each[0]).filter(name => plotted.has(name));
  const boxes = make("div", { className: "key" });
  CATEGORIES.forEach(([name, label], k) => {
    const tick = make("input", { type: "checkbox", checked: plotted.has(name) }), swatch = make("i");
    swatch.style.background = `var(--c${k})`;
    tick.addEventListener("change", () => { tick.checked ? plotted.add(name) : plotted.delete(name); redrawAll(); });
    boxes.append(make("label", {}, tick, swatch, term(label)));
  });
  const top = make("section", { className: "panel" }, make("h2", {}, "Bytes of each tile", make("small", { id: "tilestats" })), boxes);
  host.append(top);
  const left = 56, right = 10, up = 16, low = 20;
  const usable = P.bytes_per_tile - P.reserved_bytes;
  const at = (x, width) => Math.max(0, Math.min(tiles - 1, Math.floor((x - left) / (width - left - right) * tiles)));
  const pick = t => { go({ tile: t }); redrawAll(); more(); };
  const line = canvas(top, 250, (pen, width, tall) => {
    const names = chosen(), totals = Array.from({ length: tiles }, (_, t) => tileValue(t, names));
    const sorted = totals.toSorted((a, b) => a - b), most = Math.max(P.bytes_per_tile, sorted.at(-1) || 1);
    $("tilestats").textContent = `least ${digits(sorted[0])}, mean ${digits(Math.round(sum(sorted) / tiles))}, most ${digits(sorted.at(-1))} B`;
    const w = width - left - right, h = tall - up - low, y = v => up + h - v / most * h;
    yAxis(pen, left, up, w, h, most, bytes);
    const columns = Math.min(Math.ceil(w), tiles);
    const base = new Float64Array(columns);
    for (const name of names) {
      const k = CATEGORIES.findIndex(each => each[0] === name), values = T.tiles[name];
      pen.fillStyle = css(`--c${k}`);
      for (let c = 0; c < columns; c++) {
        const first = Math.floor(c * tiles / columns), last = Math.max(first + 1, Math.floor((c + 1) * tiles / columns));
        let v = 0; for (let t = first; t < last; t++) v = Math.max(v, values[t]);
        const x = Math.floor(left + c * w / columns), end = Math.floor(left + (c + 1) * w / columns);
        pen.fillRect(x, y(base[c] + v), Math.max(end - x, 1), v / most * h);
        base[c] += v;
      }
    }
    dashed(pen, left, y(P.bytes_per_tile), w, css("--worse"), `a tile has ${bytes(P.bytes_per_tile)}`);
    if (P.reserved_bytes) dashed(pen, left, y(usable), w, css("--value"), `usable for variables: ${bytes(usable)}`, true);
    pen.fillStyle = css("--soft"); pen.textAlign = "center";
    for (let t = 0; t < tiles; t += stepOf(tiles, 8)) pen.fillText(digits(t), left + (t + .5) / tiles * w, tall - 8);
    pen.textAlign = "left";
    // Where one chip ends and the next begins.
    pen.fillStyle = css("--ink"); pen.globalAlpha = .35;
    for (let c = 1; c < P.target.chips; c++) pen.fillRect(Math.round(left + c * P.target.tiles / P.target.chips / tiles * w), up, 1, h);
    pen.globalAlpha = 1;
    if (place.tile >= 0) { pen.fillStyle = css("--ink"); pen.fillRect(left + (place.tile + .5) / tiles * w - .5, up, 1, h); }
  }, {
    label: "bytes of each tile", tip: x => x < left ? null : aboutTile(at(x, line.width)), pick: x => pick(at(x, line.width)),
    key: name => { const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -50, PageDown: 50 }[name]; if (!by) return false; pick(Math.max(0, Math.min(tiles - 1, Math.max(place.tile, 0) + by))); return true; },
  });
  const box = make("div", { className: "columns" }), floor = make("section", { className: "panel w8" }), table = make("section", { className: "panel w4" });
  host.append(box); box.append(floor, table);
  const range = make("span", { className: "note", id: "range" });
  const select = make("select", { className: "field" }, ...[["all", "all that is ticked"], ...CATEGORIES, ["compute_cycles", "cycles of compute"], ["exchange_cycles", "cycles of exchange"]].map(([value, text]) => make("option", { value, textContent: text })));
  select.value = planned;  select.setAttribute("aria-label", "What colours show");
  select.addEventListener("change", () => { planned = select.value; redrawAll(); });
  floor.append(make("div", { className: "tools" }, make("h2", {}, "Floor plan", make("small", { textContent: "tiles row by row, by number" })), select, range));
  const value = t => planned === "all" ? tileValue(t, chosen()) : T.tiles[planned][t];
  floorPlan(floor, tiles, value, aboutTile, { label: "floor plan", pick, selected: () => place.tile, isOver: t => T.tiles.variable_bytes[t] > usable, range: (low, high) => range.replaceChildren(heatKey(short(low), short(high))) });
  function more() {
    const t = place.tile >= 0 ? place.tile : P.fullest_tile, worst = T.tiles.worst_superstep[t];
    table.replaceChildren(
      make("h2", {}, `Tile ${t}`, make("small", { textContent: t === P.fullest_tile ? "the fullest" : "" })),
      bar(CATEGORIES.map(([name, label], k) => [T.tiles[name][t], `--c${k}`, label]), Math.max(P.bytes_per_tile, tileValue(t, CATEGORIES.map(each => each[0])))),
      ...CATEGORIES.map(([name, label], k) => { const swatch = make("i"); swatch.style.background = `var(--c${k})`; const row = make("div", { className: "key" }, make("span", {}, swatch, term(label)), make("span", { textContent: `${digits(T.tiles[name][t])} B` })); row.style.justifyContent = "space-between"; return row; }),
      worst >= 0 ? make("p", { className: "note" }, "most are live in ", linkish(STEPS[T.moments.superstep[worst]].label, () => { memoryTab = "time"; shownView = ""; go({ moment: worst }); })) : "");
  }
  more();
}

/* One tile: the fullest, or the one that was chosen */

const shownTile = () => place.tile >= 0 ? place.tile : P.fullest_tile;

/** Where variables lie on a tile, and when they live: what is always live, and then the rest. */
function layoutOf(tile) {
  const last = Math.max(T.moments.moment.length - 1, 0), lies = v => { const t = tile - v.first_tile, range = v.ranges > 1 ? Math.floor(t / v.apart) : 0; return t >= 0 && range < v.ranges && t - range * v.apart < v.tiles / v.ranges; };
  const box = (v, first, until) => ({ variable: v.variable, address: v.address, bytes: v.bytes_per_tile, first, last: until });
  return [...VARIABLES.filter(v => v.kind !== "value" && lies(v)).map(v => box(v, 0, last)),
    ...T.lives.variable.flatMap((k, row) => lies(VARIABLES[k]) ? [box(VARIABLES[k], T.lives.first[row], T.lives.last[row])] : [])];
}

/** A field that chooses the tile, and a way back to the fullest one. */
function tileChooser() {
  const field = make("input", { className: "field", type: "number", min: 0, max: P.tiles - 1, value: shownTile(), id: "oftile" });
  field.setAttribute("aria-label", "Tile"); field.style.width = "84px";
  const show = tile => { shownView = ""; go({ tile }); $("oftile").focus(); };
  field.addEventListener("change", () => { const tile = Math.floor(Number(field.value)); if (field.value !== "" && tile >= 0 && tile < P.tiles) show(tile); else field.value = shownTile(); });
  const back = shownTile() === P.fullest_tile ? make("small", { textContent: "the fullest" }) : linkish(`the fullest: ${P.fullest_tile}`, () => show(-1));
  return make("label", { className: "note push" }, "tile ", field, " ", back);
}

/* A tile over time */

function memoryOverTime(host) {
  const tile = shownTile(), moments = T.moments.moment.length, layout = layoutOf(tile), M = T.moments;
  if (!moments) { host.append(make("p", { className: "note", textContent: "No superstep is executed." })); return; }
  const SHOWN = 8, always = layout.filter(each => VARIABLES[each.variable].kind !== "value"), values = layout.filter(each => VARIABLES[each.variable].kind === "value");
  const weight = new Map();
  for (const each of values) { const layer = opOf(VARIABLES[each.variable].operation)?.layer ?? "others"; weight.set(layer, (weight.get(layer) || 0) + each.bytes * (each.last - each.first + 1)); }
  const layers = [...weight].sort((a, b) => b[1] - a[1]).slice(0, SHOWN).map(each => each[0]);
  const series = [...layers, "others"].map(() => new Float64Array(moments));
  for (const each of values) {
    const layer = opOf(VARIABLES[each.variable].operation)?.layer ?? "others", at = layers.indexOf(layer);
    const band = series[at < 0 ? layers.length : at];
    for (let m = each.first; m <= each.last; m++) band[m] += each.bytes;
  }
  const stays = sum(always, each => each.bytes), capacity = P.bytes_per_tile - P.reserved_bytes;
  // Within a moment, values that die make room for those that begin. Only the fullest tile is known so well.
  const own = tile === P.fullest_tile ? M.peak_tile_bytes : Array.from({ length: moments }, (_, m) => stays + sum(series, each => each[m]));
  const peak = own.indexOf(highest(own));
  const colour = k => `--c${[1, 3, 4, 5, 6, 7, 8, 9, 2][k]}`;
  const panel = make("section", { className: "panel" }, make("h2", {}, `Bytes of tile ${tile} over time`, make("small", { textContent: "click a moment, or use ← and →, to see what is in memory then" }), tileChooser()),
    key([["--c0", "always live", bytes(stays)], ...layers.map((name, k) => [colour(k), name]), [colour(layers.length), "others"]]));
  host.append(panel);
  const left = 56, right = 10, up = 16, low = 22;
  const at = (x, width) => Math.max(0, Math.min(moments - 1, Math.floor((x - left) / (width - left - right) * moments)));
  const pick = m => { go({ moment: m }); chart.redraw(); contents(); };
  const chart = canvas(panel, 270, (pen, width, tall) => {
    const w = width - left - right, h = tall - up - low, most = highest(M.max_bytes, x => x, capacity) * 1.02, y = v => up + h - v / most * h, dx = w / moments;
    yAxis(pen, left, up, w, h, most, bytes);
    pen.fillStyle = css("--c0"); pen.fillRect(left, y(stays), w, stays / most * h);
    const base = new Float64Array(moments).fill(stays);
    series.forEach((band, k) => {
      pen.fillStyle = css(colour(k));
      for (let m = 0; m < moments; m++) if (band[m]) { const x = Math.floor(left + m * dx); pen.fillRect(x, y(base[m] + band[m]), Math.max(Math.floor(left + (m + 1) * dx) - x, 1), band[m] / most * h); base[m] += band[m]; }
    });
    const stroke = (values, name, dash = []) => { pen.strokeStyle = css(name); pen.setLineDash(dash); pen.beginPath(); for (let m = 0; m < moments; m++) { pen.lineTo(left + m * dx, y(values[m])); pen.lineTo(left + (m + 1) * dx, y(values[m])); } pen.stroke(); pen.setLineDash([]); };
    stroke(M.max_bytes, "--ink"); stroke(M.mean_bytes, "--ink", [2, 3]);
    dashed(pen, left, y(capacity), w, css("--worse"), `usable: ${bytes(capacity)}`);
    const on = place.moment >= 0 ? place.moment : peak;
    pen.fillStyle = css("--ink"); pen.fillRect(left + (on + .5) * dx - 1, up, 2, h);
    pen.fillStyle = css("--soft"); pen.textAlign = "center";
    for (let m = 0; m < moments; m += stepOf(moments, 10)) pen.fillText(digits(m), left + (m + .5) * dx, tall - 8);
    pen.textAlign = "left";
  }, {
    label: "bytes over time", pick: x => pick(at(x, chart.width)),
    tip: x => { if (x < left) return null; const m = at(x, chart.width); return [STEPS[M.superstep[m]].label, `moment ${m}: ${digits(own[m])} B on tile ${tile}`, `most on any tile ${digits(M.max_bytes[m])} (tile ${M.tile[m]}), mean ${digits(Math.round(M.mean_bytes[m]))}`]; },
    key: name => { const by = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 }[name]; if (!by) return false; pick(Math.max(0, Math.min(moments - 1, (place.moment >= 0 ? place.moment : peak) + by))); return true; },
  });
  panel.append(make("p", { className: "note", textContent: `The line is the fullest tile of each moment, the dotted one the mean tile.` }));
  const below = make("section", { className: "panel fill" });
  host.append(below);
  let live = [];
  function contents() {
    const m = place.moment >= 0 ? place.moment : peak, step = STEPS[M.superstep[m]];
    const touched = new Set((step.parts || []).flatMap(part => [part.writes]));
    live = layout.filter(each => each.first <= m && m <= each.last).map(each => {
      const v = VARIABLES[each.variable];
      return { ...v, here: each.bytes, until: each.last, since: each.first, reads: v.kind !== "value" ? "always live" : each.first === m || touched.has(v.name) ? "made here" : each.last === m ? "used last here" : "" };
    });
    const bytesNow = own[m], over = Math.max(0, bytesNow - capacity);
    const largest = highest(live, each => each.here, 1);
    const head = make("h2", {}, `In memory at moment ${m}${m === peak ? " (the peak)" : ""}`, make("small", {}, linkish(step.label, () => go({ view: "execution", step: step.superstep })), ` ${digits(bytesNow)} B in ${count(live.length, "variable")}`));
    below.replaceChildren(head);
    if (over || P.over_bytes) {
      const movable = live.filter(each => each.kind === "value").toSorted((a, b) => b.here - a.here);
      let gone = 0, k = 0; while (gone < over && k < movable.length) gone += movable[k++].here;
      below.append(make("p", { className: "greater", textContent: !over ? "It fits at this moment." : gone >= over ? `${digits(over)} bytes have to go: the ${k === 1 ? "largest value" : `${k} largest values`} would do (${digits(gone)} B).` : `${digits(over)} bytes have to go, more than all values here: weights must go to more tiles or become narrower.` }), make("p", { className: "note", textContent: "`abele memory MODEL --advise` tries what frees memory, and what each change costs." }));
    }
    grid(below, [
      { name: "name", label: "variable", width: "minmax(200px, 2fr)", value: row => row.name },
      { name: "operation", label: "operation", width: "minmax(160px, 1.4fr)", value: row => row.operation < 0 ? "" : opName(row.operation) },
      { name: "kind", label: "kind", width: "80px", value: row => row.kind },
      { name: "here", label: "bytes here", width: "92px", num: true, value: row => row.here, text: row => digits(row.here), share: row => row.here / largest },
      { name: "shape", label: "shape", width: "130px", value: row => `${row.dtype} ${row.shape}` },
      { name: "since", label: "from", width: "60px", num: true, value: row => row.since }, { name: "until", label: "until", width: "60px", num: true, value: row => row.until },
      { name: "reads", label: "", width: "110px", value: row => row.reads },
    ], { label: "Contents", least: 860, sort: { name: "here", down: true }, rows: compare => compare ? live.toSorted(compare) : live, pick: row => row.operation >= 0 && go({ op: row.operation }), className: "" }).node.style.minHeight = "240px";
  }
  contents();
}

/* Addresses of a tile over time */

function memoryByAddress(host) {
  const tile = shownTile(), moments = Math.max(T.moments.moment.length, 1), layout = layoutOf(tile);
  const top = highest(layout, each => each.address + each.bytes, P.bytes_per_tile);
  const panel = make("section", { className: "panel fill" }, make("h2", {}, `Addresses of tile ${tile} over time`, make("small", { textContent: "each box is a variable: as high as its bytes, as wide as its life; colours are layers; arrows move, Enter opens" }), tileChooser()));
  host.append(panel);
  const left = 60, right = 10, up = 22, low = 22;
  let at = -1;
  const find = (x, y) => {
    const m = Math.floor((x - left) / (chart.width - left - right) * moments), address = (chart.height - low - y) / (chart.height - up - low) * top;
    return layout.findLast(each => each.first <= m && m <= each.last && each.address <= address && address < each.address + each.bytes);
  };
  const chart = canvas(panel, () => Math.max(340, innerHeight - 226), (pen, width, tall) => {
    const w = width - left - right, h = tall - up - low, y = v => up + h - v / top * h;
    yAxis(pen, left, up, w, h, top, bytes);
    for (const each of layout) {
      const v = VARIABLES[each.variable], op = opOf(v.operation), x = left + each.first / moments * w, wide = (each.last - each.first + 1) / moments * w, high = each.bytes / top * h;
      pen.globalAlpha = v.kind === "value" ? .9 : .38;
      pen.fillStyle = place.op >= 0 && v.operation === place.op ? css("--ink") : layerHue(op);
      pen.fillRect(x, y(each.address + each.bytes), Math.max(wide - .5, .8), Math.max(high - (high > 3 ? 1 : 0), .6));
      pen.globalAlpha = 1;
      if (high > 13 && wide > 60) { pen.fillStyle = place.op >= 0 && v.operation === place.op ? css("--paper") : css("--ink"); clipped(pen, v.name, x + 4, y(each.address + each.bytes / 2), wide - 8); }
    }
    const on = layout[at];
    if (on) { pen.strokeStyle = css("--ink"); pen.lineWidth = 2; pen.strokeRect(left + on.first / moments * w, y(on.address + on.bytes) - 1, Math.max((on.last - on.first + 1) / moments * w, 2), Math.max(on.bytes / top * h, 1) + 1); pen.lineWidth = 1; }
    dashed(pen, left, y(P.bytes_per_tile), w, css("--worse"), `a tile has ${bytes(P.bytes_per_tile)}`);
    pen.fillStyle = css("--soft"); pen.textAlign = "center";
    for (let m = 0; m < moments; m += stepOf(moments, 10)) pen.fillText(digits(m), left + (m + .5) / moments * w, tall - 8);
    pen.textAlign = "left";
  }, {
    label: "addresses over time",
    key: name => {
      if (name === "Enter" && at >= 0) { open(layout[at]); return true; }
      if (!name.startsWith("Arrow") || !layout.length) return false;
      const middle = each => [(each.first + each.last) / 2 / moments, (each.address + each.bytes / 2) / top];
      const [x, y] = at < 0 ? [0, 0] : middle(layout[at]), sign = name === "ArrowRight" || name === "ArrowUp" ? 1 : -1;
      const along = name === "ArrowLeft" || name === "ArrowRight" ? 0 : 1;
      let best = at < 0 ? 0 : at, least = Infinity;
      layout.forEach((each, k) => {
        const d = [middle(each)[0] - x, middle(each)[1] - y], ahead = d[along] * sign, far = ahead + 3 * Math.abs(d[1 - along]);
        if (k !== at && ahead > 1e-9 && far < least) { best = k; least = far; }
      });
      at = best;
      const box = chart.node.getBoundingClientRect(), w = chart.width - left - right, h = chart.height - up - low, [u, v] = middle(layout[at]);
      chart.redraw(); showTip(box.left + left + u * w, box.top + up + h - v * h, about(layout[at]));
      return true;
    },
    tip: (x, y) => { const each = find(x, y); return each ? about(each) : null; },
    pick: (x, y) => { const each = find(x, y); if (each) { at = layout.indexOf(each); open(each); } },
  });
  const open = each => { hideTip(); go({ op: VARIABLES[each.variable].operation }); chart.redraw(); };
  function about(each) { const v = VARIABLES[each.variable]; return [v.name, `${opName(v.operation)} · ${v.kind}`, `${digits(each.bytes)} B at ${digits(each.address)}, moments ${each.first} to ${each.last}`]; }
}

/** The tiles of a variable; of several ranges, the first, and how many there are. */
const tilesOf = v => `${v.first_tile}–${v.first_tile + v.tiles / v.ranges - 1}${v.ranges > 1 ? ` × ${v.ranges}` : ""}`;

/* All variables */

let ofKind = "";
function memoryByVariable(host) {
  const filter = make("input", { className: "field", type: "search", placeholder: "Filter: name, operation, type" });
  filter.setAttribute("aria-label", "Filter variables");
  const kinds = make("select", { className: "field" }, ...["all kinds", "state", "constant", "value", "at the peak"].map(text => make("option", { textContent: text, value: text === "all kinds" ? "" : text })));
  kinds.value = ofKind; kinds.setAttribute("aria-label", "Kind");
  const only = make("input", { type: "checkbox", checked: place.op >= 0 });
  const total = make("span", { className: "note" });
  host.append(make("div", { className: "tools" }, filter, kinds, ...(place.op >= 0 ? [make("label", {}, only, ` only of ${opName(place.op)}`)] : []), total));
  const most = highest(VARIABLES, each => each.bytes, 1);
  const table = grid(host, [
    { name: "name", label: "variable", width: "minmax(220px, 2fr)", value: row => row.name },
    { name: "operation", label: "operation", width: "minmax(180px, 1.6fr)", value: row => row.operation < 0 ? "" : opName(row.operation) },
    { name: "kind", label: "kind", width: "78px", value: row => row.kind },
    { name: "type", label: "type", width: "minmax(120px, 1fr)", value: row => `${row.dtype} ${row.shape}` },
    { name: "bytes", label: "all tiles", width: "100px", num: true, value: row => row.bytes, text: row => bytes(row.bytes), share: row => row.bytes / most },
    { name: "tile", label: "each tile", width: "84px", num: true, value: row => row.bytes_per_tile, text: row => P.planned ? bytes(row.bytes_per_tile) : "–" },
    { name: "tiles", label: "tiles", width: "104px", num: true, value: row => row.tiles, text: row => P.planned ? tilesOf(row) : "–" },
    { name: "address", label: "address", width: "74px", num: true, value: row => row.address, text: row => P.planned ? String(row.address) : "–" },
    { name: "peak", label: "at the peak", width: "90px", value: row => row.waits ? "waits" : row.at_peak ? "yes" : "" },
  ], {
    label: "Variables", least: 1020, sort: { name: "bytes", down: true }, nothing: "no variable has all these words",
    isOn: row => place.op >= 0 && row.operation === place.op && !only.checked,
    rows: compare => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      const kept = VARIABLES.filter(each => (!ofKind || (ofKind === "at the peak" ? each.at_peak : each.kind === ofKind)) && (!only.checked || place.op < 0 || each.operation === place.op)
        && words.every(word => `${each.name} ${opName(each.operation)} ${each.dtype} ${each.shape}`.toLowerCase().includes(word)));
      total.textContent = `${count(kept.length, "variable")}, ${bytes(sum(kept, each => each.bytes))} on all tiles`;
      return compare ? kept.toSorted(compare) : kept;
    },
    pick: row => row.operation >= 0 && change({ ...place, op: row.operation }),
  });
  table.node.style.flex = "1"; table.node.style.minHeight = "300px";
  filter.addEventListener("input", table.arrange); only.addEventListener("change", table.arrange);
  kinds.addEventListener("change", () => { ofKind = kinds.value; table.arrange(); });
}
