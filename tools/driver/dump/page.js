/* What every pass did: passes on the left; on the right a diff, single rewrites, or the program. */

const ROW = 20, STEP_ROW = 22, CONTEXT = 3, SPARE = 25, MOST_CELLS = 1.2e7;
const escaped = text => text.replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

let data, stages;
const state = { stage: 0, view: "diff", step: 0 };

/* Data */

/** Give each stage `lines` (what it left), `before` (its base), and each line its parts. */
function prepare() {
  let lines = [], level = "", file = "";
  stages = data.stages;
  stages.forEach((stage, index) => {
    const own = stage.lines && read(stage);
    Object.assign(stage, { index, before: lines, changed: Boolean(own), base: level });
    lines = stage.program = own || lines;
    level = stage.level = own ? stage.level : level;
    file = stage.file = own ? stage.file : file;
    stage.fresh = stage.new ? read(stage.new) : [];
    stage.changes ||= [];
  });
  for (const level of data.levels) {
    const last = stages.findLast(stage => stage.level === level && stage.changed && !stage.error);
    if (last) levels.push({ level, stage: last });
  }
}
const levels = [];
const read = from => from.lines.map((text, i) => ({ text: data.texts[text], id: text, op: from.ops[i], place: from.from[i] }));
const pathOf = line => data.places[line.place][0];
const nodesOf = line => data.places[line.place][2];
const headOf = line => nodesOf(line)[0] ?? -1;

/* Words of a line */

const WORD = /%[\w.$-]+(?:#\d+)?|@"(?:[^"\\]|\\.)*"|@[\w.$-]+|"(?:[^"\\]|\\.)*"|(?:\d+x)+[a-z]\w*|![a-z][\w.]*|#[a-z][\w.]*|[A-Za-z_][\w$]*(?:\.[\w$]+)*|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|->|\s+|./g;
const wordsOf = text => text.match(WORD) || [];
const isSpace = word => word.trim() === "";
const opName = text => (/^\s*(?:%[^=]*=\s*)?"?([A-Za-z_]\w*\.[\w.]+)/.exec(text) || [])[1] || "";
const shape = text => text.replace(/%[\w.$-]+(?:#\d+)?/g, "%");

const keys = new Map();
const keyOf = text => { let key = keys.get(text); if (key === undefined) keys.set(text, key = keys.size); return key; };
function keyed(line) {
  if (line.key === undefined) {
    line.key = keyOf("= " + shape(line.text));
    line.path = pathOf(line).length ? keyOf("@ " + pathOf(line).join("+")) : -1;
    line.kind = keyOf("# " + opName(line.text).replace(/^\w+\./, "") + (line.text.trim()[0] === "}" ? "}" : ""));
  }
  return line;
}

/* Diff: pairs of lines [a, b], either of them null */

function aligned(before, after) {
  before.forEach(keyed); after.forEach(keyed);
  const seen = new Map(), nth = new Map();
  const mark = (line, index, into) => {
    const at = into.n.get(line.op) || 0;
    into.n.set(line.op, at + 1);
    return line.op + ":" + at;
  };
  before.forEach((line, i) => seen.set(mark(line, i, { n: nth }), i));
  nth.clear();
  const pairs = [];
  after.forEach((line, j) => { const i = seen.get(mark(line, j, { n: nth })); if (i !== undefined) pairs.push([i, j]); });
  const fixed = increasing(pairs);
  const rows = [];
  let i = 0, j = 0;
  for (const [p, q] of [...fixed, [before.length, after.length]]) {
    gap(before, i, p, after, j, q, rows);
    if (p < before.length) rows.push([before[p], after[q], p, q]);
    i = p + 1; j = q + 1;
  }
  return rows;
}

/** The longest run of pairs [i, j] in which both grow; j grows as given. */
function increasing(pairs) {
  const tails = [], back = new Array(pairs.length);
  pairs.forEach(([i], at) => {
    let low = 0, high = tails.length;
    while (low < high) { const mid = (low + high) >> 1; if (pairs[tails[mid]][0] < i) low = mid + 1; else high = mid; }
    back[at] = low ? tails[low - 1] : -1;
    tails[low] = at;
  });
  const found = [];
  for (let at = tails.length ? tails[tails.length - 1] : -1; at >= 0; at = back[at]) found.push(pairs[at]);
  return found.reverse();
}

function likeness(a, b) {
  if (a.key === b.key) return a.path === b.path ? 9 : 6;
  if (a.path < 0 || a.path !== b.path) return 0;
  return a.kind === b.kind ? 5 : 2;
}

/** Pair the lines between two that are known to belong together, by text and by origin. */
function gap(before, i, p, after, j, q, rows) {
  while (i < p && j < q && before[i].key === after[j].key) rows.push([before[i], after[j], i++, j++]);
  const tail = [];
  while (i < p && j < q && before[p - 1].key === after[q - 1].key) tail.push([before[--p], after[--q], p, q]);
  const m = p - i, n = q - j;
  if (m && n && m * n <= MOST_CELLS) {
    const best = new Uint16Array((m + 1) * (n + 1)), w = n + 1;
    for (let x = m - 1; x >= 0; x--) for (let y = n - 1; y >= 0; y--) {
      const at = x * w + y, same = likeness(before[i + x], after[j + y]);
      const skip = best[at + w] > best[at + 1] ? best[at + w] : best[at + 1];
      const both = same ? same + best[at + w + 1] : 0;
      best[at] = both > skip ? both : skip;
    }
    let x = 0, y = 0;
    while (x < m || y < n) {
      const at = x * w + y, same = x < m && y < n ? likeness(before[i + x], after[j + y]) : 0;
      if (same && best[at] === same + best[at + w + 1]) { rows.push([before[i + x], after[j + y], i + x++, j + y++]); }
      else if (x < m && (y >= n || best[at] === best[at + w])) { rows.push([before[i + x], null, i + x++, -1]); }
      else rows.push([null, after[j + y], -1, j + y++]);
    }
  } else {
    for (; i < p; i++) rows.push([before[i], null, i, -1]);
    for (; j < q; j++) rows.push([null, after[j], -1, j]);
  }
  rows.push(...tail.reverse());
}

/** Whether a pass lowers a program to another level. Its lines are then paired by origin. */
const isLowered = stage => Boolean(stage.base && stage.level && stage.base !== stage.level);

/** Pairs of lines where a pass changes the level: those before, with those made from them beside.
    [a, b, i, j, kin]; kin: 1 for the first pair of a family, 2 for the others, 0 for lines without origin. */
function families(before, after) {
  const keyOfLine = line => pathOf(line).join("\n");
  const found = new Map(), byName = new Map(), byNode = new Map();
  before.forEach((a, i) => {
    const key = keyOfLine(a);
    if (!key) return;
    if (!found.has(key)) found.set(key, { left: [], right: [], heir: null });
    const family = found.get(key);
    family.left.push([a, i]);
    for (const name of pathOf(a)) if (!byName.has(name)) byName.set(name, family);
    for (const node of nodesOf(a)) if (!byNode.has(node)) byNode.set(node, family);
  });
  const first = (keys, table) => table.get(keys.find(key => table.has(key)));
  const loose = [];
  after.forEach((b, j) => {
    const family = found.get(keyOfLine(b)) || first(pathOf(b), byName) || first(nodesOf(b), byNode);
    if (!family) { loose.push(b); return; }
    family.right.push([b, j]);
    // A line made from several families is beside the first one. The others refer to it.
    for (const name of pathOf(b)) { const other = byName.get(name); if (other && other !== family) other.heir ??= j; }
    for (const node of nodesOf(b)) { const other = byNode.get(node); if (other && other !== family) other.heir ??= j; }
  });
  // Lines without an origin, such as definitions of layouts, are compared as text.
  const at = new Map(after.map((line, j) => [line, j])), was = new Map(before.map((line, i) => [line, i]));
  const rest = aligned(before.filter(line => !keyOfLine(line)), loose)
    .map(([a, b]) => [a, b, a ? was.get(a) : -1, b ? at.get(b) : -1, 0]);
  const rows = [], done = new Set();
  let next = 0;
  for (const a of before) {
    const family = found.get(keyOfLine(a));
    if (!family) {
      while (next < rest.length && rest[next][0] !== a) rows.push(rest[next++]);
      if (next < rest.length) rows.push(rest[next++]);
    } else if (!done.has(family)) {
      done.add(family);
      for (let k = 0; k < Math.max(family.left.length, family.right.length); k++) {
        const [left, i] = family.left[k] || [null, -1], [right, j] = family.right[k] || [null, -1];
        const row = [left, right, i, j, k ? 2 : 1];
        if (!k && !right) row.heir = family.heir ?? -1;
        rows.push(row);
      }
    }
  }
  rows.push(...rest.slice(next));
  return rows;
}

/** Rows of a stage's diff: {a, b, i, j, kind: same | changed | gone | new | kin}; values renamed are the same.
    kin: a line beside one that was made from it. */
function diffOf(stage) {
  if (stage.diff) return stage.diff;
  const renamed = new Map(), rows = [];
  let added = 0, removed = 0;
  for (const pair of isLowered(stage) ? families(stage.before, stage.program) : aligned(stage.before, stage.program)) {
    const [a, b, i, j, kin] = pair;
    if (kin) {
      added += Boolean(b); removed += Boolean(a);
      rows.push({ a, b, i, j, kind: "kin", first: kin === 1, heir: pair.heir });
      continue;
    }
    let kind = a ? b ? "same" : "gone" : "new";
    if (a && b) {
      const was = wordsOf(a.text), is = wordsOf(b.text);
      const results = Math.min(was.indexOf("="), is.indexOf("="));
      for (let k = 0; k < results; k++) if (was[k][0] === "%" && is[k][0] === "%") renamed.set(was[k], is[k]);
      if (a.key === b.key) was.forEach((word, k) => { if (word[0] === "%" && !renamed.has(word)) renamed.set(word, is[k]); });
      if (a.id !== b.id && was.map(word => renamed.get(word) ?? word).join("") !== b.text) kind = "changed";
    }
    added += kind === "new" || kind === "changed"; removed += kind === "gone" || kind === "changed";
    rows.push({ a, b, i, j, kind });
  }
  return stage.diff = { rows, added, removed, renamed };
}

/** The words of two lines that are not in both: two sets of indices, or null where words were
    replaced and little is shared. */
function changedWords(a, b, renamed) {
  const was = wordsOf(a), is = wordsOf(b), w = is.length + 1;
  if (was.length * is.length > 250000) return null;
  const like = was.map(word => renamed.get(word) ?? word);
  const best = new Uint16Array((was.length + 1) * w);
  for (let x = was.length - 1; x >= 0; x--) for (let y = is.length - 1; y >= 0; y--)
    best[x * w + y] = like[x] === is[y] ? best[(x + 1) * w + y + 1] + 1 : Math.max(best[(x + 1) * w + y], best[x * w + y + 1]);
  const left = new Set(), right = new Set();
  let x = 0, y = 0, shared = 0;
  while (x < was.length || y < is.length) {
    if (x < was.length && y < is.length && like[x] === is[y]) { shared += !isSpace(is[y]); x++; y++; }
    else if (x < was.length && (y >= is.length || best[(x + 1) * w + y] >= best[x * w + y + 1])) { if (!isSpace(was[x])) left.add(x); x++; }
    else { if (!isSpace(is[y])) right.add(y); y++; }
  }
  if (left.size && right.size && shared < Math.max(left.size, right.size)) return null;
  for (const [words, marks] of [[was, left], [is, right]])
    words.forEach((word, at) => { if (isSpace(word) && marks.has(at - 1) && marks.has(at + 1)) marks.add(at); });
  return [left, right];
}

/* A line as HTML: coloured, and as long as there is room: brackets fold, unchanged ones first */

const OPEN = { "<": ">", "(": ")", "[": "]", "{": "}" };
const CLOSE = new Set(Object.values(OPEN));

function groupsOf(words) {
  const groups = [], open = [], lengths = [0];
  words.forEach(word => lengths.push(lengths[lengths.length - 1] + word.length));
  words.forEach((word, at) => {
    if (OPEN[word]) open.push(at);
    else if (CLOSE.has(word) && open.length && OPEN[words[open[open.length - 1]]] === word) {
      const first = open.pop();
      groups.push({ first, last: at, inside: lengths[at] - lengths[first + 1] });
    }
  });
  return groups.filter(group => group.inside > 9);
}

function folds(words, room, marked) {
  let length = words.reduce((sum, word) => sum + word.length, 0);
  const folded = new Map();
  if (length <= room) return folded;
  let groups = groupsOf(words);
  for (const group of groups) {
    group.marked = false;
    if (marked) for (let at = group.first; at <= group.last && !group.marked; at++) group.marked = marked.has(at);
  }
  while (length > room && groups.length) {
    const over = length - room;
    // What is marked stays in sight; the words between are left out instead.
    const from = groups.filter(group => !group.marked);
    if (!from.length) break;
    const enough = from.filter(group => group.inside - 1 >= over);
    const pick = enough.length
      ? enough.reduce((a, b) => (b.inside < a.inside ? b : a))
      : from.reduce((a, b) => (b.inside > a.inside ? b : a));
    folded.set(pick.first, pick);
    length -= pick.inside - 1;
    for (const group of folded.values()) if (group !== pick && group.first > pick.first && group.last < pick.last) { folded.delete(group.first); length += group.inside - 1; }
    groups = groups.filter(group => group.last < pick.first || group.first > pick.last || (group.first < pick.first && group.last > pick.last));
    groups.forEach(group => { if (group.first < pick.first && group.last > pick.last) group.inside -= pick.inside - 1; });
  }
  return folded;
}

/** Runs of words to leave out so that the marked ones are in sight.
    By the first index: the one after, and how many letters of the first word stay. */
function gaps(words, room, marked, folded) {
  const out = new Map();
  if (!marked || !marked.size) return out;
  const hidden = new Set();
  for (const group of folded.values()) for (let at = group.first + 1; at < group.last; at++) hidden.add(at);
  const seen = words.map((_, at) => at).filter(at => !hidden.has(at));
  let over = seen.reduce((sum, at) => sum + words[at].length, 0) + folded.size - room;
  const head = 1 + words.findIndex(word => DIALECT.test(word)), runs = [[]];
  for (const at of seen) {
    if (marked.has(at)) runs.push([]);
    else if (at >= head) runs[runs.length - 1].push(at);
  }
  // What comes after the last mark is cut off at the border.
  over -= runs.pop().reduce((sum, at) => sum + words[at].length, 0);
  for (const run of runs) {
    let first = run.length, size = 0;
    while (first > 0 && size < over + 3) size += words[run[--first]].length;
    if (over <= 0 || size < 8) continue;
    const end = run[run.length - 1];
    // Of the first word that goes, as much stays as there is room for.
    const kept = Math.min(size - over - 3, words[run[first]].length - 1);
    out.set(run[first], [(folded.has(end) ? folded.get(end).last : end) + 1, kept > 4 ? kept : 0]);
    over -= size - 3;
  }
  return out;
}

const DIALECT = /^[a-z_]\w*\.[\w.]+$/;
function classOf(word, at, named) {
  if (word[0] === "%") return "v";
  if (word[0] === "@") return "s";
  if (word[0] === '"') return "q";
  if (!named && DIALECT.test(word)) return "o";
  if (word[0] === "!" || /^(?:\d+x)+[a-z]/.test(word) || /^(?:tensor|[fiu]\d+|bf16)$/.test(word)) return "t";
  return "";
}

function lineHtml(text, room, marked) {
  const words = wordsOf(text), folded = folds(words, room, marked), left = gaps(words, room, marked, folded);
  let out = "", named = false;
  for (let at = 0; at < words.length; at++) {
    if (left.has(at)) {
      const [after, kept] = left.get(at), kind = classOf(words[at], at, named);
      out += `<span class="${kind}">${escaped(words[at].slice(0, kept))}</span><span class="e">…</span> `;
      at = after - 1;
      continue;
    }
    const word = words[at], kind = classOf(word, at, named);
    if (kind === "o") named = true;
    const html = kind ? `<span class="${kind}">${escaped(word)}</span>` : escaped(word);
    out += marked && marked.has(at) ? `<w>${html}</w>` : html;
    const group = folded.get(at);
    if (group) {
      out += `<span class="e${group.marked ? " w" : ""}">…</span>`;
      at = group.last - 1;
    }
  }
  return out;
}

/* What the view shows: items {kind, a, b, ...}, or folds {fold, items} */

let items = [], room = 80, narrow = false;

function foldUnchanged(rows, changed, context = CONTEXT) {
  const out = [];
  let run = [];
  const flush = last => {
    const head = out.length ? context : 0, tail = last ? 0 : context;
    if (run.length > head + tail + 2) {
      out.push(...run.slice(0, head));
      out.push({ fold: run.slice(head, run.length - tail) });
      out.push(...run.slice(run.length - tail));
    } else out.push(...run);
    run = [];
  };
  for (const row of rows) {
    if (!changed(row)) { run.push(row); continue; }
    flush(false);
    out.push(row);
  }
  flush(true);
  return out;
}

const MODULE = /^\s*(?:builtin\.)?module\b/;

function diffItems(stage) {
  const all = diffOf(stage).rows;
  // Another level has definitions of its own. They are folded, so that the operations come first.
  const head = isLowered(stage) ? Math.max(0, all.findIndex(row => MODULE.test((row.a || row.b).text))) : 0;
  const rows = foldUnchanged(all.slice(head), row => row.kind !== "same");
  if (head) rows.unshift({ fold: all.slice(0, head), word: "line of definitions", words: "lines of definitions" });
  if (!narrow) return rows;
  const unified = row => row.fold ? [{ ...row, fold: row.fold.flatMap(unified) }]
    : row.kind === "kin" ? [row.a && { ...row, b: null }, (row.b || row.heir !== undefined) && { ...row, a: null, first: false }].filter(Boolean)
    : row.kind === "changed" ? [{ ...row, kind: "gone", pair: row }, { ...row, kind: "new", pair: row }] : [row];
  return rows.flatMap(unified);
}

const programItems = stage => stage.program.map((b, j) => ({ b, j, kind: "plain" }));

/** The lines as they are when a rewrite happens: with those it inserts, and those it removes. */
function stepItems(stage, step) {
  const total = stage.before.length, line = id => id < total ? stage.before[id] : stage.fresh[id - total];
  const cache = stage.order && stage.order.at <= step ? stage.order : { at: 0, ids: stage.before.map((_, id) => id) };
  const insert = (ids, change) => { for (const [after, first, size] of change[2]) ids.splice(after < 0 ? 0 : ids.indexOf(after) + 1, 0, ...Array.from({ length: size }, (_, k) => first + k)); };
  for (; cache.at < step; cache.at++) {
    const change = stage.changes[cache.at];
    insert(cache.ids, change);
    const gone = new Set(change[3]);
    if (gone.size) cache.ids = cache.ids.filter(id => !gone.has(id));
  }
  stage.order = cache;
  const change = stage.changes[step], ids = [...cache.ids];
  insert(ids, change);
  const gone = new Set(change[3]), added = new Set();
  for (const [, first, size] of change[2]) for (let k = 0; k < size; k++) added.add(first + k);
  const rows = ids.map((id, at) => ({ b: line(id), j: at, kind: gone.has(id) ? "gone" : added.has(id) ? "new" : "same", single: true, root: id === change[1] }));
  pairWords(rows);
  return foldUnchanged(rows, row => row.kind !== "same" || row.root, 8);
}

/** Mark the words that differ where a line replaces the one above it. */
function pairWords(rows) {
  rows.forEach((row, at) => {
    const next = rows[at + 1];
    if (next && row.kind === "gone" && next.kind === "new" && opName(row.b.text) === opName(next.b.text)) {
      const marks = changedWords(row.b.text, next.b.text, new Map());
      if (marks) [row.marks, next.marks] = marks;
    }
  });
}

function marksOf(row, side) {
  if (row.single) return row.marks;
  const pair = row.pair || row;
  if (pair.kind !== "changed") return undefined;
  if (pair.words === undefined) pair.words = changedWords(pair.a.text, pair.b.text, diffOf(stages[state.stage]).renamed);
  return pair.words ? pair.words[side] : undefined;
}

function cell(line, number, kind, marks, chars, sign) {
  if (!line) return `<div class="cell void"></div>`;
  return `<div class="cell ${kind}" data-place="${line.place}" data-line="${number}" data-side="${kind === "gone" || kind === "was" || kind === "from" ? "a" : "b"}"><span class="num">${number + 1}</span>${sign ? `<span class="sign">${sign}</span>` : ""}<span class="code">${lineHtml(line.text, chars, marks)}</span></div>`;
}

const SIGNS = { gone: "−", new: "+", same: " ", plain: "" };
/** A row as HTML, made once for each width. */
function written(row) {
  const width = `${room} ${narrow} ${state.view}`;
  if (row.width !== width) { row.html = rowHtml(row); row.width = width; }
  return row.html;
}

/** What is beside an operation from which no line of its own was made. */
function heirHtml(row) {
  const text = row.heir < 0 ? "nothing was made from it" : `merged into line ${row.heir + 1}`;
  return `<div class="cell heir">${text}</div>`;
}

/** A line and one that was made from it. The first row of a family has a line above. */
function kinHtml(row) {
  const last = row.heir !== undefined && !row.b;
  const one = line => (line ? 0 : `<div class="cell"></div>`);
  const left = one(row.a) || cell(row.a, row.i, "from", undefined, room, narrow ? " " : "");
  const right = last ? heirHtml(row) : one(row.b) || cell(row.b, row.j, "into", undefined, room, narrow ? "→" : "");
  const inner = narrow ? (row.a ? left : right) : left + right;
  return `<div class="row ${narrow ? "" : "split"} ${row.first ? "family" : ""}">${inner}</div>`;
}

function rowHtml(row) {
  if (row.kind === "kin") return kinHtml(row);
  if (row.fold) return `<button class="fold">⋯ ${row.word ? `${digits(row.fold.length)} ${row.fold.length === 1 ? row.word : row.words}` : count(row.fold.length, "unchanged line")}</button>`;
  if (row.kind === "plain") return `<div class="row">${cell(row.b, row.j, "", undefined, room)}</div>`;
  if (row.single) return `<div class="row">${cell(row.b, row.j, row.kind === "same" ? "" : row.kind, row.marks, room - 3, SIGNS[row.kind] || " ")}</div>`;
  if (narrow) {
    const left = row.kind === "gone";
    return `<div class="row">${cell(left ? row.a : row.b, left ? row.i : row.j, row.kind === "same" ? "" : row.kind, marksOf(row, left ? 0 : 1), room - 3, SIGNS[row.kind] || " ")}</div>`;
  }
  const kinds = { same: ["", ""], changed: ["was", "is"], gone: ["gone", ""], new: ["", "new"] }[row.kind];
  return `<div class="row split">${cell(row.a, row.i, kinds[0], marksOf(row, 0), room)}${cell(row.b, row.j, kinds[1], marksOf(row, 1), room)}</div>`;
}

/* The view: only rows in sight are in the document */

let shown = [-1, -1];
function paint(force) {
  const view = $("view"), top = Math.floor(view.scrollTop / ROW);
  const bottom = Math.min(items.length, Math.ceil((view.scrollTop + view.clientHeight) / ROW));
  if (!force && top >= shown[0] && bottom <= shown[1]) return;
  const first = Math.max(0, top - SPARE), last = Math.min(items.length, bottom + SPARE);
  shown = [first, last];
  const rows = $("rows");
  rows.style.transform = `translateY(${first * ROW}px)`;
  rows.innerHTML = items.slice(first, last).map(written).join("");
  [...rows.children].forEach((node, at) => { node.item = first + at; });
  markHits();
}

function measure() {
  const probe = make("span", { className: "row", textContent: "0".repeat(100) });
  probe.style.cssText = "position:absolute;visibility:hidden";
  $("rows").append(probe);
  const char = probe.getBoundingClientRect().width / 100 || 7.2;
  probe.remove();
  narrow = innerWidth <= 900;
  const width = $("view").clientWidth, panes = state.view === "diff" && !narrow ? 2 : 1;
  room = Math.max(24, Math.floor((width / panes - (narrow ? 38 : 46) - 4) / char));
}

function layout(keep) {
  const stage = stages[state.stage];
  measure();
  items = state.view === "diff" ? diffItems(stage) : state.view === "steps" ? stepItems(stage, state.step) : programItems(stage);
  $("space").style.height = items.length * ROW + "px";
  if (!keep) $("view").scrollTop = 0;
  paint(true);
}

function scrollTo(test, place = 0.35) {
  let at = items.findIndex(item => item.fold ? item.fold.some(test) : test(item));
  if (at < 0) return false;
  if (items[at].fold) { expand(at); at = items.findIndex(test); }
  $("view").scrollTop = Math.max(0, at * ROW - $("view").clientHeight * place);
  paint(true);
  const node = [...$("rows").children].find(each => each.item === at);
  if (node) node.classList.add("flash");
  return true;
}

function expand(at) {
  items.splice(at, 1, ...items[at].fold);
  $("space").style.height = items.length * ROW + "px";
  paint(true);
}

/* Passes */

function passList() {
  const list = $("list");
  stages.forEach((stage, index) => {
    const exact = Array.isArray(stage.figures) ? stage.figures : null;
    const before = index && Array.isArray(stages[index - 1].figures) ? stages[index - 1].figures : null;
    const reason = exact ? "" : stage.figures || "";
    if (reason.startsWith("not priced")) $("absent").hidden = false;
    const figures = [0, 1, 2].map(k => make("span", { className: exact ? "n" : "n none", textContent: exact ? digits(exact[k]) : "–", title: reason }));
    const deltas = [0, 1, 2].map(k => {
      const by = exact && before ? exact[k] - before[k] : 0;
      return make("span", { className: by ? `d ${by < 0 ? "less" : "greater"}` : "d", textContent: by ? `${by < 0 ? "−" : "+"}${digits(Math.abs(by))}` : "" });
    });
    const seconds = stage.seconds === undefined ? "" : stage.seconds < 0.0005 ? "0.000" : stage.seconds.toFixed(3);
    const name = make("span", { className: "name", title: stage.spec || "the program as it came" }, make("i", { textContent: String(index).padStart(2, "0") }), stage.name || "input");
    const more = make("span", { className: "more" });
    const item = make("li", { className: stage.changed || !index ? "" : "same", tabIndex: 0 }, name, make("span", { className: "n seconds", textContent: seconds }), ...figures, more, make("span", { className: "seconds" }), ...deltas);
    if (stage.error) item.classList.add("failed");
    item.addEventListener("click", () => go({ stage: index }));
    item.addEventListener("keydown", event => { if (event.key === "Enter") go({ stage: index }); });
    list.append(item);
    stage.item = item; stage.more = more;
    describe(stage);
  });
}

function describe(stage) {
  const parts = [];
  if (stage.level) parts.push(`<span class="level ${stage.level}">${stage.level}</span>`);
  if (stage.error) parts.push("failed");
  else if (!stage.index) parts.push(count(stage.program.length, "line"));
  else if (!stage.changed) parts.push("changed nothing");
  else if (stage.diff && isLowered(stage)) parts.push(`${digits(stage.diff.removed)} → ${count(stage.diff.added, "line")}`);
  else if (stage.diff) parts.push(`<span class="plus">+${stage.diff.added}</span> <span class="minus">−${stage.diff.removed}</span>`);
  if (stage.changes.length) parts.push(count(stage.changes.length, "rewrite"));
  stage.more.innerHTML = parts.join(" &nbsp;");
}

/** Count the changed lines of all passes when there is nothing else to do. */
function countLater(index = 1) {
  const stage = stages[index];
  if (!stage) return;
  const todo = () => { if (stage.changed) { diffOf(stage); describe(stage); } countLater(index + 1); };
  (window.requestIdleCallback || setTimeout)(todo);
}

/* Rewrites of a pass */

function stepper(stage) {
  const steps = stage.changes.length, on = state.view === "steps";
  $("stepper").hidden = $("steps").hidden = !on;
  if (!on) return;
  const change = stage.changes[state.step], [name, file, line] = data.rules[change[0]];
  $("slider").max = steps - 1; $("slider").value = state.step;
  $("back").disabled = state.step === 0; $("forth").disabled = state.step === steps - 1;
  $("count").textContent = `${state.step + 1} of ${digits(steps)}`;
  $("rule").textContent = name;
  $("source").textContent = file ? `${file}:${line}` : "";
  $("steps-space").style.height = steps * STEP_ROW + "px";
  const panel = $("steps"), top = state.step * STEP_ROW;
  if (top < panel.scrollTop || top > panel.scrollTop + panel.clientHeight - STEP_ROW) panel.scrollTop = top - panel.clientHeight / 2;
  paintSteps();
}

function paintSteps() {
  const panel = $("steps"), stage = stages[state.stage];
  if (panel.hidden) return;
  const first = Math.max(0, Math.floor(panel.scrollTop / STEP_ROW) - 5);
  const last = Math.min(stage.changes.length, first + Math.ceil(panel.clientHeight / STEP_ROW) + 10);
  const rows = $("steps-rows");
  rows.style.transform = `translateY(${first * STEP_ROW}px)`;
  rows.replaceChildren(...stage.changes.slice(first, last).map((change, k) => {
    const at = first + k, total = stage.before.length;
    const root = change[1] < 0 ? null : change[1] < total ? stage.before[change[1]] : stage.fresh[change[1] - total];
    const item = make("li", { className: at === state.step ? "on" : "", title: root ? pathOf(root).join(" + ") : "" },
      make("i", { textContent: at + 1 }), data.rules[change[0]][0] + " ", make("small", { textContent: root ? pathOf(root).join("+") : "" }));
    item.addEventListener("click", () => go({ step: at }));
    return item;
  }));
}

/* Where we are */

function go(to, find) {
  hideCard();
  const stage = stages[to.stage ?? state.stage];
  const moved = stage.index !== state.stage;
  const steps = stage.changes.length;
  let view = to.view || state.view;
  if (view === "steps" && !steps) view = "diff";
  if (view === "diff" && !stage.changed) view = "program";
  else if (moved && !to.view && state.view === "program" && stage.index && stage.changed && wanted !== "program") view = "diff";
  if (to.view) wanted = to.view;
  Object.assign(state, { stage: stage.index, view, step: Math.max(0, Math.min(to.step ?? (moved ? 0 : state.step), steps - 1)) });
  stages.forEach(each => each.item.classList.toggle("on", each === stage));
  stage.item.scrollIntoView({ block: "nearest" });
  for (const name of ["diff", "steps", "program"]) $("tab-" + name).setAttribute("aria-selected", String(view === name));
  $("tab-diff").disabled = !stage.changed || !stage.index;
  $("tab-diff").textContent = isLowered(stage) ? "Each operation and what was made from it" : "Before and after";
  $("tab-steps").disabled = !steps;
  $("tab-steps").title = steps ? "" : stage.index ? "this pass reports no single rewrites" : "";
  $("tab-steps").textContent = steps ? `${count(steps, "rewrite")}` : "Rewrites";
  stepper(stage);
  $("summary").textContent = view === "steps" ? "" : stage.file ? `${stage.file}` : "";
  $("problem").hidden = !stage.error; $("problem").textContent = stage.error;
  layout(false);
  if (find) scrollTo(find);
  else if (view === "steps") { const y = items.findIndex(item => !item.fold && item.kind !== "same"); $("view").scrollTop = Math.max(0, y * ROW - $("view").clientHeight * 0.35); paint(true); }
  if (view === "diff") describe(stage);
  history.replaceState(null, "", `#pass=${state.stage}&view=${view}${view === "steps" ? `&rewrite=${state.step + 1}` : ""}`);
}
let wanted = "diff";

function fromHash() {
  const hash = new URLSearchParams(location.hash.slice(1));
  const first = stages.findIndex((stage, index) => index && stage.changed);
  const failed = stages.findIndex(stage => stage.error);
  const at = Math.min(stages.length - 1, Number(hash.get("pass") ?? (failed > 0 ? failed : Math.max(0, first))) || 0);
  go({ stage: at, view: hash.get("view") || "diff", step: (Number(hash.get("rewrite")) || 1) - 1 });
}

/* The card: where an operation came from, and what became of it */

let pinned = false, timer = 0;
const PER_LEVEL = 8;

function lineAt(node) {
  const row = node.closest(".row, .fold"), target = node.closest(".cell");
  if (!row || !target || target.classList.contains("void")) return null;
  const item = items[row.item];
  return item && (target.dataset.side === "a" && !item.single ? item.a : item.b);
}

/** The cycles and bytes of an operation of the finished program, or of all that its node became. */
function costOf(line, nodes) {
  const own = data.costs[line.op];
  const kin = own ? [own] : [...new Set(stages.at(-1).program.filter(each => nodesOf(each).some(node => nodes.includes(node))).map(each => each.op))]
    .map(op => data.costs[op]).filter(Boolean);
  if (!kin.length) return "";
  const sum = of => kin.reduce((total, each) => total + of(each), 0).toLocaleString("en");
  const text = `${sum(([e, c, , , times]) => (e + c) * times)} cycles in a run (exchange ${sum(([e, , , , times]) => e * times)}, compute ${sum(([, c, , , times]) => c * times)}), ${sum(([, , bytes, , times]) => bytes * times)} bytes exchanged`;
  const fullest = Math.max(...kin.map(each => each[3])).toLocaleString("en");
  return own ? `${text}; result: ${fullest} bytes on the fullest tile` : `${text}, by ${count(kin.length, "operation")} of the finished program`;
}

function showCard(line, x, y, pin) {
  const card = $("card"), nodes = nodesOf(line), path = pathOf(line);
  const place = data.places[line.place];
  const related = levels.map(({ level, stage }) => {
    const rows = !nodes.length ? [] : stage.program.map((each, at) => [each, at])
      // A long operation is printed on several lines: the first one stands for it.
      .filter(([each, at]) => at === 0 || stage.program[at - 1].op !== each.op)
      .filter(([each]) => each.text.trim()[0] !== "}" && nodesOf(each).some(node => nodes.includes(node)));
    const buttons = rows.slice(0, PER_LEVEL).map(([each, at]) => `<button data-stage="${stage.index}" data-at="${at}" title="${escaped(each.text.trim())}">${escaped(opName(each.text) || each.text.trim())} <small>${escaped(pathOf(each).join("+"))}</small></button>`);
    const rest = rows.length > PER_LEVEL ? `<i>and ${rows.length - PER_LEVEL} more</i>` : rows.length ? "" : `<i>${nodes.length ? "nothing is left of it" : "–"}</i>`;
    return `<tr><td><span class="level ${level}">${level}</span></td><td>${buttons.join("")}${rest}</td></tr>`;
  });
  const from = nodes.map(node => data.nodes[node]).join(" + ");
  const file = /\(([^()]+:\d+:\d+)\)$/.exec(place[1])?.[1] || (/:\d+:\d+$/.test(place[1]) ? place[1] : "");
  const steps = path.join(" + "), cost = costOf(line, nodes);
  card.innerHTML = `<h2><code>${escaped(opName(line.text) || "region")}</code><button>${pin ? "close (Esc)" : "click to keep"}</button></h2>
    <dl><dt>from node</dt><dd class="from">${escaped(from || "no node is known")}</dd>
    ${steps && steps !== from ? `<dt>as</dt><dd>${escaped(steps)}</dd>` : ""}${file ? `<dt>written at</dt><dd>${escaped(file)}</dd>` : ""}${cost ? `<dt>cost</dt><dd class="cost">${cost}</dd>` : ""}</dl>
    <pre>${lineHtml(line.text.trim(), 1e9)}</pre><table>${related.join("")}</table>`;
  card.hidden = false;
  pinned = pin;
  const box = card.getBoundingClientRect();
  card.style.left = Math.max(12, Math.min(x, innerWidth - box.width - 12)) + "px";
  const below = y + 16;
  card.style.top = (below + box.height < innerHeight - 8 ? below : Math.max(8, y - box.height - 14)) + "px";
  for (const node of document.querySelectorAll(".cell[data-place]")) {
    const kin = nodes.length && data.places[Number(node.dataset.place)][2].some(each => nodes.includes(each));
    node.classList.toggle("kin", Boolean(kin));
  }
}

function hideCard() {
  clearTimeout(timer);
  $("card").hidden = true; pinned = false;
  for (const node of document.querySelectorAll(".kin")) node.classList.remove("kin");
}

function openLine(stageIndex, at) {
  const stage = stages[stageIndex], line = stage.program[at];
  go({ stage: stageIndex, view: stage.index && stage.changed ? "diff" : "program" }, row => row.b === line);
}

/* Search */

let hits = [], hitAt = -1, needle = "";
const PER_PASS = 6;

function search(text) {
  needle = text.trim().toLowerCase();
  const box = $("hits");
  hits = []; hitAt = -1;
  box.hidden = !needle;
  if (!needle) { markHits(); return; }
  const whole = needle[0] === "%" ? new RegExp(needle.replace(/[.$]/g, "\\$&") + "(?![\\w.$-])", "i") : null;
  const match = text => whole ? whole.test(text) : text.toLowerCase().includes(needle);
  const known = new Map();
  const places = data.places.map(place => match(place[0].join(" ")) || match(place[1]) || place[2].some(node => match(data.nodes[node])));
  const found = line => { let hit = known.get(line.id); if (hit === undefined) known.set(line.id, hit = match(line.text)); return hit || places[line.place]; };
  box.replaceChildren();
  let total = 0;
  for (const stage of stages) {
    if (stage.index && !stage.changed && !stage.changes.length) continue;
    const lines = stage.program.map((line, at) => ({ line, at, stage })).filter(({ line }) => line.text.trim() !== "}" && found(line));
    const own = stage.changed || !stage.index ? lines : [];
    const steps = stage.changes.map((change, step) => ({ step, stage, rule: data.rules[change[0]] })).filter(({ rule }) => match(rule[0]) || match(`${rule[1]}:${rule[2]}`));
    if (!own.length && !steps.length) continue;
    total += own.length + steps.length;
    const what = [own.length && count(own.length, "line"), steps.length && count(steps.length, "rewrite")].filter(Boolean).join(", ");
    box.append(make("h3", { textContent: `${String(stage.index).padStart(2, "0")} ${stage.name || "input"} ` }, make("span", { textContent: what })));
    const add = (all, from, to) => all.slice(from, to).map(hit => {
      const text = hit.line ? hit.line.text.trim() : `rewrite ${hit.step + 1}: ${hit.rule[0]}  ${hit.rule[1]}:${hit.rule[2]}`;
      const path = hit.line ? pathOf(hit.line).join(" + ") : "";
      const button = make("button", { innerHTML: highlighted(text) + (path ? `<small>${highlighted(path)}</small>` : ""), title: text });
      button.addEventListener("click", () => open(hit));
      hits.push({ ...hit, button });
      return button;
    });
    for (const all of [steps, own]) {
      box.append(...add(all, 0, PER_PASS));
      if (all.length > PER_PASS) {
        const more = make("button", { className: "rest", textContent: `… ${digits(all.length - PER_PASS)} more` });
        more.addEventListener("click", event => { event.stopPropagation(); more.replaceWith(...add(all, PER_PASS, PER_PASS + 200)); });
        box.append(more);
      }
    }
  }
  box.prepend(make("p", { id: "total", textContent: total ? count(total, "hit") : `nothing has “${text.trim()}”` }));
  markHits();
}

function highlighted(text) {
  const at = text.toLowerCase().indexOf(needle);
  if (at < 0) return escaped(text);
  const start = at > 70 ? at - 50 : 0;
  return (start ? "…" : "") + escaped(text.slice(start, at)) + `<mark>${escaped(text.slice(at, at + needle.length))}</mark>` + escaped(text.slice(at + needle.length));
}

function open(hit) {
  $("hits").hidden = true;
  if (hit.rule) go({ stage: hit.stage.index, view: "steps", step: hit.step });
  else openLine(hit.stage.index, hit.at);
}

function nextHit(by) {
  if (!hits.length) return;
  hits[hitAt]?.button.classList.remove("on");
  hitAt = (hitAt + by + hits.length) % hits.length;
  hits[hitAt].button.classList.add("on");
  hits[hitAt].button.scrollIntoView({ block: "nearest" });
}

/** Mark what was searched for in the rows in sight. */
function markHits() {
  if (!needle || needle.length < 2) return;
  for (const code of $("rows").querySelectorAll(".code span, .code w")) {
    if (!code.firstElementChild && code.textContent.toLowerCase().includes(needle)) code.innerHTML = `<mark>${escaped(code.textContent)}</mark>`;
  }
}

/* Events */

function togglePasses() {
  document.body.classList.toggle("alone");
  layout(true);
}

function listen() {
  const view = $("view");
  view.addEventListener("scroll", () => { if (!pinned) hideCard(); paint(false); });
  $("steps").addEventListener("scroll", paintSteps);
  $("rows").addEventListener("click", event => {
    const fold = event.target.closest(".fold");
    if (fold) { expand(fold.item); return; }
    const line = lineAt(event.target);
    if (line && !getSelection().toString()) showCard(line, event.clientX, event.clientY, true);
  });
  $("rows").addEventListener("mouseover", event => {
    if (pinned) return;
    clearTimeout(timer);
    const line = lineAt(event.target), { clientX, clientY } = event;
    timer = setTimeout(() => line ? showCard(line, clientX, clientY, false) : hideCard(), line ? 280 : 120);
  });
  $("rows").addEventListener("mouseleave", () => { clearTimeout(timer); if (!pinned) timer = setTimeout(hideCard, 260); });
  $("card").addEventListener("mouseenter", () => clearTimeout(timer));
  $("card").addEventListener("mouseleave", () => { if (!pinned) timer = setTimeout(hideCard, 260); });
  $("card").addEventListener("click", event => {
    const button = event.target.closest("button");
    if (button?.dataset.stage) openLine(Number(button.dataset.stage), Number(button.dataset.at));
    else if (button) { if (pinned) hideCard(); else { pinned = true; button.textContent = "close (Esc)"; } }
  });
  document.addEventListener("mousedown", event => {
    if (pinned && !event.target.closest("#card")) hideCard();
    if (!event.target.closest(".search")) $("hits").hidden = true;
  });
  for (const name of ["diff", "steps", "program"]) $("tab-" + name).addEventListener("click", () => go({ view: name }));
  $("wide").addEventListener("click", togglePasses);
  $("theme").addEventListener("click", switchTheme);
  $("back").addEventListener("click", () => go({ step: state.step - 1 }));
  $("forth").addEventListener("click", () => go({ step: state.step + 1 }));
  $("slider").addEventListener("input", event => go({ step: Number(event.target.value) }));
  $("query").addEventListener("input", event => search(event.target.value));
  $("query").addEventListener("focus", () => { if (needle) $("hits").hidden = false; });
  $("query").addEventListener("keydown", event => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); nextHit(event.key === "ArrowDown" ? 1 : -1); }
    else if (event.key === "Enter" && hits.length) open(hits[Math.max(0, hitAt)]);
    else if (event.key === "Escape") { $("hits").hidden = true; event.target.blur(); }
  });
  document.addEventListener("keydown", event => {
    if (event.target.matches("input[type=search]") || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = { ArrowLeft: { step: state.step - 1 }, ArrowRight: { step: state.step + 1 } }[event.key];
    if (event.key === "/") { event.preventDefault(); $("query").select(); }
    else if (event.key === "Escape") hideCard();
    else if (event.key === "p") togglePasses();
    else if (event.key === "t") switchTheme();
    else if (to && state.view === "steps") { event.preventDefault(); go(to); }
    else if (event.key === "[" || event.key === "]") go({ stage: Math.max(0, Math.min(stages.length - 1, state.stage + (event.key === "]" ? 1 : -1))) });
  });
  addEventListener("resize", () => layout(true));
  addEventListener("hashchange", fromHash);
}

(async () => {
  data = await unpacked("data");
  prepare();
  $("title").textContent = data.title.split("/").pop(); $("title").title = data.title;
  $("target").textContent = data.target ? `for ${data.target}` : "";
  passList();
  listen();
  fromHash();
  countLater();
  // A report that has this page in its folder says which node its reader came from.
  const from = new URLSearchParams(location.search).get("report");
  $("report").hidden = from === null;
  if (from) { $("query").value = from; search(from); }
  document.body.dataset.ready = "yes";
})();
