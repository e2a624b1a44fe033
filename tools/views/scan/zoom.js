(async () => {
  const made = (tag, text, parent, style) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    Object.assign(element.style, style || {});
    parent?.append(element);
    return element;
  };
  const data = await unpacked("data");
  const number = digits;

  // The picture.
  const sourceOf = (name) => ({
    width: data.size,
    height: data.size,
    tileSize: data.tile,
    tileOverlap: data.overlap,
    minLevel: data.levels[0],
    maxLevel: data.levels[1],
    getTileUrl: (level, x, y) => `${name}/${level}/${x}_${y}.webp`,
  });
  const viewer = OpenSeadragon({
    element: $("view"),
    // Browsers draw local files on a canvas, but do not read them into a texture.
    drawer: "canvas",
    showNavigationControl: false,
    showNavigator: false,
    maxZoomPixelRatio: 4,
    visibilityRatio: 0.5,
    animationTime: 0.6,
    gestureSettingsMouse: { clickToZoom: false, dblClickToZoom: true },
    tileSources: sourceOf(data.colourings[0].name),
  });

  // Legend, and the switch between colourings.
  $("title").textContent = data.title;
  for (const line of data.lines) made("div", line, $("lines"));
  let shown = -1;
  const buttons = data.colourings.map((each, index) => {
    const button = made("button", each.name, $("colours"));
    button.type = "button";
    button.setAttribute("role", "radio");
    button.title = `${each.title} (${index + 1})`;
    button.addEventListener("click", () => colour(index));
    return button;
  });
  function colour(index) {
    if (index === shown || !data.colourings[index]) return;
    const first = shown < 0;
    shown = index;
    const each = data.colourings[index];
    buttons.forEach((button, k) => button.setAttribute("aria-checked", String(k === index)));
    $("meaning").textContent = `Colours: ${each.title}`;
    $("ramp").style.background = `linear-gradient(90deg, ${each.key.join(", ")})`;
    $("low").textContent = each.low;
    $("high").textContent = each.high;
    document.body.dataset.colour = each.name;
    if (!first)
      viewer.addTiledImage({ tileSource: sourceOf(each.name), index: 0, replace: true });
  }

  // A line of the model's source, and what it says if that is known.
  const written = (line) => [line, data.sources[line]].filter(Boolean).join("  ");

  // Layers: the list, the search, the names on the picture.
  const most = Math.max(...data.layers.map((layer) => layer.n));
  const rows = data.layers.map((layer, index) => {
    const row = made("button", undefined, $("layers"));
    row.type = "button";
    row.className = "layer";
    row.setAttribute("role", "option");
    const line = made("span", undefined, row);
    made("b", layer.name, line).title = [layer.name, ...layer.lines.map(written)].join("\n");
    made("i", number(layer.n), line);
    made("u", undefined, row, {
      width: `${(100 * layer.n) / most}%`,
      background: layer.colour,
    });
    row.addEventListener("click", () => go(index));
    return row;
  });
  let marked = -1;
  function mark(index) {
    marked = index;
    rows.forEach((row, k) => {
      row.classList.toggle("on", k === index);
      labels[k].classList.toggle("on", k === index);
      row.setAttribute("aria-selected", String(k === index));
    });
    rows[index]?.scrollIntoView({ block: "nearest" });
    place();
  }
  function go(index) {
    const [left, top, right, bottom] = data.layers[index].box;
    const wide = Math.max(right - left, 0.02), high = Math.max(bottom - top, 0.02);
    const box = new OpenSeadragon.Rect(left - wide * 0.2, top - high * 0.2, wide * 1.4, high * 1.4);
    viewer.viewport.fitBounds(box);
    mark(index);
    document.body.dataset.layer = data.layers[index].name;
  }
  const search = $("search");
  const found = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return data.layers.map((layer) => {
      const name = [layer.name, ...layer.lines].join(" ").toLowerCase();
      return words.every((word) => name.includes(word));
    });
  };
  let last = -1;
  search.addEventListener("input", () => {
    const yes = found();
    rows.forEach((row, k) => { row.hidden = !yes[k]; row.style.display = yes[k] ? "" : "none"; });
    $("none").hidden = yes.includes(true);
    last = -1;
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      // The same search again selects the next match, and the first after the last.
      const yes = found(), next = yes.indexOf(true, last + 1);
      last = next < 0 ? yes.indexOf(true) : next;
      if (last >= 0) go(last);
    } else if (event.key === "Escape") {
      search.value = "";
      search.dispatchEvent(new Event("input"));
      search.blur();
    }
    event.stopPropagation();
  });

  const biggest = data.layers.map((_, k) => k).sort((a, b) => data.layers[b].n - data.layers[a].n);
  const labels = data.layers.map((layer) => made("span", layer.name, $("labels")));
  // The width of a name, in units of its size. Measured once, because letters differ in width.
  labels.forEach((label) => { label.style.fontSize = "100px"; });
  const widths = labels.map((label) => label.offsetWidth / 100);
  labels.forEach((label) => { label.style.display = "none"; });
  const cells = {};
  for (const [name, text] of Object.entries(data.cells)) cells[name] = new Int32Array(await inflated(text));
  const middle = (cell) => new OpenSeadragon.Point(
    ((cell % data.grid) + 0.5) / data.grid, (Math.floor(cell / data.grid) + 0.5) / data.grid);
  // The layer of each cell, -1 for empty cells. Looked up for every frame.
  const layerAt = cells.set.map((set) => (set < 0 ? -1 : data.sets[set][1]));
  function cellsIn(bounds) {
    const held = [];
    const clip = (v) => Math.min(data.grid, Math.max(0, v * data.grid));
    const right = Math.ceil(clip(bounds.x + bounds.width)), bottom = Math.ceil(clip(bounds.y + bounds.height));
    for (let y = Math.floor(clip(bounds.y)); y < bottom; y++)
      for (let x = Math.floor(clip(bounds.x)); x < right; x++) {
        const cell = y * data.grid + x;
        if (layerAt[cell] >= 0) held.push(cell);
      }
    return held;
  }
  // For layers whose own place is out of sight: a cell in the middle of their visible cells.
  function elsewhere(bounds) {
    const away = data.layers.map(({ at: [x, y] }) => !bounds.containsPoint(new OpenSeadragon.Point(x, y)));
    if (!away.includes(true)) return [];
    const seen = data.layers.map(() => ({ n: 0, x: 0, y: 0, far: Infinity, at: undefined }));
    const theirs = cellsIn(bounds).filter((cell) => away[layerAt[cell]]);
    const row = (cell) => Math.floor(cell / data.grid);
    for (const cell of theirs) {
      const sum = seen[layerAt[cell]];
      sum.n++;
      sum.x += cell % data.grid;
      sum.y += row(cell);
    }
    for (const cell of theirs) {
      const sum = seen[layerAt[cell]];
      const far = (cell % data.grid - sum.x / sum.n) ** 2 + (row(cell) - sum.y / sum.n) ** 2;
      if (far < sum.far) { sum.far = far; sum.at = cell; }
    }
    return seen.map((sum) => sum.at === undefined ? undefined : middle(sum.at));
  }
  function place() {
    const zoom = viewer.viewport.getZoom(true);
    const { width, height } = viewer.container.getBoundingClientRect();
    const other = elsewhere(viewer.viewport.getBounds(true));
    const taken = [];
    // If two names collide, the chosen one stays, or else the one with more vertices.
    for (const k of marked < 0 ? biggest : [marked, ...biggest.filter((each) => each !== marked)]) {
      const layer = data.layers[k];
      const at = viewer.viewport.pixelFromPoint(other[k] ?? new OpenSeadragon.Point(...layer.at), true);
      const size = Math.min(30, Math.max(10, 15 * Math.sqrt(layer.n / most) * Math.sqrt(zoom)));
      const w = widths[k] * size / 2 + 3, h = size * 0.75;
      // Of a cell that is cut off at the edge, the middle may be out of sight.
      const out = !other[k] && (at.x < 0 || at.y < 0 || at.x > width || at.y > height);
      // A name is cut off only if it has no room.
      const x = Math.max(w, Math.min(at.x, width - w)), y = Math.max(h, Math.min(at.y, height - h));
      const box = [x - w, y - h, x + w, y + h];
      const covered = taken.some((t) => box[0] < t[2] && t[0] < box[2] && box[1] < t[3] && t[1] < box[3]);
      const style = labels[k].style;
      if (out || covered) { style.display = "none"; continue; }
      taken.push(box);
      style.display = "";
      style.left = `${x}px`;
      style.top = `${y}px`;
      style.fontSize = `${size}px`;
    }
    ring();
  }
  // The ring around the cell whose details are shown.
  let told = -1;
  function ring() {
    const spot = $("spot");
    spot.hidden = told < 0;
    if (told < 0) return;
    const at = viewer.viewport.pixelFromPoint(middle(told), true);
    const { width } = viewer.container.getBoundingClientRect();
    const wide = Math.max(12, (1.5 * width * viewer.viewport.getZoom(true)) / data.grid);
    Object.assign(spot.style, { left: `${at.x}px`, top: `${at.y}px`, width: `${wide}px`, height: `${wide}px` });
  }
  // Whether the picture shows what was asked for, or still moves there.
  const still = () => {
    const { viewport } = viewer, there = viewport.getCenter(false), here = viewport.getCenter(true);
    const moves = !here.equals(there) || viewport.getZoom(true) !== viewport.getZoom(false);
    document.body.dataset.still = moves ? "no" : "yes";
  };
  for (const each of ["pan", "zoom"]) viewer.addHandler(each, still);
  viewer.addHandler("update-viewport", () => {
    place();
    document.body.dataset.zoom = viewer.viewport.getZoom(true).toFixed(3);
    still();
  });

  // Details of the cell under the pointer.
  let kept = false;
  function look(point) {
    const column = Math.floor(point.x * data.grid), row = Math.floor(point.y * data.grid);
    if (column < 0 || row < 0 || column >= data.grid || row >= data.grid) return -1;
    // The nearest cell with vertices, at most one or two cells away.
    let best = -1, distance = 9;
    for (let dy = -2; dy <= 2; dy++)
      for (let dx = -2; dx <= 2; dx++) {
        const x = column + dx, y = row + dy, far = dx * dx + dy * dy;
        if (x < 0 || y < 0 || x >= data.grid || y >= data.grid || far >= distance) continue;
        if (cells.id[y * data.grid + x] >= 0) { best = y * data.grid + x; distance = far; }
      }
    return best;
  }
  function show(cell) {
    const box = $("here");
    told = cell;
    ring();
    box.replaceChildren();
    if (cell < 0) {
      made("span", "Point at the picture to see what is there.", box);
      return;
    }
    const [name, layer, codelet, origin, step, line] = data.sets[cells.set[cell]];
    const worker = cells.worker[cell];
    made("b", data.layers[layer].name, box);
    made("span", `op ${origin || name}`, box);
    if (line) made("code", written(line), box).title = written(line);
    made("span", `codelet ${codelet || "none"}, compute set ${step}: ${name}`, box);
    made("span", `vertex ${number(cells.id[cell])} on tile ${number(cells.tile[cell])}${data.chips > 1 ? ` of chip ${Math.floor(cells.tile[cell] / data.chip_tiles)}` : ""}, ` +
      `${worker < 0 ? "all workers" : `worker ${worker}`}, ${number(cells.cycles[cell])} cycles`, box);
    const count = cells.count[cell];
    made("span", count > 1 ? `one of ${number(count)} vertices at this point of the picture`
      : "the only vertex at this point of the picture", box);
    box.dataset.layer = data.layers[layer].name;
  }
  new OpenSeadragon.MouseTracker({
    element: viewer.container,
    moveHandler: (event) => {
      if (!kept) show(look(viewer.viewport.pointFromPixel(event.position)));
    },
    leaveHandler: () => { if (!kept) show(-1); },
  });
  show(-1);
  viewer.addHandler("canvas-click", (event) => {
    if (event.quick) keep(look(viewer.viewport.pointFromPixel(event.position)));
  });
  function keep(cell) {
    kept = cell >= 0;
    $("here").classList.toggle("kept", kept);
    show(cell);
    if (cell >= 0) mark(data.sets[cells.set[cell]][1]);
  }
  // Without a pointer: details of the cell nearest to the centre.
  viewer.canvas.setAttribute("role", "application");
  viewer.canvas.setAttribute("aria-label", $("view").getAttribute("aria-label"));
  viewer.canvas.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const at = viewer.viewport.getCenter(true);
    let best = -1, distance = Infinity;
    for (const cell of cellsIn(viewer.viewport.getBounds(true))) {
      const far = middle(cell).squaredDistanceTo(at);
      if (far < distance) { best = cell; distance = far; }
    }
    keep(best);
  });

  // Dark and light, names, keys.
  onTheme((name) => { $("theme").textContent = name === "dark" ? "light" : "dark"; });
  const turn = switchTheme;
  const names = () => {
    const off = $("labels").classList.toggle("off");
    $("names").setAttribute("aria-pressed", String(!off));
  };
  $("theme").addEventListener("click", turn);
  $("names").addEventListener("click", names);
  const zoomed = (by) => { viewer.viewport.zoomBy(by); viewer.viewport.applyConstraints(); };
  const pan = (x, y) => {
    const span = 0.15 / viewer.viewport.getZoom();
    viewer.viewport.panBy(new OpenSeadragon.Point(x * span, y * span));
    viewer.viewport.applyConstraints();
  };
  const KEYS = {
    "/": () => search.focus(), n: names, t: turn,
    "+": () => zoomed(1.4), "=": () => zoomed(1.4), "-": () => zoomed(1 / 1.4),
    0: () => viewer.viewport.goHome(),
    ArrowLeft: () => pan(-1, 0), ArrowRight: () => pan(1, 0),
    ArrowUp: () => pan(0, -1), ArrowDown: () => pan(0, 1),
    Escape: () => { kept = false; $("here").classList.remove("kept"); show(-1); mark(-1); },
  };
  data.colourings.forEach((_, index) => { KEYS[index + 1] = () => colour(index); });
  $("last").textContent = data.colourings.length;
  viewer.innerTracker.keyDownHandler = null;
  viewer.innerTracker.keyHandler = null;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  // A report that has this page in its folder says which layer its reader came from.
  const from = new URLSearchParams(location.search).get("report");
  $("report").hidden = from === null;
  const asked = from ? data.layers.findIndex((layer) => layer.name === from) : -1;

  colour(0);
  const ready = () => {
    // Another colouring shows the same part of the picture.
    viewer.preserveViewport = true;
    viewer.forceResize();
    place();
    document.body.dataset.zoom = viewer.viewport.getZoom(true).toFixed(3);
    document.body.dataset.ready = "yes";
    if (asked >= 0) go(asked);
  };
  if (viewer.isOpen()) ready();
  else viewer.addOnceHandler("open", ready);
})();
