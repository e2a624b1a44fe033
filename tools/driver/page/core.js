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

/** The bytes that were compressed into a text. */
async function inflated(text) {
  const packed = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return await new Response(stream).arrayBuffer();
}
/** The data of a page: compressed JSON in the element with this id. */
const unpacked = async id => JSON.parse(new TextDecoder().decode(await inflated($(id).textContent.trim())));

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
