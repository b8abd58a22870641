// What people did with the runs, and what they were refused: the newest first.

import { moment, whatWasDone } from "./place.js";
import { because, get } from "./server.js";
import { el, fill, plain, refill } from "./text.js";
import { ago } from "./units.js";

/** The lines of a page. */
const PAGE_LINES = 100;
const ACTIONS = ["started", "cancelled", "decided", "retried", "limits_raised", "released", "pruned", "switched_off", "switched_on", "refused"];
const HEADS = ["When", "What", "Who", "Loop", "Run", "More"];

const words = (action) => action.replaceAll("_", " ");

function row(line) {
  const times = Number(plain(line.times));
  return el("tr", {}, el("td", { class: "short" }, ago(line.at)), el("td", {}, words(line.action), times > 1 ? el("span", { class: "meta" }, ` ${times} times`) : []),
    el("td", {}, line.by ? el("a", { class: "link", href: whatWasDone({ token: line.by }) }, line.by) : ""), el("td", {}, line.loop || ""),
    el("td", {}, line.agent_run_id ? el("a", { class: "link id", href: `#${encodeURIComponent(line.agent_run_id)}` }, line.agent_run_id) : ""),
    el("td", { class: "long" }, [line.detail, line.org && `organisation ${line.org}`].filter(Boolean).join(" · ")));
}

/** The fields that choose lines. */
function chooses(filters) {
  const go = (more) => { location.hash = whatWasDone({ ...filters, cursor: "", ...more }); };
  const option = (value, word, now) => { const one = el("option", { value }, word); one.selected = value === (now || ""); return one; };
  const action = el("select", { id: "audit-action" }, option("", "all", filters.action), ACTIONS.map((word) => option(word, words(word), filters.action)));
  const since = el("select", { id: "audit-since" }, [["", "at any time"], ["hour", "in the last hour"], ["today", "today"],
    ["yesterday", "since yesterday"], ["week", "in the last 7 days"]].map(([value, word]) => option(value, word, filters.since)));
  action.addEventListener("change", () => go({ action: action.value }));
  since.addEventListener("change", () => go({ since: since.value }));
  const only = ["token", "run"].filter((key) => filters[key]).map((key) => `${key === "run" ? "run" : "by"} ${filters[key]}`).join(", ");
  return [el("div", { class: "bar" }, el("div", { class: "fields" }, el("label", {}, "What ", action), el("label", {}, "When ", since))),
    only ? el("p", { class: "meta" }, `Only these: ${only}. `, el("a", { class: "link", href: whatWasDone({ ...filters, token: "", run: "", cursor: "" }) }, "Without this filter")) : []];
}

/** Shows the lines of these filters. */
export async function audit(section, _name, filters) {
  const key = `audit ${JSON.stringify(filters)}`;
  const isNew = section.shown !== key;
  section.shown = key;
  if (isNew) {
    section.known = "";
    fill(section, chooses(filters), el("p", { class: "empty" }, "…"));
  }
  try {
    const query = new URLSearchParams({ limit: PAGE_LINES });
    for (const [name, value] of Object.entries(filters)) query.set(name, name === "since" ? moment(value) : value);
    const { audit: lines, next_cursor: next } = await get(`audit?${query}`);
    if (section.shown !== key) return;
    const text = JSON.stringify([lines, next]);
    if (section.known === text) return;
    section.known = text;
    const list = lines.length ? el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "What was done" }, el("table", { class: "approvals" },
      el("thead", {}, el("tr", {}, HEADS.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, lines.map(row)))) : el("p", { class: "empty" }, "There are no such lines.");
    const pages = next || filters.cursor ? el("p", { class: "pages" }, filters.cursor ? el("a", { href: whatWasDone({ ...filters, cursor: "" }) }, "Newest") : [],
      next ? el("a", { href: whatWasDone({ ...filters, cursor: plain(next) }) }, "Older") : []) : [];
    const [...fields] = section.querySelectorAll(":scope > .bar, :scope > .meta");
    if (isNew || !fields.length) fill(section, chooses(filters), list, pages);
    else refill(section, fields, list, pages);
  } catch (why) {
    section.known = "";
    if (section.shown === key) fill(section, chooses(filters), el("p", { class: "fault" }, because(why)));
  }
}
