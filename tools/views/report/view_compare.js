/* Compare: this program beside another one, aligned by nodes of the framework. */

function viewCompare() {
  const C = data.compared;
  view("compare", "Compare", host => {
    const signed = (n, show = digits) => n === 0 ? "=" : `${n > 0 ? "+" : "−"}${show(Math.abs(n))}`;
    const toneOf = n => n < 0 ? "less" : n > 0 ? "greater" : "";
    const change_ = (now, was) => was ? `${now >= was ? "+" : "−"}${Math.abs(100 * (now / was - 1)).toFixed(1)} %` : "new";
    host.append(make("p", { className: "note", textContent: `${P.name} on ${P.target.name}, beside the baseline ${C.baseline.name} on ${C.baseline.target.name}` }));
    if (C.note) host.append(make("p", { className: "greater", textContent: C.note }));
    host.append(make("div", { className: "figures" }, ...C.figures.map(each => {
      const node = figure(each.name.includes("bytes") ? bytes(each.now) : digits(each.now), each.name.replaceAll("_", " "), each.now === each.was ? "as before" : `${change_(each.now, each.was)}, was ${each.name.includes("bytes") ? bytes(each.was) : digits(each.was)}`);
      // Fewer cycles and bytes are better; other numbers are neither.
      node.lastChild.className = each.now === each.was || !/cycles|bytes/.test(each.name) ? "" : toneOf(each.now - each.was);
      return node;
    })));
    const filter = make("input", { className: "field", type: "search", placeholder: "Filter: operation, plan" }), only = make("input", { type: "checkbox", checked: true }), total = make("span", { className: "note" });
    filter.setAttribute("aria-label", "Filter differences");
    host.append(make("div", { className: "tools" }, filter, make("label", {}, only, " only differences"), total, make("span", { className: "note push", textContent: "the largest differences in cycles first" })));
    const most = highest(C.rows, row => Math.abs(row.cycles - row.was_cycles), 1);
    const table = grid(host, [
      { name: "name", label: "operation", width: "minmax(180px, 2fr)", value: row => row.name },
      { name: "now", label: "cycles", width: "84px", num: true, value: row => row.cycles, text: row => row.operation < 0 ? "–" : digits(row.cycles) },
      { name: "was", label: "before", width: "84px", num: true, value: row => row.was_cycles, text: row => row.is_new ? "–" : digits(row.was_cycles) },
      { name: "diff", label: "difference", width: "104px", num: true, value: row => row.cycles - row.was_cycles, text: row => signed(row.cycles - row.was_cycles), tone: row => toneOf(row.cycles - row.was_cycles), share: row => Math.abs(row.cycles - row.was_cycles) / most },
      { name: "bytes", label: "peak bytes", width: "84px", num: true, value: row => row.peak_bytes - row.was_peak_bytes, text: row => signed(row.peak_bytes - row.was_peak_bytes, bytes), tone: row => toneOf(row.peak_bytes - row.was_peak_bytes) },
      { name: "all", label: "all bytes", width: "84px", num: true, value: row => row.bytes - row.was_bytes, text: row => signed(row.bytes - row.was_bytes, bytes), tone: row => toneOf(row.bytes - row.was_bytes) },
      { name: "plan", label: "plan", width: "minmax(140px, 1.4fr)", code: true, value: row => row.split },
      { name: "before", label: "plan before", width: "minmax(140px, 1.4fr)", code: true, value: row => row.was_split, text: row => row.was_split === row.split ? "=" : row.was_split },
    ], {
      label: "Differences", least: 1020, nothing: "no operation differs", isOn: row => row.operation >= 0 && row.operation === place.op,
      rows: compare => {
        const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
        const kept = C.rows.filter(row => (!only.checked || row.differs) && words.every(word => `${row.name} ${row.split} ${row.was_split}`.toLowerCase().includes(word)));
        total.textContent = `${count(kept.length, "operation")} of ${digits(C.rows.length)}`;
        return compare ? kept.toSorted(compare) : kept;
      },
      pick: row => row.operation >= 0 && go({ op: row.operation }),
    });
    table.node.style.flex = "1"; table.node.style.minHeight = "300px";
    filter.addEventListener("input", table.arrange); only.addEventListener("change", table.arrange);
    VIEWS.find(each => each.name === "compare").update = () => table.arrange();
  });
}
