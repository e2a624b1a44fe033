/* Numbers, colours, canvases and tables. */

const UNITS = [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e3, " k"]];
function short(n) {
  const [size, unit] = UNITS.find(([size]) => Math.abs(n) >= size) || [1, ""];
  const value = n / size;
  return (size === 1 ? String(Math.round(value * 100) / 100) : value.toPrecision(3)) + unit;
}
const bytes = n => short(n) + (Math.abs(n) >= 1e3 ? "B" : " B");
const percent = (n, places = 1) => n === null || Number.isNaN(n) ? "–" : `${(100 * n).toFixed(places)} %`;
const sum = (values, of = x => x) => values.reduce((total, each) => total + of(each), 0);
/** The largest of many values, at least `least`. A call such as Math.max(...values) takes some 100,000 values at most. */
const highest = (values, of = x => x, least = 0) => values.reduce((most, each) => Math.max(most, of(each)), least);
/** The rows of a table that is given as columns. */
function rowsOf(columns) {
  const names = Object.keys(columns), length = names.length ? columns[names[0]].length : 0;
  return Array.from({ length }, (_, i) => Object.fromEntries(names.map(name => [name, columns[name][i]])));
}

const colours = new Map();
function css(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return colours.get(name);
}
themed.add(() => colours.clear());
const isDark = () => document.documentElement.dataset.theme === "dark";
const hue = k => `hsl(${(k * 137.508 + 150) % 360} ${isDark() ? "30% 56%" : "34% 48%"})`;
const RAMP = { light: ["#f1efe9", "#c3dcc9", "#63a883", "#21624a", "#0b2c21"], dark: ["#202627", "#1d453a", "#2f8663", "#8bd39a", "#f3f8c2"] };
const RAMPS = {};
for (const [theme, stops] of Object.entries(RAMP)) {
  const rgb = stops.map(each => [1, 3, 5].map(at => parseInt(each.slice(at, at + 2), 16)));
  RAMPS[theme] = Array.from({ length: 64 }, (_, k) => {
    const at = k / 63 * (rgb.length - 1), low = Math.min(Math.floor(at), rgb.length - 2), part = at - low;
    return `rgb(${rgb[low].map((c, i) => Math.round(c + part * (rgb[low + 1][i] - c))).join(" ")})`;
  });
}
const heat = share => RAMPS[isDark() ? "dark" : "light"][Math.max(0, Math.min(63, Math.round(share * 63)))];

/* Tips: the first line is strong. */

function showTip(x, y, lines) {
  const tip = $("tip");
  tip.replaceChildren(...lines.filter(Boolean).map((line, k) => make(k ? "span" : "b", { textContent: line })));
  tip.hidden = !lines.length;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(6, Math.min(x + 14, innerWidth - box.width - 6))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18}px`;
}
const hideTip = () => { $("tip").hidden = true; };

/** A word with a tip of one line. */
function term(word, text = word) {
  const node = make("span", { className: "term", textContent: text, tabIndex: 0 });
  const show = () => { const box = node.getBoundingClientRect(); showTip(box.left, box.bottom - 12, [word, TERMS[word]]); };
  node.addEventListener("mouseenter", show); node.addEventListener("focus", show);
  node.addEventListener("mouseleave", hideTip); node.addEventListener("blur", hideTip);
  return node;
}

/* Canvases: drawn again when the window or the theme changes, and forgotten with their view. */

let canvases = [];
function canvas(host, height, draw, options = {}) {
  const node = make("canvas", { tabIndex: options.key || options.tip ? 0 : -1 });
  if (options.label) node.setAttribute("aria-label", options.label);
  node.setAttribute("role", "img");
  if (options.pick || options.tip) node.classList.add("live");
  host.append(node);
  const it = {
    node,
    redraw() {
      const width = Math.max(host.clientWidth - padding(host), 40), tall = typeof height === "function" ? height() : height;
      const scale = devicePixelRatio || 1;
      node.width = width * scale; node.height = tall * scale; node.style.height = `${tall}px`;
      const pen = node.getContext("2d");
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.font = "11px system-ui, sans-serif"; pen.textBaseline = "middle";
      it.width = width; it.height = tall;
      draw(pen, width, tall);
    },
  };
  const at = event => { const box = node.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  if (options.tip) {
    node.addEventListener("mousemove", event => { const lines = options.tip(...at(event)); if (lines) showTip(event.clientX, event.clientY, lines); else hideTip(); });
    node.addEventListener("mouseleave", hideTip);
  }
  if (options.pick) node.addEventListener("click", event => options.pick(...at(event)));
  if (!options.key && options.tip) options.key = probe(() => it, options);
  if (options.key) node.addEventListener("blur", hideTip);
  if (options.key) node.addEventListener("keydown", event => { if (!event.ctrlKey && !event.metaKey && !event.altKey && options.key(event.key)) { event.preventDefault(); event.stopPropagation(); } });
  canvases.push(it);
  queueMicrotask(it.redraw);
  return it;
}
/** Keys of a picture that has nothing to step through: arrows move a point, whose tip is shown; Enter clicks there. */
function probe(of, options) {
  let at = null;
  return name => {
    const { node, width, height } = of(), [dx, dy] = options.step?.() ?? [width / 60, height / 20];
    const by = { ArrowLeft: [-dx, 0], ArrowRight: [dx, 0], ArrowUp: [0, -dy], ArrowDown: [0, dy] }[name];
    if (name === "Enter" && at && options.pick) { options.pick(...at); return true; }
    if (!by) return false;
    at ??= options.begin?.() ?? [width / 2, height / 2];
    const next = [Math.max(0, Math.min(width - 1, at[0] + by[0])), Math.max(0, Math.min(height - 1, at[1] + by[1]))];
    const lines = options.tip(...next);
    if (lines) at = next;
    const box = node.getBoundingClientRect(), shown = lines || options.tip(...at);
    if (shown) showTip(box.left + at[0], box.top + at[1], shown);
    return true;
  };
}
const padding = host => { const style = getComputedStyle(host); return parseFloat(style.paddingLeft) + parseFloat(style.paddingRight); };
const redrawAll = () => { for (const each of canvases) if (each.node.isConnected) each.redraw(); };
let waiting = 0;
function redrawSoon() { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(redrawAll); }

function clipped(pen, text, x, y, room) {
  if (room < 14) return;
  let shown = text;
  if (pen.measureText(shown).width > room) {
    let low = 0, high = text.length;
    while (low < high) { const mid = (low + high + 1) >> 1; if (pen.measureText(text.slice(0, mid) + "…").width <= room) low = mid; else high = mid - 1; }
    shown = low > 1 ? text.slice(0, low) + "…" : "";
  }
  pen.fillText(shown, x, y);
}

/** A round step that cuts a range into about so many parts. */
function stepOf(range, parts) {
  const raw = range / Math.max(parts, 1), size = 10 ** Math.floor(Math.log10(raw || 1));
  return [1, 2, 5, 10].map(k => k * size).find(each => each >= raw) || size;
}

function yAxis(pen, left, top, width, tall, most, show) {
  const step = stepOf(most, 4);
  pen.textAlign = "right";
  for (let v = 0; v <= most * 1.0001; v += step) {
    const y = top + tall - v / most * tall;
    pen.fillStyle = css("--line"); pen.fillRect(left, Math.round(y), width, 1);
    pen.fillStyle = css("--soft"); pen.fillText(show(v), left - 6, y);
  }
  pen.textAlign = "left";
}

function dashed(pen, x, y, width, colour, text, below = false) {
  pen.strokeStyle = colour; pen.setLineDash([5, 4]);
  pen.beginPath(); pen.moveTo(x, y); pen.lineTo(x + width, y); pen.stroke(); pen.setLineDash([]);
  pen.fillStyle = colour; pen.textAlign = "right"; const room = pen.measureText(text).width + 8, at = below ? y + 10 : y - 9;
  pen.fillStyle = css("--paper"); pen.globalAlpha = .82; pen.fillRect(x + width - room, at - 7, room, 14); pen.globalAlpha = 1;
  pen.fillStyle = colour; pen.fillText(text, x + width - 4, at); pen.textAlign = "left";
}

/* A horizontal bar of parts: [[value, colour, name]] */

function bar(parts, whole) {
  const total = whole || sum(parts, each => each[0]) || 1;
  const node = make("div", { className: "bar" });
  for (const [value, colour, name] of parts) {
    const part = make("i");
    part.style.width = `${100 * value / total}%`; part.style.background = `var(${colour})`;
    part.title = `${name}: ${digits(value)} (${percent(value / total)})`;
    node.append(part);
  }
  return node;
}

function key(parts) {
  return make("div", { className: "key" }, ...parts.map(([colour, name, text]) => {
    const swatch = make("i"); swatch.style.background = colour.startsWith("--") ? `var(${colour})` : colour;
    return make("span", {}, swatch, TERMS[name] ? term(name) : name, ...(text ? [make("b", { textContent: text })] : []));
  }));
}

/* A table of many rows. columns: {name, label, tip, num, width, value(row), text(row), share(row), tone(row)} */

const ROW = 26;
function grid(host, columns, options) {
  const outer = make("div", { className: "outer" }), box = make("div", { className: "grid" }, outer);
  const head = make("div", { className: "head" }), body = make("div", { className: "body", tabIndex: 0 });
  const space = make("div");
  body.setAttribute("role", "grid"); body.setAttribute("aria-label", options.label);
  body.append(space); outer.append(head, body); host.append(box);
  box.style.setProperty("--columns", columns.map(each => each.width).join(" "));
  box.style.setProperty("--least", `${options.least || 0}px`);
  box.classList.add(...(options.className || "").split(" ").filter(Boolean));
  let rows = [], order = options.sort || null, at = -1;
  const heads = columns.map(column => {
    const node = make("button", { type: "button", textContent: column.label, title: column.tip || TERMS[column.label] || "" });
    if (column.num) node.className = "num";
    node.addEventListener("click", () => {
      const down = order && order.name === column.name ? !order.down : Boolean(column.num);
      order = { name: column.name, down };
      arrange();
    });
    head.append(node);
    return node;
  });
  function compare(a, b) {
    const column = columns.find(each => each.name === order.name);
    const x = column.value(a), y = column.value(b);
    if (x === null || y === null) return (x === null) - (y === null);
    const found = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
    return order.down ? -found : found;
  }
  function arrange() {
    rows = options.rows(order ? compare : null);
    columns.forEach((column, k) => {
      if (order && order.name === column.name) heads[k].setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else heads[k].removeAttribute("aria-sort");
      heads[k].textContent = column.label + (order && order.name === column.name ? order.down ? " ↓" : " ↑" : "");
    });
    space.style.height = `${rows.length * ROW}px`;
    at = rows.findIndex(row => options.isOn && options.isOn(row));
    paint();
  }
  function paint() {
    const first = Math.max(0, Math.floor(body.scrollTop / ROW) - 6), last = Math.min(rows.length, Math.ceil((body.scrollTop + body.clientHeight) / ROW) + 6);
    const shown = [space];
    for (let k = first; k < last; k++) {
      const row = rows[k], node = make("div", { className: "row" });
      node.setAttribute("role", "row");
      if (row.group) node.classList.add("group");
      if (row.group && row.depth) node.classList.add("inner");
      if (k === at) node.classList.add("on");
      node.style.top = `${k * ROW}px`;
      for (const column of columns) {
        const cell = make("span", { className: column.num ? "num" : column.code ? "code" : "" });
        cell.setAttribute("role", "gridcell");
        const tone = column.tone?.(row);
        if (tone) cell.classList.add(tone);
        const text = column.text ? column.text(row) : String(column.value(row) ?? "");
        if (column.share) { const mark = make("u"); mark.style.width = `${100 * Math.max(0, Math.min(1, column.share(row)))}%`; cell.append(mark); }
        cell.append(make("em", { textContent: text }));
        cell.title = column.num ? "" : text;
        node.append(cell);
      }
      node.addEventListener("click", () => pick(k));
      shown.push(node);
    }
    if (!rows.length) shown.push(make("p", { className: "none", textContent: options.nothing || "nothing here" }));
    body.replaceChildren(...shown);
  }
  function pick(k) { if (k < 0 || k >= rows.length) return; at = k; options.pick?.(rows[k]); paint(); }
  body.addEventListener("scroll", paint);
  body.addEventListener("keydown", event => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12, Home: -1e9, End: 1e9 }[event.key];
    if (by !== undefined && rows.length) {
      event.preventDefault();
      const next = Math.max(0, Math.min(rows.length - 1, (at < 0 ? -1 : at) + by));
      pick(next);
      const y = next * ROW;
      if (y < body.scrollTop) body.scrollTop = y;
      else if (y + ROW > body.scrollTop + body.clientHeight) body.scrollTop = y + ROW - body.clientHeight;
    } else if (event.key === "Enter" && at >= 0) { event.preventDefault(); options.open ? options.open(rows[at]) : options.pick?.(rows[at]); }
  });
  new ResizeObserver(() => { box.style.setProperty("--bar", `${body.offsetWidth - body.clientWidth}px`); paint(); }).observe(body);
  arrange();
  return { arrange, paint, node: box, get rows() { return rows; } };
}

/* Tiles as a plan: row by row in the order of their numbers. */

function floorPlan(host, tiles, value, describe, options = {}) {
  const across = Math.max(1, Math.min(tiles, Math.ceil(Math.sqrt(tiles * 2))));
  const down = Math.ceil(tiles / across);
  let cell = 1, most = 1;
  const height = () => Math.max(24, Math.min(Math.floor(Math.max(host.clientWidth - padding(host), 40) / across), options.cell || 22) * down + 2);
  const tileAt = (x, y) => { const t = Math.floor(y / cell) * across + Math.floor(x / cell); return x < cell * across && t >= 0 && t < tiles ? t : -1; };
  return canvas(host, height, (pen, width) => {
    cell = Math.max(2, Math.min(Math.floor(width / across), options.cell || 22));
    most = options.most ? options.most() : 0;
    if (!most) for (let t = 0; t < tiles; t++) most = Math.max(most, value(t));
    let least = Infinity; for (let t = 0; t < tiles; t++) least = Math.min(least, value(t));
    // Where all tiles are nearly alike, colours show how they differ.
    if (!options.range || least < most / 2 || least === most) least = 0;
    options.range?.(least, most);
    for (let t = 0; t < tiles; t++) {
      pen.fillStyle = heat((value(t) - least) / (most - least || 1));
      pen.fillRect((t % across) * cell, Math.floor(t / across) * cell, cell - (cell > 5 ? 1 : 0), cell - (cell > 5 ? 1 : 0));
      if (options.isOver?.(t)) { pen.strokeStyle = css("--worse"); pen.globalAlpha = .6; pen.strokeRect((t % across) * cell + .5, Math.floor(t / across) * cell + .5, cell - 2, cell - 2); pen.globalAlpha = 1; }
    }
    const on = options.selected?.();
    // A light and a dark line, of which one can be seen on any colour.
    if (on >= 0) for (const [name, wide] of [["--paper", 5], ["--ink", 2]]) { pen.strokeStyle = css(name); pen.lineWidth = wide; pen.strokeRect((on % across) * cell - .5, Math.floor(on / across) * cell - .5, cell, cell); pen.lineWidth = 1; }
  }, {
    label: options.label,
    tip: (x, y) => { const t = tileAt(x, y); return t < 0 ? null : describe(t); },
    pick: options.pick ? (x, y) => { const t = tileAt(x, y); if (t >= 0) options.pick(t); } : null,
    key: options.pick ? name => {
      const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[name];
      if (by === undefined) return false;
      options.pick(Math.max(0, Math.min(tiles - 1, Math.max(options.selected?.() ?? 0, 0) + by)));
      return true;
    } : null,
  });
}
/** The key of a heat map. */
function heatKey(low, high) {
  const ramp = make("i"); ramp.style.cssText = "width:110px;height:9px";
  const paint = () => { ramp.style.background = `linear-gradient(90deg, ${[0, .25, .5, .75, 1].map(heat).join(", ")})`; };
  paint(); themed.add(paint);
  return make("div", { className: "key" }, make("span", {}, low, ramp, high));
}
