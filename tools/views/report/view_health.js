/* Health: how close the results of each operation come to the limits of their type, step by step. */

let healthMeasure = "near", healthStep = -1, healthPhase = "";
function viewHealth() {
  const counts = rowsOf(data.health.counts), steps = [...new Set(counts.map(each => each.step))].sort((a, b) => a - b);
  const column = new Map(steps.map((step, k) => [step, k]));
  const of = (each, name) => each.elements ? each[name] / each.elements : 0;
  const limitOf = each => data.health.limits[each.type];
  const MEASURES = [
    ["near", "near the limit", each => of(each, "near"), percent],
    ["overflow", "overflow", each => each.clipped + each.infinities + each.nans, digits],
    ["zeros", "zeros", each => of(each, "zeros"), percent],
    ["subnormals", "subnormal", each => of(each, "subnormals"), percent],
    ["largest", "largest", each => each.largest / limitOf(each), percent],
  ];
  const rows = new Map();
  for (const each of counts) {
    const name = `${each.operation} ${each.type}`, op = opOf(each.operation);
    if (!rows.has(name)) rows.set(name, { operation: each.operation, type: each.type, name: opName(each.operation), phase: op?.phase || "", line: op ? placeOf(op) : "", steps: Array(steps.length).fill(null) });
    rows.get(name).steps[column.get(each.step)] = each;
  }
  const every = [...rows.values()];
  const measure = () => MEASURES.find(each => each[0] === healthMeasure);
  const valueAt = (row, k) => row.steps[k] ? measure()[2](row.steps[k]) : null;
  const worstOf = row => highest(row.steps.filter(Boolean), measure()[2], 0);
  view("health", "Health", host => {
    if (healthStep < 0 || healthStep >= steps.length) healthStep = steps.length - 1;
    const choose = make("select", { className: "field" }, ...MEASURES.map(([name, text]) => make("option", { value: name, textContent: text })));
    choose.value = healthMeasure; choose.setAttribute("aria-label", "Measure");
    const phases = make("select", { className: "field" }, ...["", ...new Set(every.map(row => row.phase).filter(Boolean))].map(text => make("option", { value: text, textContent: text || "all phases" })));
    phases.value = healthPhase; phases.setAttribute("aria-label", "Phase");
    const filter = make("input", { className: "field", type: "search", placeholder: "Filter: operation, type, line" });
    filter.setAttribute("aria-label", "Filter operations");
    const total = make("span", { className: "note" });
    host.append(make("div", { className: "tools" }, choose, phases, filter, total));
    let shown = [];
    const arrange = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      shown = every.filter(row => (!healthPhase || row.phase === healthPhase) && words.every(word => `${row.name} ${row.type} ${row.line}`.toLowerCase().includes(word)))
        .map(row => ({ ...row, worst: worstOf(row), room: highest(row.steps.filter(Boolean), each => each.largest / limitOf(each), 0) }))
        .toSorted((a, b) => b.worst - a.worst || b.room - a.room);
      total.textContent = `${count(shown.length, "row")}, ${count(steps.length, "recorded step")}; the worst first`;
    };
    arrange();
    const panel = make("section", { className: "panel" }, make("h2", {}, "Operations by step", make("small", { textContent: "click a step, or use the arrows; a click also opens the operation" })));
    host.append(panel);
    const high = 15, label = 260, up = 20, MOST = 26;
    const kept = () => shown.slice(0, MOST);
    const cell = (x, y) => { const k = Math.floor((x - label) / (chart.width - label - 8) * steps.length), r = Math.floor((y - up) / high); return k >= 0 && k < steps.length && kept()[r] ? [k, r] : null; };
    // Shares are drawn by their square root, counts by their logarithm, and the largest number by the powers of two that it is below the limit.
    const POWERS = 32, shades = {
      largest: value => value ? Math.max(0, 1 + Math.log2(value) / POWERS) : 0,
      overflow: value => Math.log10(1 + value) / Math.log10(1 + highest(shown, row => row.worst, 1)),
    };
    const shade = value => (shades[healthMeasure] || Math.sqrt)(value);
    const chart = canvas(panel, () => up + Math.max(1, kept().length) * high + 4, (pen, width) => {
      const wide = (width - label - 8) / steps.length;
      pen.fillStyle = css("--soft"); pen.textAlign = "center";
      for (let k = 0; k < steps.length; k += Math.max(1, stepOf(steps.length, 12))) pen.fillText(digits(steps[k]), label + (k + .5) * wide, 9);
      pen.textAlign = "left";
      kept().forEach((row, r) => {
        const y = up + r * high;
        pen.fillStyle = row.operation === place.op && place.op >= 0 ? css("--ink") : css("--soft");
        clipped(pen, row.name, 4, y + high / 2, label - 74); pen.fillText(row.type, label - 62, y + high / 2);
        for (let k = 0; k < steps.length; k++) {
          const value = valueAt(row, k);
          if (value === null) continue;
          pen.fillStyle = heat(shade(value)); pen.fillRect(label + k * wide, y, Math.max(wide - (wide > 4 ? 1 : 0), .6), high - 1);
          const bad = row.steps[k].clipped + row.steps[k].infinities + row.steps[k].nans;
          if (bad && wide > 3) { pen.strokeStyle = css("--worse"); pen.strokeRect(label + k * wide + .5, y + .5, Math.max(wide - 2, 1), high - 2); }
        }
      });
      pen.strokeStyle = css("--ink"); pen.strokeRect(label + healthStep * wide, up - 2, Math.max(wide - 1, 1), kept().length * high + 2);
    }, {
      label: "operations by step",
      tip: (x, y) => {
        const at = cell(x, y), row = at && kept()[at[1]], each = row && row.steps[at[0]];
        return each ? [`${row.name} · ${row.type}`, `step ${steps[at[0]]}: ${count(each.elements, "element")}, the largest ${each.largest.toPrecision(4)}, of ${limitOf(each).toPrecision(4)} that the type holds`, `${percent(of(each, "near"))} near the limit, ${percent(of(each, "zeros"))} zeros, ${percent(of(each, "subnormals"))} subnormal`, each.clipped + each.infinities + each.nans ? `${digits(each.clipped)} clipped, ${digits(each.infinities)} infinite, ${digits(each.nans)} NaN` : "", row.line] : null;
      },
      pick: (x, y) => { const at = cell(x, y); if (!at) return; healthStep = at[0]; go({ op: kept()[at[1]].operation }); table.arrange(); },
      key: name => { const by = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 }[name]; if (!by) return false; healthStep = Math.max(0, Math.min(steps.length - 1, healthStep + by)); chart.redraw(); table.arrange(); return true; },
    });
    const rest = make("p", { className: "note" });
    panel.append(key([[heat(0), "least"], [heat(.5), "more"], [heat(1), "most"], ["--worse", "overflow"]]), rest);
    healthScale(host);
    const below = make("section", { className: "panel fill" }, make("h2", {}, "One step"));
    host.append(below);
    const at = row => row.steps[healthStep], number = (name, text, width) => ({ name, label: text, width, num: true, value: row => at(row) ? at(row)[name] : null, text: row => at(row) ? digits(at(row)[name]) : "–", tone: row => at(row)?.[name] ? "greater" : "" });
    const part = (name, text) => ({ name, label: text, width: "92px", num: true, value: row => at(row) ? of(at(row), name) : null, text: row => at(row) ? percent(of(at(row), name)) : "–", share: row => at(row) ? of(at(row), name) : 0 });
    const table = grid(below, [
      { name: "name", label: "operation", width: "minmax(180px, 2fr)", value: row => row.name },
      { name: "type", label: "type", width: "76px", value: row => row.type },
      { name: "phase", label: "phase", width: "78px", value: row => row.phase },
      { name: "line", label: "line", width: "minmax(110px, 1fr)", code: true, value: row => row.line },
      { name: "elements", label: "elements", width: "90px", num: true, value: row => at(row)?.elements ?? null, text: row => at(row) ? digits(at(row).elements) : "–" },
      { name: "largest", label: "largest", width: "86px", num: true, value: row => at(row)?.largest ?? null, text: row => at(row) ? at(row).largest.toPrecision(4) : "–" },
      part("near", "near the limit"), part("zeros", "zeros"), part("subnormals", "subnormal"),
      number("clipped", "clipped", "70px"), number("infinities", "infinite", "70px"), number("nans", "NaN", "60px"),
    ], {
      label: "Health of one step", least: 1120, nothing: "no operation has all these words", isOn: row => row.operation >= 0 && row.operation === place.op,
      rows: compare => { below.querySelector("h2").textContent = `Step ${steps[healthStep]}`; return compare ? shown.toSorted(compare) : shown; },
      pick: row => row.operation >= 0 && go({ op: row.operation }),
    });
    table.node.style.flex = "1"; table.node.style.minHeight = "240px";
    const again = () => { arrange(); rest.textContent = shown.length > MOST ? `The picture shows the worst ${MOST}; the table below has all.` : ""; chart.redraw(); table.arrange(); };
    choose.addEventListener("change", () => { healthMeasure = choose.value; again(); });
    phases.addEventListener("change", () => { healthPhase = phases.value; again(); });
    filter.addEventListener("input", again);
    again();
    VIEWS.find(each => each.name === "health").update = () => { chart.redraw(); table.arrange(); };
  });
}

/** The automatic loss scale over steps, and the two bins that it follows: large gradients and the others. */
function healthScale(host) {
  const S = rowsOf({ step: data.health.scale.step, scale: data.health.scale.scale, large: data.health.scale.large });
  if (!S.length) return;
  const gradients = Math.max(data.health.scale.gradients, 1), left = 60, right = 10, up = 8, half = 64, low = 20;
  const powers = S.filter(each => each.scale !== null).map(each => Math.log2(each.scale));
  const top = highest(powers, x => x, 1), end = S.at(-1).step, begin = S[0].step;
  const panel = make("section", { className: "panel" }, make("h2", {}, term("loss scale"), make("small", { textContent: "above: the scale, as a power of two; below: gradients whose magnitude is at least an eighth of the largest float16 number, and the others" })));
  host.append(panel);
  const x = (step, width) => left + (step - begin + .5) / (end - begin + 1) * (width - left - right);
  const chart = canvas(panel, up + 2 * half + 18 + low, (pen, width, tall) => {
    yAxis(pen, left, up, width - left - right, half, top, v => `2^${Math.round(v)}`);
    pen.strokeStyle = css("--c1"); pen.lineWidth = 1.5; pen.beginPath();
    for (const each of S) if (each.scale !== null) pen.lineTo(x(each.step, width), up + half - Math.log2(each.scale) / top * half);
    pen.stroke(); pen.lineWidth = 1;
    const base = up + 2 * half + 18, wide = Math.max((width - left - right) / (end - begin + 1) - .5, .8);
    // A logarithm, because one large gradient in ten million already halves the scale.
    const shareOf = each => Math.log10(1 + each.large) / Math.log10(1 + gradients);
    for (const each of S) if (each.large !== null) {
      pen.fillStyle = css("--idle"); pen.fillRect(x(each.step, width) - wide / 2, base - half, wide, half);
      pen.fillStyle = css("--worse"); pen.fillRect(x(each.step, width) - wide / 2, base - shareOf(each) * half, wide, shareOf(each) * half);
    }
    pen.fillStyle = css("--soft"); pen.textAlign = "right"; pen.fillText("0", left - 6, base); pen.fillText(short(gradients), left - 6, base - half);
    pen.textAlign = "center";
    for (let step = begin; step <= end; step += stepOf(end - begin + 1, 10)) pen.fillText(digits(step), x(step, width), tall - 8);
    pen.textAlign = "left";
  }, {
    label: "loss scale over steps",
    tip: at => {
      const step = Math.round((at - left) / (chart.width - left - right) * (end - begin + 1) + begin - .5), each = S.find(row => row.step === step);
      return each ? [`step ${step}`, each.scale === null ? "" : `scale ${digits(each.scale)}`, each.large === null ? "" : `${digits(each.large)} of ${digits(gradients)} gradients are large`] : null;
    },
  });
  panel.append(key([["--c1", "loss scale"], ["--worse", "large gradients"], ["--idle", "other gradients"]]));
}
