"use strict";
/* What all pages of abele share. Data is shown as text: nothing here reads HTML from it. */

const $ = id => document.getElementById(id);
const make = (tag, props = {}, ...inner) => {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...inner);
  return node;
};
const digits = n => n.toLocaleString("en");
const count = (n, word) => `${digits(n)} ${word}${n === 1 ? "" : "s"}`;

/** The data of a page: compressed JSON in the element with this id. */
async function unpacked(id) {
  const packed = Uint8Array.from(atob($(id).textContent.trim()), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/* Dark or light: as the system says, until somebody chooses. Pages of one folder share the choice. */

const THEME = "abele-theme";
const chosenTheme = () => { try { return localStorage.getItem(THEME); } catch { return null; } };
const systemTheme = matchMedia("(prefers-color-scheme: dark)");
const themed = new Set();
function applyTheme() {
  document.documentElement.dataset.theme = chosenTheme() || (systemTheme.matches ? "dark" : "light");
  for (const each of themed) each(document.documentElement.dataset.theme);
}
function switchTheme() {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem(THEME, next); } catch { /* a page without storage forgets */ }
  document.documentElement.dataset.theme = next;
  for (const each of themed) each(next);
}
/** Call a function now and whenever the theme changes. */
function onTheme(draw) { themed.add(draw); draw(document.documentElement.dataset.theme); }
systemTheme.addEventListener("change", applyTheme);
applyTheme();
