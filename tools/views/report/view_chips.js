/* Chips: what each of them does and holds, the links between them, and what lies where. */

/** A name for a group of neighbouring chips. */
const chipsNamed = (group, size, all) => size === 1 ? `chip ${group}` : `chips ${group * size}–${Math.min(all, (group + 1) * size) - 1}`;
/** A link's name with an arrow. */
const linkName = each => each.name.replace("->", "→");
const chipOf = tile => Math.min(Math.floor(tile / (P.target.tiles / P.target.chips)), P.target.chips - 1);

function viewChips() {
  const shown = view("chips", "Chips", host => {
    const C = rowsOf(T.chips), L = rowsOf(T.chip_links), links = L.toSorted((a, b) => b.busy_cycles - a.busy_cycles);
    const waits = sum(C, each => each.waiting_cycles) / Math.max(C.length * P.cycles, 1), most = links[0];
    host.append(make("div", { className: "figures" },
      figure(digits(C.length), "chips", `of ${digits(C[0].tiles)} tiles, ${digits(C.filter(each => each.tiles_used).length)} used`),
      figure(bytes(P.crossing_bytes), "between chips", `in a run; tiles receive ${bytes(P.exchange_bytes)} in all`),
      figure(most?.bytes ? linkName(most) : "–", "busiest link", most?.bytes ? `carries ${bytes(most.bytes)}, busy for ${share(most.busy_cycles)} of the run` : "no link carries anything"),
      figure(percent(waits), "waiting", "the mean chip, for others")));
    const box = make("div", { className: "columns" });
    host.append(box);
    const panel = (wide, title, ...small) => { const node = make("section", { className: `panel ${wide}` }, make("h2", {}, title, ...small.map(textContent => make("small", { textContent })))); box.append(node); return node; };
    chipWork(panel("w7", "What chips do in a run", "the busiest tile of a chip in each superstep"), C);
    chipPairs(panel("w5", "Who sends to whom", "senders down, receivers across"), C.length);
    chipMemory(panel("w7", "What chips hold", "bytes of all tiles of a chip"), C);
    linkLoads(panel("w5", "Links", "how long each is busy in a run"), links);
    if (data.chips.operation.length) chipLayers(panel("", "Which chips layers are on", "the share of a layer's work that a chip does"), C.length);
  });
  // After what happens in time, before the text of the program.
  VIEWS.splice(VIEWS.indexOf(shown), 1);
  VIEWS.splice(VIEWS.findIndex(each => each.name === "program"), 0, shown);
}

/** Bars of chips, one below the other. parts: [column, colour, name] */
function chipBars(host, C, parts, whole, show) {
  const left = 52, right = 8, low = 18, row = Math.max(3, Math.min(22, Math.floor(420 / C.length)));
  const at = y => { const k = Math.floor(y / row); return k >= 0 && k < C.length ? k : -1; };
  host.append(key(parts.map(([, colour, name]) => [colour, name])));
  const chart = canvas(host, row * C.length + low, (pen, width) => {
    const w = width - left - right, gap = row > 6 ? 3 : row > 3 ? 1 : 0;
    C.forEach((each, k) => {
      let x = left;
      pen.fillStyle = css("--idle"); pen.fillRect(left, k * row, w, row - gap);
      for (const [name, colour] of parts) { const own = each[name] / whole * w; pen.fillStyle = css(colour); pen.fillRect(x, k * row, own, row - gap); x += own; }
    });
    pen.fillStyle = css("--soft"); pen.textAlign = "right";
    const every = Math.ceil(12 / row);
    for (let k = 0; k < C.length; k += every) pen.fillText(String(k), left - 8, k * row + Math.max(row - gap, 8) / 2);
    pen.fillText("chip", left - 8, row * C.length + low / 2); pen.textAlign = "center";
    for (let v = 0, step = stepOf(whole, 5); v <= whole; v += step) pen.fillText(show(v), left + Math.max(12, Math.min(v / whole * w, w - 12)), row * C.length + low / 2 + 2);
    pen.textAlign = "left";
  }, {
    label: host.querySelector("h2").firstChild.textContent, begin: () => [left, row / 2], step: () => [chart.width / 60, row],
    tip: (x, y) => { const k = at(y); return k < 0 ? null : [`chip ${k}`, ...parts.map(([name, , text]) => `${text}: ${show === bytes ? bytes(C[k][name]) : `${digits(C[k][name])} cycles (${share(C[k][name])})`}`), `its fullest tile, ${C[k].fullest_tile}, has ${digits(C[k].max_tile_bytes)} of ${digits(P.bytes_per_tile)} B`, `sends ${bytes(C[k].sent_bytes)} to other chips, receives ${bytes(C[k].received_bytes)}`]; },
    pick: (x, y) => { const k = at(y); if (k >= 0) { memoryTab = "tiles"; go({ view: "memory", tile: C[k].fullest_tile }); } },
  });
}
function chipWork(host, C) {
  chipBars(host, C, [["compute_cycles", "--compute", "compute"], ["exchange_cycles", "--exchange-c", "exchange"], ["sync_cycles", "--sync", "sync"]], Math.max(P.cycles, 1), short);
  host.append(make("p", { className: "note", textContent: "The rest of a bar is waiting for other chips, or until the last one is done." }));
}
function chipMemory(host, C) {
  const whole = highest(C, each => each.always_live + each.live_now, 1);
  chipBars(host, C, [["always_live", "--c0", "always live"], ["live_now", "--c1", "live now"]], whole, bytes);
}

/** Bytes between chips as a small picture; neighbouring chips are one where there are many. */
function chipPairs(host, chips) {
  const size = data.chips.group, groups = Math.ceil(chips / size), cells = data.chips.pairs, top = highest(cells);
  if (!top) { host.append(make("p", { className: "note", textContent: "Nothing moves between chips." })); return; }
  let cell = 6;
  const edge = 22, find = (x, y) => { const to = Math.floor((x - edge) / cell), from = Math.floor((y - edge) / cell); return x >= edge && y >= edge && to < groups && from < groups ? [from, to] : null; };
  canvas(host, () => edge + Math.max(40, Math.min(groups * 34, 360)), (pen, width, tall) => {
    cell = Math.max(2, Math.floor(Math.min(width - edge, tall - edge) / groups));
    for (let a = 0; a < groups; a++) for (let b = 0; b < groups; b++) { pen.fillStyle = heat(Math.sqrt(cells[a * groups + b] / top)); pen.fillRect(edge + b * cell, edge + a * cell, cell - (cell > 4 ? 1 : 0), cell - (cell > 4 ? 1 : 0)); }
    pen.fillStyle = css("--soft"); pen.textAlign = "center";
    for (let g = 0; g < groups; g += Math.ceil(22 / cell)) { pen.fillText(String(g * size), edge + (g + .5) * cell, edge / 2); pen.fillText(String(g * size), edge / 2, edge + (g + .5) * cell); }
    pen.textAlign = "left";
  }, { label: "bytes between chips", begin: () => [edge + cell / 2, edge + cell / 2], step: () => [cell, cell], tip: (x, y) => { const found = find(x, y); return found && [`${chipsNamed(found[0], size, chips)} to ${chipsNamed(found[1], size, chips)}`, found[0] === found[1] && size === 1 ? "what stays on a chip is not counted" : `${bytes(cells[found[0] * groups + found[1]])} in a run`]; } });
  host.append(heatKey("0", bytes(top)));
}

function linkLoads(host, links) {
  const most = Math.max(links[0]?.busy_cycles || 0, 1);
  const table = grid(host, [
    { name: "name", label: "link", width: "minmax(90px, 1.2fr)", value: linkName },
    { name: "rate", label: "GB/s", width: "64px", num: true, value: row => row.bytes_per_second, text: row => (row.bytes_per_second / 1e9).toPrecision(3) },
    { name: "bytes", label: "carries", width: "80px", num: true, value: row => row.bytes, text: row => bytes(row.bytes) },
    { name: "busy", label: "busy", width: "minmax(90px, 1fr)", num: true, value: row => row.busy_cycles, text: row => short(row.busy_cycles), share: row => row.busy_cycles / most, tip: "cycles of a run that it takes to carry them; the bar compares it with the busiest link" },
    { name: "share", label: "of the run", width: "76px", num: true, value: row => row.share, text: row => percent(row.share) },
  ], { label: "Links", least: 440, sort: { name: "busy", down: true }, rows: compare => compare ? links.toSorted(compare) : links, nothing: "no link" });
  table.node.style.height = `${Math.min(links.length, 9) * ROW + 36}px`;
}

/** Layers against chips: what share of a layer's work is done where. */
function chipLayers(host, chips) {
  const size = data.chips.group, groups = Math.ceil(chips / size), D = data.chips;
  const rows = new Map();
  D.operation.forEach((number, k) => {
    const op = OPS[number];
    if (!rows.has(op.layer)) rows.set(op.layer, { name: op.layer, op: number, cycles: new Float64Array(groups), kept: new Float64Array(groups) });
    const row = rows.get(op.layer);
    row.cycles[D.chip[k]] += D.tile_cycles[k]; row.kept[D.chip[k]] += D.resident_bytes[k];
  });
  const layers = [...rows.values()], tall = 17, left = 190, head = 20, wide = () => Math.min(64, Math.max(8, Math.floor((chart.width - left) / groups)));
  const find = (x, y) => { const k = Math.floor((y - head) / tall), g = Math.floor((x - left) / wide()); return k >= 0 && k < layers.length && x >= left && g < groups ? [k, g] : null; };
  const chart = canvas(host, head + tall * layers.length, pen => {
    const w = wide();
    layers.forEach((row, k) => {
      const all = sum([...row.cycles]) || 1;
      pen.fillStyle = css("--ink"); pen.textAlign = "right"; clipped(pen, row.name, left - 8, head + (k + .5) * tall - 1, left - 16); pen.textAlign = "left";
      for (let g = 0; g < groups; g++) {
        pen.fillStyle = row.cycles[g] ? heat(.12 + .88 * row.cycles[g] / all) : css("--idle");
        pen.fillRect(left + g * w, head + k * tall, w - 1, tall - 2);
        // Weights without work.
        if (!row.cycles[g] && row.kept[g]) { pen.fillStyle = css("--c0"); pen.fillRect(left + g * w, head + k * tall + tall - 5, w - 1, 3); }
      }
    });
    pen.fillStyle = css("--soft"); pen.textAlign = "center";
    for (let g = 0; g < groups; g += Math.ceil(22 / w)) pen.fillText(String(g * size), left + (g + .5) * w, head / 2 - 1);
    pen.textAlign = "right"; pen.fillText("chip", left - 8, head / 2 - 1); pen.textAlign = "left";
  }, {
    label: "layers on chips", begin: () => [left + 2, head + tall / 2], step: () => [wide(), tall],
    tip: (x, y) => { const found = find(x, y); if (!found) return null; const [k, g] = found, row = layers[k]; return [`${row.name} on ${chipsNamed(g, size, chips)}`, `${percent(row.cycles[g] / (sum([...row.cycles]) || 1))} of its work, ${short(row.cycles[g])} tile cycles of a run`, `${bytes(row.kept[g])} of weights and constants`]; },
    pick: (x, y) => { const found = find(x, y); if (found) go({ op: layers[found[0]].op }); },
  });
  host.append(heatKey("0", "all of a layer's work"));
}
