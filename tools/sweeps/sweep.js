"use strict";
/* The page of a sweep: a picture of all points, and their rows. */

const HUES = ["#3f7fb0", "#c0568a", "#2f8663", "#c48a2c", "#7a5fb0", "#b0503f", "#3fa0a8", "#8a8f2f", "#5b6b7a", "#a86b3f"];
const SVG = "http://www.w3.org/2000/svg";
const draw = (name, props, ...inner) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(props)) node.setAttribute(key, value);
  node.append(...inner);
  return node;
};
const shown = value => value === null || value === undefined ? "" : typeof value !== "number" ? String(value) : Number.isInteger(value) || Math.abs(value) >= 1000 ? digits(Math.round(value)) : String(Number(value.toPrecision(4)));

function ticks(low, high, log) {
  if (log) {
    const found = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
      for (const k of [1, 2, 5]) found.push(k * 10 ** e);
    return found.filter(v => v >= low && v <= high);
  }
  const raw = (high - low) / 6 || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(k => k * power).find(s => s >= raw), found = [];
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) found.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return found;
}

unpacked("data").then(data => {
  const { columns, kinds } = data, size = columns.point.length;
  const numeric = Object.keys(kinds).filter(name => kinds[name] === "integer" || kinds[name] === "number");
  const fits = k => columns.status[k] === "fits";
  let chosen = null, sorted = "point", falling = false;
  $("title").textContent = data.title;
  const failures = [...Array(size).keys()].filter(k => !fits(k)).length;
  $("counts").textContent = `${count(size, "point")}, ${digits(failures)} of them without figures, ${digits(data.front.filter(Boolean).length)} on a front`;
  const fill = (id, names, first) => {
    for (const name of names) $(id).append(make("option", { value: name, textContent: name.replaceAll("_", " ") }));
    $(id).value = names.includes(first) ? first : names[0];
    $(id).addEventListener("change", picture);
  };
  const goal = k => data.goals[k].replace(/^\w+\s+/, "");
  const colours = ["model", "target", ...data.keys, "binds"].filter((name, k, all) => all.indexOf(name) === k && name in kinds);

  function picture() {
    const svg = $("plot"), width = svg.clientWidth || 900, height = 460;
    const [left, right, top, bottom] = [80, 16, 12, 46];
    const x = columns[$("x").value], y = columns[$("y").value], by = $("colour").value;
    const dots = [...Array(size).keys()].filter(k => fits(k) && x[k] !== null && y[k] !== null);
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    if (!dots.length) { svg.append(draw("text", { x: width / 2, y: height / 2 }, "no point has these figures")); return; }
    const scale = (values, log, from, to) => {
      const own = dots.map(k => values[k]);
      let low = Math.min(...own), high = Math.max(...own);
      const isLog = log && low > 0;
      if (isLog) { low /= 1.15; high *= 1.15; } else { const room = (high - low || Math.abs(high) || 1) * .06; low -= room; high += room; }
      const f = isLog ? Math.log : v => v;
      const place = v => from + (to - from) * (f(v) - f(low)) / (f(high) - f(low));
      return { place, marks: ticks(low, high, isLog) };
    };
    const across = scale(x, $("logx").checked, left, width - right), up = scale(y, $("logy").checked, height - bottom, top);
    for (const v of across.marks) svg.append(
      draw("line", { x1: across.place(v), x2: across.place(v), y1: top, y2: height - bottom }),
      draw("text", { x: across.place(v), y: height - bottom + 16, "text-anchor": "middle" }, shown(v)));
    for (const v of up.marks) svg.append(
      draw("line", { x1: left, x2: width - right, y1: up.place(v), y2: up.place(v) }),
      draw("text", { x: left - 6, y: up.place(v) + 4, "text-anchor": "end" }, shown(v)));
    svg.append(draw("text", { x: (left + width) / 2, y: height - 8, "text-anchor": "middle" }, $("x").value.replaceAll("_", " ")),
      draw("text", { x: 14, y: height / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${height / 2})` }, $("y").value.replaceAll("_", " ")));
    const groups = [...new Set(dots.map(k => columns[by][k]))];
    const hue = value => HUES[groups.indexOf(value) % HUES.length];
    for (const k of dots) {
      const dot = draw("circle", { cx: across.place(x[k]), cy: up.place(y[k]), r: data.front[k] ? 6 : 4.5, fill: hue(columns[by][k]),
        class: `${data.front[k] ? "front" : ""} ${data.allowed[k] ? "" : "out"} ${k === chosen ? "chosen" : ""}` },
        draw("title", {}, words(k)));
      dot.addEventListener("click", () => choose(k, true));
      svg.append(dot);
    }
    $("key").replaceChildren(...groups.slice(0, 40).map(value => make("span", {}, Object.assign(make("i"), { style: `background:${hue(value)}` }), shown(value) || "–")));
  }

  const words = k => ["model", "target", "chips", "tiles", ...data.keys, $("x").value, $("y").value, "binds", "status", "reason"]
    .filter((name, at, all) => all.indexOf(name) === at && columns[name][k] !== null && columns[name][k] !== "")
    .map(name => `${name.replaceAll("_", " ")}: ${shown(columns[name][k])}`).join("\n");

  function choose(k, scroll) {
    chosen = k;
    $("tip").textContent = words(k);
    $("tip").hidden = false;
    for (const row of $("rows").tBodies[0].rows) {
      row.classList.toggle("chosen", row.dataset.k === String(k));
      if (scroll && row.dataset.k === String(k)) $("scroll").scrollTop = row.offsetTop - $("scroll").clientHeight / 2;
    }
    picture();
  }

  function table() {
    const names = Object.keys(kinds), head = make("tr");
    for (const name of names) {
      const cell = make("th", { textContent: name.replaceAll("_", " "), className: kinds[name] === "text" ? "text" : "" });
      cell.addEventListener("click", () => { falling = sorted === name && !falling; sorted = name; table(); });
      head.append(cell);
    }
    const order = [...Array(size).keys()].sort((a, b) => {
      const [p, q] = [columns[sorted][a], columns[sorted][b]];
      if (p === q) return a - b;
      if (p === null || q === null) return p === null ? 1 : -1;
      return (p < q ? -1 : 1) * (falling ? -1 : 1);
    });
    const body = make("tbody");
    for (const k of order) {
      const row = make("tr");
      row.dataset.k = k;
      row.classList.toggle("chosen", k === chosen);
      for (const name of names) row.append(make("td", { textContent: shown(columns[name][k]), className: kinds[name] === "text" ? "text" : "" }));
      row.addEventListener("click", () => choose(k, false));
      body.append(row);
    }
    $("rows").replaceChildren(make("thead", {}, head), body);
  }

  fill("x", numeric, goal(0));
  fill("y", numeric, goal(1));
  fill("colour", colours, "model");
  for (const [id, axis] of [["logx", "x"], ["logy", "y"]]) {
    const own = columns[$(axis).value].filter((v, k) => fits(k) && v !== null);
    $(id).checked = own.length > 0 && Math.min(...own) > 0 && Math.max(...own) > 30 * Math.min(...own);
    $(id).addEventListener("change", picture);
  }
  $("theme").addEventListener("click", switchTheme);
  table();
  onTheme(picture);
  addEventListener("resize", picture);
  document.body.dataset.ready = "yes";
});
