/* Summary: the first figures, what is wrong, the dearest operations, the roofline. */

function figure(value, name, more = "", bad = false) {
  return make("div", { className: `figure${bad ? " bad" : ""}` }, make("b", { textContent: value }), make("span", {}, TERMS[name] ? term(name) : name), make("i", { textContent: more }));
}

/** A summary of a program that was not planned: how much there is, and what is largest. */
function outlineSummary(host) {
  const room = P.target.tiles * (P.bytes_per_tile - P.reserved_bytes), stored = VARIABLES.filter(each => each.kind !== "value"), values = VARIABLES.filter(each => each.kind === "value");
  const weights = sum(stored, each => each.bytes), largest = highest(values, each => each.bytes, 0);
  host.append(make("div", { className: "figures" },
    figure("not planned", "fits", "so cycles and memory of tiles are not known", true),
    figure(bytes(room), "all tiles", `hold this, without what is reserved: ${digits(P.target.tiles)} of ${bytes(P.bytes_per_tile)}`),
    figure(bytes(weights), "weights and constants", `${percent(weights / room, 0)} of that`, weights > room),
    figure(bytes(largest), "largest value", `${percent(largest / room, 0)} of that`, largest > room),
    figure(digits(OPS.length), "operations", `${digits(VARIABLES.length)} tensors`)));
  host.append(warningList());
  const top = make("section", { className: "panel w7" }, make("h2", {}, "Largest tensors", make("small", { textContent: "of what all tiles hold" })));
  const most = VARIABLES.toSorted((a, b) => b.bytes - a.bytes).slice(0, 14);
  for (const each of most) {
    const line = make("div", { className: "costline" });
    line.append(each.operation < 0 ? make("span", { textContent: each.name }) : linkish(each.name, () => go({ op: each.operation })), bar([[each.bytes, each.bytes > room ? "--worse" : each.kind === "value" ? "--c1" : "--c0", each.kind]], Math.max(room, most[0].bytes)), make("span", { textContent: bytes(each.bytes), className: "num" }));
    top.append(line);
  }
  const layers = [...Map.groupBy(OPS, op => op.layer)].map(([name, ops]) => [name, sum(ops, op => op.resident_bytes + op.value_bytes)]).toSorted((a, b) => b[1] - a[1]).slice(0, 14);
  const box = make("section", { className: "panel w5" }, make("h2", {}, "Largest layers", make("small", { textContent: "weights and results" })));
  for (const [name, size] of layers) box.append(make("div", { className: "costline" }, make("span", { textContent: name }), bar([[size, "--c0", "bytes"]], layers[0][1]), make("span", { textContent: bytes(size), className: "num" })));
  host.append(make("div", { className: "columns" }, top, box), aboutProgram());
}

view("summary", "Summary", host => {
  if (!P.planned) { outlineSummary(host); return; }
  const used = P.max_tile_bytes / P.bytes_per_tile;
  host.append(make("div", { className: "figures" },
    figure(time(P.cycles), "one run", `${digits(P.cycles)} cycles at ${short(P.target.clock_hz)}Hz`),
    figure(P.fits ? P.code_shortage ? "variables fit" : "fits" : "does not fit", "fullest tile", `${percent(used, 0)}: ${digits(P.max_tile_bytes)} of ${digits(P.bytes_per_tile)} B`, !P.fits),
    figure(P.utilisation === null ? "–" : percent(P.utilisation), "utilisation", P.utilisation === null ? "not known, see below" : `${short(P.macs)} MACs, of the peak of all tiles`),
    figure(digits(P.supersteps), "superstep", "executed in a run"),
    figure(short(P.vertices), "vertices", P.edges === null ? "" : `${short(P.edges)} edges between them`),
    figure(bytes(P.exchange_bytes), "exchange", "received by all tiles"),
    figure(digits(P.tiles_used), "tiles", `used, of ${digits(P.target.tiles)}`)));
  if (data.warnings.length) host.append(warningList());
  const phases = [...Map.groupBy(OPS.filter(op => op.phase), op => op.phase)].map(([name, ops]) => [name, sum(ops, op => op.cycles)]);
  const time_ = make("section", { className: "panel w7" }, make("h2", {}, "Where the cycles go"),
    bar([[P.compute_cycles, "--compute", "compute"], [P.exchange_cycles, "--exchange-c", "exchange"], [P.sync_cycles, "--sync", "sync"]]),
    key([["--compute", "compute", share(P.compute_cycles)], ["--exchange-c", "exchange", share(P.exchange_cycles)], ["--sync", "sync", share(P.sync_cycles)]]));
  if (phases.length) time_.append(make("h2", {}, "by ", term("phase")), bar(phases.map(([name, cycles], k) => [cycles, `--c${k}`, name])), key(phases.map(([name, cycles], k) => [`--c${k}`, name, share(cycles)])));
  const tile = P.fullest_tile, at = name => T.tiles[name][tile];
  const memory = make("section", { className: "panel w5" }, make("h2", {}, "What fills the fullest tile ", make("small", { textContent: `tile ${tile}` })),
    bar(CATEGORIES.map(([name, label], k) => [at(name), `--c${k}`, label]), Math.max(P.bytes_per_tile, sum(CATEGORIES, ([name]) => at(name)))),
    key(CATEGORIES.map(([name, label], k) => [`--c${k}`, label, bytes(at(name))])));
  const dear = OPS.toSorted((a, b) => b.cycles - a.cycles).slice(0, 12), most = dear[0]?.cycles || 1;
  const top = make("section", { className: "panel w5" }, make("h2", {}, "Dearest operations", make("small", { textContent: "of all cycles" })));
  for (const op of dear) {
    const line = make("div", { className: "costline" });
    const name = make("span", {}, linkish(op.name, () => go({ op: op.operation })), ...(op.line ? [" ", make("code", { className: "note", textContent: placeOf(op), title: placeOf(op) })] : []));
    line.append(name, bar([[op.compute_cycles, "--compute", "compute"], [op.exchange_cycles, "--exchange-c", "exchange"], [op.sync_cycles, "--sync", "sync"]], most), make("span", { textContent: share(op.cycles), className: "num" }));
    top.append(line);
  }
  const roof = make("section", { className: "panel w7" }, make("h2", {}, term("roofline", "Roofline"), make("small", { textContent: "each point is an operation that multiplies; larger points take more cycles" })));
  roofline(roof);
  host.append(make("div", { className: "columns" }, time_, memory, top, roof));
  host.append(aboutProgram());
});

/** What to look at, and what can be done. */
function warningList() {
  return make("section", { className: "panel" }, make("h2", { textContent: "What to look at" }),
    make("ul", { className: "warnings" }, ...data.warnings.map(each => {
      const item = make("li", { className: each.bad ? "bad" : "" }, linkish(each.text, () => go(each.go)));
      item.append(make("small", { textContent: each.advice }));
      return item;
    })));
}

function aboutProgram() {
  const about = make("section", { className: "panel" }, make("h2", { textContent: "About this program" }), pairs([
    ["levels", P.levels.join(" → ")], ["operations", Object.entries(P.operations_by_level).map(([level, n]) => `${level} ${digits(n)}`).join(", ")],
    ["seconds of compiling", Object.entries(P.seconds_by_stage).filter(([name]) => !["run", "load"].includes(name)).map(([name, s]) => `${name} ${s.toFixed(2)}`).join(", ")]]));
  about.querySelector("dl").classList.add("left");
  about.append(...P.notes.map(line => make("p", { className: "note", textContent: line })));
  about.append(...Object.entries(data.absent).map(([name, why]) => make("p", { className: "note", textContent: `${name}: ${why}` })));
  return about;
}

function roofline(host) {
  const points = OPS.filter(op => op.macs > 0 && op.cycles > 0 && op.exchange_bytes > 0);
  if (!points.length) { host.append(make("p", { className: "note", textContent: "No operation is known to multiply." })); return; }
  const W = 640, H = 330, left = 52, right = 14, top = 12, low = 40;
  const peak = P.target.peak_macs_per_cycle, receive = P.target.receive_bytes_per_cycle;
  const x0 = Math.floor(Math.log10(Math.min(...points.map(op => op.macs / op.exchange_bytes), peak / receive))), x1 = Math.ceil(Math.log10(Math.max(...points.map(op => op.macs / op.exchange_bytes), peak / receive)));
  const y0 = Math.floor(Math.log10(Math.min(...points.map(op => op.macs / op.cycles)))), y1 = Math.ceil(Math.log10(peak * 1.3));
  const x = v => left + (Math.log10(v) - x0) / (x1 - x0) * (W - left - right), y = v => H - low - (Math.log10(v) - y0) / (y1 - y0) * (H - low - top);
  const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, width: "100%", role: "img", "aria-label": "roofline" });
  for (let k = x0; k <= x1; k++) picture.append(svg("path", { class: "axis", d: `M${x(10 ** k)} ${top}V${H - low}` }), svg("text", { x: x(10 ** k), y: H - low + 15, "text-anchor": "middle" }, short(10 ** k)));
  for (let k = y0; k <= y1; k++) picture.append(svg("path", { class: "axis", d: `M${left} ${y(10 ** k)}H${W - right}` }), svg("text", { x: left - 6, y: y(10 ** k) + 4, "text-anchor": "end" }, short(10 ** k)));
  picture.append(svg("text", { x: (W + left) / 2, y: H - 6, "text-anchor": "middle" }, "MACs for each byte received"), svg("text", { x: 12, y: H / 2 - 10, transform: `rotate(-90 12 ${H / 2 - 10})`, "text-anchor": "middle" }, "MACs a cycle"));
  const knee = peak / receive, start = Math.max(10 ** x0, 10 ** y0 / receive);
  picture.append(svg("path", { class: "roof two", d: `M${x(start)} ${y(start * receive)}L${x(knee)} ${y(peak)}` }), svg("path", { class: "roof", d: `M${x(knee)} ${y(peak)}H${W - right}` }));
  picture.append(svg("text", { x: W - right - 4, y: y(peak) - 6, "text-anchor": "end" }, "peak of the matrix units"), svg("text", { x: x(Math.max(start, knee / 30)) + 6, y: y(Math.max(start, knee / 30) * receive) - 6, "text-anchor": "start" }, "exchange"));
  const vector = P.target.vector_bytes_per_cycle / 4;
  if (vector < peak) picture.append(svg("path", { class: "roof three", d: `M${left} ${y(vector)}H${W - right}` }), svg("text", { x: W - right - 4, y: y(vector) - 6, "text-anchor": "end" }, "local memory, if each MAC reads 4 bytes"));
  const most = Math.max(...points.map(op => op.cycles));
  for (const op of points.toSorted((a, b) => b.cycles - a.cycles)) {
    const dot = svg("circle", { class: "dot", cx: x(op.macs / op.exchange_bytes), cy: y(op.macs / op.cycles), r: 3 + 9 * Math.sqrt(op.cycles / most), tabindex: 0, role: "button", "aria-label": op.name });
    dot.addEventListener("mousemove", event => showTip(event.clientX, event.clientY, [op.name, `${percent(op.macs / op.cycles / peak)} of the peak, ${share(op.cycles)} of the cycles`, op.limited_by && `limited by ${op.limited_by}`]));
    dot.addEventListener("mouseleave", hideTip);
    dot.addEventListener("click", () => go({ op: op.operation }));
    dot.addEventListener("keydown", event => { if (event.key === "Enter") go({ op: op.operation }); });
    picture.append(dot);
  }
  host.append(picture);
  const others = OPS.filter(op => !points.includes(op));
  if (others.length) host.append(make("p", { className: "note", textContent: `${count(others.length, "operation")} with ${share(sum(others, op => op.cycles))} of the cycles ${others.length === 1 ? "is" : "are"} not shown: without multiplications, or without exchange.` }));
}
