/* The report: its data, the place that the address names, the card of what was chosen, and search. */

const TERMS = {
  tile: "One of the machine's processors, with its own memory. A program runs on all of them at once.",
  tiles: "The machine's processors, each with its own memory. A program runs on all of them at once.",
  superstep: "Tiles meet (sync), exchange data, then compute alone until all have finished.",
  sync: "The time until all tiles have met at the beginning of a superstep.",
  exchange: "The time in which tiles send each other data. Nobody computes then.",
  compute: "The time in which tiles compute on their own memory. The slowest tile decides how long.",
  timetable: "When each message of an exchange leaves and arrives, as the lanes of its tiles allow.",
  idle: "A tile has finished and waits for the others.",
  waiting: "Neither the exchange nor the compute of a chip's busiest tile: tiles meet, or the chip waits for another one.",
  vertex: "One run of a small routine (codelet) on one worker of one tile.",
  vertices: "Runs of small routines (codelets) on the workers of tiles.",
  plan: "How an operation is split over tiles, and the method that computes it.",
  "runner-up": "The best plan with another split that the planner priced, and how much slower it is by estimate.",
  "limited by": "What keeps the operation from being faster: memory, padding, or its longest phase.",
  utilisation: "The share of what all tiles could do in the operation's cycles.",
  balance: "Mean compute of all tiles / compute of the slowest one. At 100 % no tile waits.",
  "critical tile": "The tile that exchanges and computes longest: the others wait for it.",
  "always live": "Weights and constants: in memory all the time.",
  "live now": "Results and copies that are in memory at the worst moment.",
  stashes: "What the stages of a pipeline keep for their backward stages, which run several micro-batches later.",
  gaps: "Bytes below the highest variable that are free at the worst moment.",
  code: "The routines that the tile runs, and its control program, by the target's rules.",
  "vertex state": "Pointers and counts of the tile's vertices, by the target's rules.",
  "exchange code": "Instructions that send and receive, by the target's rules.",
  stacks: "Stacks of the workers and of the supervisor, by the target's rules.",
  waits: "The value is in memory, but neither read nor written at that moment.",
  moment: "One superstep in the order of execution. A loop's body counts once.",
  roofline: "No operation can be above the lines: the peak of compute, or what the exchange brings.",
  intensity: "Multiplications for each byte that tiles receive.",
  "peak": "What all tiles together could do in a cycle.",
  "fullest tile": "The tile whose variables reach highest. It decides whether the program fits.",
  inclusive: "With everything inside.",
  exclusive: "Without what is inside.",
  "near the limit": "At least an eighth of the largest number of the type: 8,188 for float16.",
  subnormal: "Smaller than the smallest normal number of the type, so it has fewer digits.",
  clipped: "Equal to the largest number of the type, which a machine that clips makes of an overflow.",
  overflow: "A clipped number, an infinity or NaN.",
  "loss scale": "The power of two by which gradients are larger while they are computed.",
  "phase": "Of a step of training: forward, backward, or the update of the weights.",
};

let data, P, T, OPS, STEPS, VARIABLES, layerHue;
const place = { view: "summary", op: -1, step: -1, moment: -1, tile: -1 };
const VIEWS = [];

function prepare() {
  P = data.program; T = data.tables;
  OPS = rowsOf(T.operations); STEPS = rowsOf(T.supersteps); VARIABLES = rowsOf(T.variables);
  for (const op of OPS) Object.assign(op, { nodes_: op.nodes.split("+"), parts: [], steps: [], variables: [], plans: [], nodes: [] });
  const own = number => number >= 0 && number < OPS.length ? OPS[number] : null;
  rowsOf(T.parts).forEach(part => {
    const op = own(part.operation);
    if (op) { op.parts.push(part); if (op.steps.at(-1) !== part.superstep) op.steps.push(part.superstep); }
    (STEPS[part.superstep].parts ||= []).push(part);
  });
  for (const step of STEPS) {
    const end = /\/([^/+]+)$/.exec(step.name), op = own(step.operation);
    step.label = op && step.name.includes(op.nodes_[0]) ? op.name + (end ? `/${end[1]}` : "") : step.name;
  }
  VARIABLES.forEach(variable => own(variable.operation)?.variables.push(variable));
  rowsOf(T.plans).forEach(plan => own(plan.operation)?.plans.push(plan));
  rowsOf(T.provenance).forEach(node => own(node.operation)?.nodes.push(node));
  const layers = new Map();
  for (const op of OPS) if (!layers.has(op.layer)) layers.set(op.layer, layers.size);
  layerHue = op => op ? hue(layers.get(op.layer)) : css("--faint");
}
/** Where an operation is written, with what its line says if that is known. */
const placeOf = op => op.line && [op.line, data.sources[op.line]].filter(Boolean).join("  ");
const opOf = number => OPS[number] || null;
const opName = number => opOf(number)?.name ?? "(no operation)";
const share = cycles => percent(cycles / Math.max(P.cycles, 1));
const time = cycles => { const s = cycles / P.target.clock_hz; return s < 1e-6 ? `${(1e9 * s).toFixed(0)} ns` : s < 1e-3 ? `${(1e6 * s).toPrecision(3)} µs` : s < 1 ? `${(1e3 * s).toPrecision(3)} ms` : `${s.toPrecision(3)} s`; };

/* Where we are */

function toHash() {
  const parts = [place.view, ...["op", "step", "moment", "tile"].filter(name => place[name] >= 0).map(name => `${name}=${place[name]}`)];
  return "#" + parts.join("&");
}
function fromHash() {
  const [view, ...rest] = location.hash.slice(1).split("&");
  const next = { view: VIEWS.some(each => each.name === view) ? view : "summary", op: -1, step: -1, moment: -1, tile: -1 };
  for (const each of rest) { const [name, value] = each.split("="); if (name in next && /^\d+$/.test(value)) next[name] = Number(value); }
  const limits = { op: OPS.length, step: STEPS.length, tile: P.tiles, moment: T.moments.moment.length };
  for (const [name, most] of Object.entries(limits)) if (next[name] >= most) next[name] = -1;
  change(next);
}
/** Go somewhere: a view, an operation, a superstep, a moment or a tile. */
function go(to) {
  change({ ...place, ...to });
  const hash = toHash();
  // A page inside a notebook has no address of its own.
  try { if (location.hash !== hash) history.pushState(null, "", hash); } catch { /* it forgets the way back */ }
}
function change(next) {
  const fresh = next.view !== shownView;
  Object.assign(place, next);
  if (fresh) showView(); else VIEWS.find(each => each.name === place.view).update?.();
  showCard();
}
let shownView = "";
function showView() {
  hideTip();
  shownView = place.view;
  canvases = [];
  const view = VIEWS.find(each => each.name === place.view), host = $("view");
  for (const each of VIEWS) each.tab.setAttribute("aria-selected", String(each === view));
  host.replaceChildren(); host.scrollTop = 0;
  if (P.planned || view.outline) view.show(host);
  else host.append(make("p", { className: "note", textContent: `This view needs plans. ${data.absent.plans}` }));
  document.body.dataset.view = view.name;
}
const OUTLINE = ["summary", "memory", "operations", "graph", "provenance"];
/** A view. Those of OUTLINE also show a program that was not planned. */
function view(name, title, show) { const it = { name, title, show, outline: OUTLINE.includes(name) }; VIEWS.push(it); return it; }

/* The card */

const linkish = (text, act, title = "") => {
  const node = make("button", { type: "button", className: "linkish", textContent: text, title: title || text });
  node.addEventListener("click", act);
  return node;
};
function pairs(rows) {
  const list = make("dl", { className: "pairs" });
  for (const [name, value, words] of rows) {
    if (value === "" || value === null || value === undefined) continue;
    if (!words) list.append(make("dt", {}, TERMS[name] ? term(name) : name));
    list.append(make("dd", { className: words ? "words" : "" }, value));
  }
  return list;
}
function listOf(title, rows) {
  const most = 12, box = make("div", { className: "list" });
  const add = from => box.append(...rows.slice(from).map(([left, right]) => make("div", {}, left, make("span", { textContent: right }))));
  const all = rows.length;
  rows = rows.slice();
  if (all > most) {
    const rest = rows.slice(most); rows = rows.slice(0, most); add(0);
    const more = linkish(`${digits(rest.length)} more`, () => { more.remove(); rows = rest.slice(0, 400); add(0); });
    box.append(more);
  } else add(0);
  return all ? [make("h3", { textContent: title }), box] : [];
}

function showCard() {
  const card = $("card"), op = opOf(place.op);
  card.hidden = !op;
  if (!op) { redrawSoon(); return; }
  const close = make("button", { type: "button", className: "icon", textContent: "×", title: "Close (Esc)" });
  close.setAttribute("aria-label", "Close");
  close.addEventListener("click", () => go({ op: -1 }));
  const plan = op.plans.reduce((a, b) => !a || b.estimated_cycles * b.times > a.estimated_cycles * a.times ? b : a, null);
  const buttons = make("div", { className: "go" });
  const button = (text, act) => { const node = make("button", { type: "button", textContent: text }); node.addEventListener("click", act); buttons.append(node); };
  if (op.first_superstep >= 0) button("in time", () => go({ view: "execution", step: dearestStep(op) }));
  button("in memory", () => { memoryTab = "variables"; shownView = ""; go({ view: "memory" }); });
  if (P.planned) button("in the program", () => go({ view: "program", step: op.first_superstep }));
  if (data.graph.drawn.includes(op.operation)) button("in the graph", () => go({ view: "graph" }));
  button("source", () => go({ view: "provenance" }));
  for (const [name, href] of Object.entries(data.links)) buttons.append(make("a", { textContent: name, href: href.replace("{layer}", encodeURIComponent(op.name.split("+")[0])).replace("{}", encodeURIComponent(op.nodes[0]?.node ?? "")) }));
  card.replaceChildren(
    make("h2", {}, make("span", { textContent: op.name }), close),
    make("p", { className: "note", textContent: [op.kind, op.phase, op.line].filter(Boolean).join(" · ") }),
    ...(data.sources[op.line] ? [make("code", { className: "source", textContent: data.sources[op.line] })] : []),
    pairs([["result", op.shape], ["attributes", op.attributes]]),
    buttons,
    ...(P.planned ? [make("h3", { textContent: `cycles: ${share(op.cycles)} of the run, ${time(op.cycles)}` }),
    bar([[op.compute_cycles, "--compute", "compute"], [op.exchange_cycles, "--exchange-c", "exchange"], [op.sync_cycles, "--sync", "sync"]]),
    pairs([["cycles", digits(op.cycles)], ["compute", digits(op.compute_cycles)], ["exchange", digits(op.exchange_cycles)], ["sync", digits(op.sync_cycles)], ["received", bytes(op.exchange_bytes)],
      ["vertices", digits(op.vertices)], ["MACs", op.macs ? short(op.macs) : ""], ["utilisation", op.utilisation === null ? "" : `${percent(op.utilisation)} of ${op.peak}`], ["limited by", op.limited_by]])] : []),
    ...(op.plan ? [make("h3", { textContent: "plan" }), pairs([["", op.plan, true], ["split", op.split], ["method", op.method], ["tiles", plan ? digits(plan.tiles) : ""], ["runner-up", op.runner_up ? `${op.runner_up} (${slower(op.runner_up_slower)})` : ""],
      ["estimated cycles", plan ? short(plan.estimated_cycles * plan.times) : ""], ["temporary bytes", plan ? `${bytes(plan.temporary_bytes)} of ${bytes(plan.limit_bytes)}` : ""]])] : []),
    ...alternativesOf(op),
    make("h3", { textContent: "memory" }),
    pairs([["weights, all tiles", bytes(op.resident_bytes)], ["values, all tiles", bytes(op.value_bytes)], ["on the fullest tile", P.planned ? bytes(op.peak_bytes) : ""]]),
    ...listOf("supersteps", op.steps.map(k => [linkish(STEPS[k].label, () => go({ view: "execution", step: k }), STEPS[k].name), short(STEPS[k].times * STEPS[k].cycles)])),
    ...listOf("variables", op.variables.toSorted((a, b) => b.bytes - a.bytes).map(each => [make("span", { textContent: `${each.name} · ${each.kind}`, title: each.name }), bytes(each.bytes)])),
    ...listOf("made from", op.nodes.map(each => [make("span", { textContent: each.node }), each.line])),
  );
  redrawSoon();
}
const slower = value => value === null ? "–" : value < 0 ? `${percent(-value)} faster alone` : `${percent(value)} slower`;
const dearestStep = op => op.steps.reduce((a, b) => STEPS[b].times * STEPS[b].cycles > STEPS[a].times * STEPS[a].cycles ? b : a, op.first_superstep);

/** The plans of an operation by cycles and bytes, as a small picture. */
function alternativesOf(op) {
  const every = data.alternatives[op.operation] || [];
  if (every.length < 2) return [];
  const W = 336, H = 120, left = 40, low = 22;
  const cycles = every.map(each => each[0]), sizes = every.map(each => each[1]);
  const x = v => left + (v - Math.min(...cycles)) / (Math.max(...cycles) - Math.min(...cycles) || 1) * (W - left - 16) + 4;
  const y = v => H - low - (v - Math.min(...sizes)) / (Math.max(...sizes) - Math.min(...sizes) || 1) * (H - low - 14);
  const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, width: "100%", role: "img", "aria-label": "plans by cycles and bytes" });
  picture.append(svg("path", { class: "axis", d: `M${left} 4V${H - low + 6}H${W}`, fill: "none" }));
  for (const [v, text] of [[Math.min(...cycles), "start"], [Math.max(...cycles), "end"]]) picture.append(svg("text", { x: x(v), y: H - 4, "text-anchor": text }, short(v)));
  for (const v of new Set([Math.min(...sizes), Math.max(...sizes)])) picture.append(svg("text", { x: left - 4, y: y(v) + 4, "text-anchor": "end" }, short(v)));
  for (const [c, b, split, chosen, best] of every.toSorted((a, b) => a[3] - b[3])) {
    const dot = svg("circle", { class: `dot${chosen ? " on" : ""}`, cx: x(c), cy: y(b), r: chosen ? 6 : 4 });
    dot.addEventListener("mousemove", event => showTip(event.clientX, event.clientY, [split, `${digits(Math.round(c))} cycles`, `${bytes(b)} of the fullest tile`, chosen ? "chosen" : best ? "no other plan is better in both" : ""]));
    dot.addEventListener("mouseleave", hideTip);
    picture.append(dot);
  }
  return [make("h3", { textContent: "other plans: cycles (across), bytes of a tile (up)" }), picture];
}
function svg(tag, attributes = {}, text = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text) node.textContent = text;
  return node;
}

/* Search */

let hits = [], hitAt = -1;
function search(text) {
  const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean), box = $("hits");
  hits = []; hitAt = -1;
  box.hidden = !words.length; box.replaceChildren();
  if (!words.length) return;
  const match = each => words.every(word => each.toLowerCase().includes(word));
  const found = [
    ["operations", OPS.filter(op => match(`${op.name} ${op.nodes.map(n => n.node).join(" ")} ${op.line} ${op.kind}`)).map(op => [op.name, `${share(op.cycles)} of the cycles`, { op: op.operation, view: place.view === "summary" ? "operations" : place.view }])],
    ["supersteps", STEPS.filter(step => match(`${step.name} ${step.label}`)).map(step => [step.label, `${short(step.times * step.cycles)} cycles`, { view: "execution", step: step.superstep }])],
    ["variables", VARIABLES.filter(each => match(`${each.name} ${each.origin}`)).map(each => [each.name, bytes(each.bytes), { view: "memory", op: each.operation }])],
  ];
  for (const [title, all] of found) {
    if (!all.length) continue;
    box.append(make("h3", { textContent: `${title}: ${digits(all.length)}` }));
    for (const [name, more, to] of all.slice(0, 8)) {
      const button = make("button", { type: "button", title: name }, make("span", { textContent: name }), make("small", { textContent: more }));
      const act = () => { box.hidden = true; if (to.view === "memory") { memoryTab = "variables"; shownView = ""; } go(to); };
      button.addEventListener("click", act);
      hits.push({ button, act }); box.append(button);
    }
  }
  if (!hits.length) box.append(make("p", { textContent: `nothing has “${text.trim()}”` }));
}
function nextHit(by) {
  if (!hits.length) return;
  hits[hitAt]?.button.classList.remove("on");
  hitAt = (hitAt + by + hits.length) % hits.length;
  hits[hitAt].button.classList.add("on"); hits[hitAt].button.scrollIntoView({ block: "nearest" });
}

/* Keys and words */

const KEYS = [["1 – 9", "the views"], ["/", "search"], ["↑ ↓ Enter", "move in a table, a list or a picture"], ["← → + − 0", "move and zoom in time and in the graph"], ["U F", "unfold and fold all layers of the graph"], ["T", "dark or light"], ["Esc", "close the details"], ["?", "this page"]];
function showWords() {
  const box = $("words");
  const close = make("button", { type: "button", className: "icon", textContent: "×" });
  close.setAttribute("aria-label", "Close"); close.addEventListener("click", () => box.close());
  const list = rows => make("dl", {}, ...rows.flatMap(([name, text]) => [make("dt", { textContent: name }), make("dd", { textContent: text })]));
  box.replaceChildren(make("h2", {}, "Keys", close), list(KEYS), make("h2", { textContent: "Words" }), list(Object.entries(TERMS)));
  if (!box.open) box.showModal();
}

/** A note about data that a view lacks; nothing if it has all. */
const lacks = name => data.absent[name] ? [make("p", { className: "note", textContent: data.absent[name] })] : [];

function listen() {
  $("query").addEventListener("input", event => search(event.target.value));
  $("query").addEventListener("focus", event => search(event.target.value));
  $("query").addEventListener("keydown", event => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); nextHit(event.key === "ArrowDown" ? 1 : -1); }
    else if (event.key === "Enter" && hits.length) hits[Math.max(0, hitAt)].act();
    else if (event.key === "Escape") { $("hits").hidden = true; event.target.blur(); event.stopPropagation(); }
  });
  document.addEventListener("mousedown", event => { if (!event.target.closest(".search")) $("hits").hidden = true; });
  $("theme").addEventListener("click", switchTheme);
  $("help").addEventListener("click", showWords);
  document.addEventListener("keydown", event => {
    if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey || $("words").open) return;
    const number = Number(event.key);
    if (event.key === "/") { event.preventDefault(); $("query").select(); }
    else if (event.key === "?") showWords();
    else if (event.key === "t" || event.key === "T") switchTheme();
    else if (event.key === "Escape") go({ op: -1 });
    else if (number >= 1 && number <= VIEWS.length) go({ view: VIEWS[number - 1].name });
  });
  addEventListener("resize", redrawSoon);
  addEventListener("popstate", fromHash);
  themed.add(redrawSoon);
}

async function start() {
  data = await unpacked("data");
  prepare();
  if (P.target.chips > 1) viewChips();
  if (data.compared) viewCompare();
  if (data.health) viewHealth();
  $("title").textContent = P.name; $("title").title = P.name;
  $("target").textContent = `on ${P.target.name}, ${P.target.chips > 1 ? `${P.target.chips} chips, ` : ""}${count(P.target.tiles, "tile")}`;
  VIEWS.forEach((each, k) => {
    each.tab = make("button", { type: "button", textContent: each.title, title: `${each.title} (${k + 1})` });
    each.tab.setAttribute("role", "tab"); each.tab.dataset.view = each.name;
    each.tab.addEventListener("click", () => go({ view: each.name }));
    $("tabs").append(each.tab);
  });
  listen();
  fromHash();
  document.body.dataset.ready = "yes";
}
