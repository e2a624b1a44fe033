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
    chipTimes(host, C.length);
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
  const rows = C.map(each => ({ ...each, others: Math.max(each.live_now - each.stashes, 0) }));
  const stashes = rows.some(each => each.stashes) ? [["stashes", "--c4", "stashes"]] : [];
  const whole = highest(rows, each => each.always_live + each.stashes + each.others, 1);
  chipBars(host, rows, [["always_live", "--c0", "always live"], ...stashes, ["others", "--c1", "live now"]], whole, bytes);
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

/* What each chip does over time: a row for each, a box for each call of a function, or for work on one layer. */

let chipSpan = null;
function chipTimes(host, chips) {
  const B = data.boxes, N = B.start.length;
  if (!N) return;
  const end = highest(B.end, x => x, 1), left = 58, right = 8, low = 22, row = Math.max(3, Math.min(26, Math.floor(520 / chips))), gap = row > 10 ? 3 : row > 3 ? 1 : 0;
  const whole = () => [0, end];
  if (!chipSpan || chipSpan[1] > end) chipSpan = whole();
  const entry = B.parts.indexOf("main"), colour = part => part < 0 || part === entry ? css("--sync") : hue(part);
  // Boxes of a chip follow each other in time.
  const first = new Int32Array(chips).fill(N), after = new Int32Array(chips);
  for (let k = N - 1; k >= 0; k--) { first[B.chip[k]] = k; after[B.chip[k]] = Math.max(after[B.chip[k]], k + 1); }
  const find = (chip, cycle) => { let a = first[chip], b = after[chip]; while (a < b) { const mid = (a + b) >> 1; if (B.end[mid] <= cycle) a = mid + 1; else b = mid; } return a; };
  const panel = make("section", { className: "panel" }), where = make("span", { className: "note" });
  const button = (text, title, act) => { const node = make("button", { type: "button", className: "icon", textContent: text, title }); node.addEventListener("click", act); return node; };
  panel.append(make("div", { className: "tools" }, make("h2", {}, "Chips in time", make("small", { textContent: entry < 0 ? "a box is work on a layer; its number is the time that it is done" : "a box is a call; its number is the call" })), where, make("span", { className: "push" }),
    button("+", "Closer (+)", () => zoom(.5)), button("−", "Farther (−)", () => zoom(2)), button("all", "The whole run (0)", () => move(...whole()))));
  const names = B.parts.slice(0, 14).map((name, k) => [colour(k), k === entry ? "between functions" : name]);
  panel.append(key([...names, ...(B.parts.length > 14 ? [["--idle", `and ${digits(B.parts.length - 14)} more`]] : []), ["--idle", "waiting"]]));
  host.append(panel);
  const x = (v, width) => left + (v - chipSpan[0]) / (chipSpan[1] - chipSpan[0]) * (width - left - right);
  const cycleAt = px => chipSpan[0] + (px - left) / (chart.width - left - right) * (chipSpan[1] - chipSpan[0]);
  function move(a, b) { const wide = Math.min(Math.max(b - a, 20), end); a = Math.max(0, Math.min(a, end - wide)); chipSpan = [a, a + wide]; chart.redraw(); }
  function zoom(by, around = (chipSpan[0] + chipSpan[1]) / 2) { move(around - (around - chipSpan[0]) * by, around + (chipSpan[1] - around) * by); }
  const about = k => {
    const range = `cycles ${digits(B.start[k])} to ${digits(B.end[k])}: ${digits(B.end[k] - B.start[k])}`;
    return B.part[k] < 0 ? [`chip ${B.chip[k]}: ${digits(B.turn[k])} more iterations or calls`, "not listed one by one", range] : [`chip ${B.chip[k]}: ${B.part[k] === entry ? "between functions" : B.parts[B.part[k]]}`, `time ${digits(B.turn[k] + 1)}`, range];
  };
  const labelOf = k => B.part[k] < 0 ? `${digits(B.turn[k])} more` : B.part[k] === entry ? "" : String(B.turn[k] + 1);
  const chart = canvas(panel, row * chips + low, (pen, width) => {
    pen.save(); pen.beginPath(); pen.rect(left, 0, width - left - right, row * chips); pen.clip();
    for (let c = 0; c < chips; c++) {
      const y = c * row, h = row - gap;
      pen.fillStyle = css("--idle"); pen.fillRect(left, y, width - left - right, h);
      let drawn = -1;
      for (let k = find(c, chipSpan[0]); k < after[c] && B.start[k] < chipSpan[1]; k++) {
        const a = x(B.start[k], width), b = x(B.end[k], width), wide = Math.max(b - a, .6);
        if (b - drawn < .3) continue;
        drawn = b;
        pen.fillStyle = colour(B.part[k]);
        if (B.part[k] < 0) { pen.globalAlpha = .35; pen.fillRect(a, y, wide, h); pen.globalAlpha = 1; pen.beginPath(); pen.strokeStyle = css("--sync"); for (let s = Math.max(a, left) - h; s < Math.min(b, width); s += 7) { pen.moveTo(Math.max(s, a), y + h - Math.max(a - s, 0)); pen.lineTo(Math.min(s + h, b), y + Math.max(s + h - b, 0)); } pen.stroke(); }
        else pen.fillRect(a, y, wide - (wide > 5 ? .6 : 0), h);
        if (h >= 11) { const label = labelOf(k), seen = Math.max(a, left), room = Math.min(b, width - right) - seen; pen.textAlign = "center"; pen.fillStyle = B.part[k] < 0 ? css("--ink") : "#fff"; if (room > pen.measureText(label).width + 5) pen.fillText(label, seen + room / 2, y + h / 2); pen.textAlign = "left"; }
      }
    }
    pen.fillStyle = css("--ink"); pen.globalAlpha = .6;
    let at = -1;
    B.meet.forEach((cycle, k) => { const px = Math.round(x(cycle, width)); if (px < left || px > width || px === at) return; at = px; pen.fillRect(px, B.first[k] * row, 1, (B.last[k] - B.first[k]) * row + row - gap); });
    pen.globalAlpha = 1; pen.restore();
    pen.fillStyle = css("--soft"); pen.textAlign = "right";
    for (let c = 0; c < chips; c += Math.ceil(12 / row)) pen.fillText(`chip ${c}`, left - 8, c * row + Math.max(row - gap, 8) / 2);
    pen.fillText("cycles", left - 8, row * chips + low / 2 + 2); pen.textAlign = "center";
    const tick = stepOf(chipSpan[1] - chipSpan[0], Math.max(2, width / 120));
    for (let v = Math.ceil(chipSpan[0] / tick) * tick; v <= chipSpan[1]; v += tick) pen.fillText(short(v), Math.min(x(v, width), width - 22), row * chips + low / 2 + 2);
    pen.textAlign = "left";
    where.textContent = `${digits(Math.round(chipSpan[0]))} – ${digits(Math.round(chipSpan[1]))} of ${digits(end)} cycles (${time(chipSpan[1] - chipSpan[0])})`;
  }, {
    label: "chips in time", begin: () => [left + 2, row / 2],
    tip: (px, py) => {
      const c = Math.floor(py / row), cycle = cycleAt(px);
      if (px < left || c < 0 || c >= chips) return null;
      const k = find(c, cycle);
      if (k >= after[c] || B.start[k] > cycle) return [`chip ${c} waits`, `cycle ${digits(Math.round(cycle))}`];
      return about(k);
    },
    key: name => {
      const chip = at < 0 ? 0 : B.chip[at], within = (k, c) => Math.max(first[c], Math.min(after[c] - 1, k));
      const near = c => { const to = Math.max(0, Math.min(chips - 1, c)); return first[to] < after[to] ? within(find(to, at < 0 ? 0 : B.start[at]), to) : at; };
      const step = { ArrowLeft: () => at < 0 ? near(0) : within(at - 1, chip), ArrowRight: () => at < 0 ? near(0) : within(at + 1, chip), ArrowUp: () => near(chip - 1), ArrowDown: () => near(chip + 1) }[name];
      if (step) { at = step(); if (at >= 0) tell(at); return true; }
      const act = { "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2), "0": () => move(...whole()) }[name];
      act?.(); return Boolean(act);
    },
  });
  let at = -1;
  /** Show a box and its tip. */
  function tell(k) {
    const wide = chipSpan[1] - chipSpan[0];
    if (B.start[k] < chipSpan[0] || B.start[k] >= chipSpan[1]) move(B.start[k] - wide / 4, B.start[k] + 3 * wide / 4);
    const box = chart.node.getBoundingClientRect(), px = Math.max(x((B.start[k] + Math.min(B.end[k], chipSpan[1])) / 2, chart.width), left + 1);
    showTip(box.left + px, box.top + (B.chip[k] + .5) * row, about(k));
  }
  let drag = null;
  chart.node.addEventListener("wheel", event => { if (!event.ctrlKey && !event.shiftKey) return; event.preventDefault(); zoom(Math.exp(event.deltaY / 400), cycleAt(event.offsetX)); }, { passive: false });
  chart.node.addEventListener("pointerdown", event => { drag = { x: event.clientX, span: [...chipSpan] }; chart.node.setPointerCapture(event.pointerId); });
  chart.node.addEventListener("pointermove", event => { if (!drag) return; const by = (drag.x - event.clientX) / (chart.width - left - right) * (drag.span[1] - drag.span[0]); move(drag.span[0] + by, drag.span[1] + by); });
  chart.node.addEventListener("pointerup", () => { drag = null; });
  panel.append(make("p", { className: "note", textContent: `Where nothing is drawn, a chip waits for others. Lines are meetings for which a chip has waited. Ctrl and the wheel zoom, dragging moves.${B.left_out ? ` The last ${digits(B.left_out)} boxes are left out.` : ""}` }));
}
