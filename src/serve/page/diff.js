// The lines in which two texts differ, with some lines around them.

import { el } from "./text.js";

/** The lines around a change that are shown, and the most cells of the table that finds the common lines. */
const AROUND = 3;
const MOST_CELLS = 4000000;

/** The lines of two texts that have one order in both: `[["=", line], ["-", line], ["+", line]]`. */
function compared(before, after) {
  let from = 0;
  while (from < before.length && from < after.length && before[from] === after[from]) from += 1;
  let same = 0;
  while (same < before.length - from && same < after.length - from && before[before.length - 1 - same] === after[after.length - 1 - same]) same += 1;
  const [old, now] = [before.slice(from, before.length - same), after.slice(from, after.length - same)];
  const found = before.slice(0, from).map((line) => ["=", line]);
  if (old.length * now.length > MOST_CELLS) found.push(...old.map((line) => ["-", line]), ...now.map((line) => ["+", line]));
  else found.push(...middle(old, now));
  found.push(...before.slice(before.length - same).map((line) => ["=", line]));
  return found;
}

/** The same, by the longest common lines. */
function middle(old, now) {
  const width = now.length + 1;
  const length = new Uint32Array((old.length + 1) * width);
  for (let a = old.length - 1; a >= 0; a -= 1) {
    for (let b = now.length - 1; b >= 0; b -= 1) {
      length[a * width + b] = old[a] === now[b] ? length[(a + 1) * width + b + 1] + 1 : Math.max(length[(a + 1) * width + b], length[a * width + b + 1]);
    }
  }
  const found = [];
  let [a, b] = [0, 0];
  while (a < old.length || b < now.length) {
    if (a < old.length && b < now.length && old[a] === now[b]) { found.push(["=", old[a]]); a += 1; b += 1; }
    else if (b >= now.length || a < old.length && length[(a + 1) * width + b] >= length[a * width + b + 1]) { found.push(["-", old[a]]); a += 1; }
    else { found.push(["+", now[b]]); b += 1; }
  }
  return found;
}

const lines = (text) => (text === undefined ? [] : text.replace(/\n$/, "").split("\n"));

/** The difference of two texts; each may be missing. */
export function difference(before, after) {
  const all = compared(lines(before), lines(after));
  const near = new Set();
  all.forEach(([kind], n) => { if (kind !== "=") for (let at = n - AROUND; at <= n + AROUND; at += 1) near.add(at); });
  const shown = [];
  let cut = false;
  all.forEach(([kind, line], n) => {
    if (!near.has(n)) { cut = true; return; }
    if (cut) shown.push(el("span", { class: "cut" }, "…\n"));
    cut = false;
    const sign = kind === "=" ? "  " : `${kind} `;
    shown.push(el({ "-": "del", "+": "ins" }[kind] || "span", {}, `${sign}${line}\n`));
  });
  if (cut) shown.push(el("span", { class: "cut" }, "…\n"));
  return el("pre", { class: "diff", tabindex: "0" }, shown);
}
