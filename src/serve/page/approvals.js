// The approvals that wait, as one table: what each of them is about, value by value, to be ticked and decided together. Each is a
// decision of its own, bound to what its row showed.

import { button, field } from "./decide.js";
import { stoppedBy } from "./said.js";
import { count, el, exact, exactText, fill, plain } from "./text.js";

/** From this number of approvals on, they are a table. */
const LEAST_ROWS = 2;
/** The most columns of values, and the most characters of a value. */
const MOST_COLUMNS = 6;
const MOST_CHARACTERS = 160;
const MOST_LEAVES = 500;
/** The most decisions of a request. */
const MOST_DECISIONS = 500;
/** A path into a list: no column, because lists differ in length. */
const OF_A_LIST = /(^|\.)\d+(\.|$)/;
/** A value of at most this number of characters stays on one line. */
const SHORT = 28;

/** Whether a question is a plain yes or no about what it shows. */
export const isPlain = (question) => question.kind === "approval" && question.hash && !question.calls && !question.expected_keys && !question.run_id;

/** The texts, numbers and words in a value, and its empty lists and objects, by their paths: as many as are counted. */
function leaves(value, path = "", found = []) {
  if (found.length >= MOST_LEAVES) return found;
  const isEmpty = value !== null && typeof value === "object" && !Object.keys(value).length && (path || Array.isArray(value));
  if (value === null || typeof value !== "object" || isEmpty) found.push([path || "value", value]);
  else for (const [key, member] of Object.entries(value)) leaves(member, path ? `${path}.${key}` : key, found);
  return found;
}

const cut = (text) => (text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text);

/** A value without the quotes of JSON; all in it that deceives is escaped. */
function shown(value) {
  const text = exactText(typeof value === "string" && plain(value) === value ? value.slice(0, MOST_CHARACTERS + 1) : value);
  const bare = text.startsWith("\"") ? text.slice(1, -1) : text;
  return cut(bare);
}

/** The columns of a table: the paths that most rows have, in their order. */
function columns(questions) {
  const counts = new Map();
  for (const question of questions) {
    for (const [path] of leaves(question.action_input ?? {}).filter(([path]) => !OF_A_LIST.test(path))) counts.set(path, (counts.get(path) || 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, MOST_COLUMNS).map(([path]) => path);
}

/** All of what is approved, once somebody wants to see it. */
function whole(question, more) {
  const details = el("details", {}, el("summary", {}, more > 0 ? `${count(more, "more value")}` : "whole"));
  details.addEventListener("toggle", () => {
    if (details.children.length < 2) details.append(el("pre", { class: "exact" }, exact(question.action_input)));
  });
  return details;
}

function cell(has, value) {
  const text = has ? shown(value) : "";
  const isNumber = typeof value === "number" || typeof value === "string" && plain(value) !== value;
  return el("td", { class: isNumber ? "number-of" : text.length <= SHORT ? "short" : "long" }, text);
}

function row(question, paths, link, keep) {
  const values = leaves(question.action_input ?? {});
  const known = new Map(values);
  const more = values.length - paths.filter((path) => known.has(path)).length;
  const tick = el("input", { type: "checkbox", "aria-label": `Choose ${question.at}` });
  tick.checked = keep.has(question.at);
  tick.addEventListener("change", () => (tick.checked ? keep.add(question.at) : keep.delete(question.at)));
  return el("tr", { "data-at": question.at }, el("td", {}, tick),
    el("td", {}, el("a", { class: "at", href: link(question.at) }, question.at),
      question.item_label === undefined ? [] : el("span", { class: "meta" }, plain(question.item_label)), el("span", { class: "asks" }, cut(question.question))),
    paths.map((path) => cell(known.has(path), known.get(path))),
    el("td", {}, more > 0 || values.some(([, value]) => String(value).length > MOST_CHARACTERS)
      ? whole(question, more) : []),
    el("td", {}, el("span", { class: "meta outcome", role: "status" })));
}

/** The decision about a question, as it is sent. What is said with a yes goes on only from an approval that is a step of its own. */
const decided = (question, approved, comment) => ({ at: question.at, approved, hash: question.hash,
  ...(comment && (!approved || question.action === "PbotApproval") ? { comment } : {}) });

/** Decides about the rows that are ticked, in one request; each has its own result. */
async function decide(part, approved, ways) {
  const chosen = part.questions.filter((question) => part.keep.has(question.at));
  const outcome = (at, text) => fill(part.querySelector(`tr[data-at="${CSS.escape(at)}"] .outcome`) || el("i", {}), text);
  if (!chosen.length) return fill(part.says, "Tick the rows first.");
  const buttons = [...part.querySelectorAll("button")];
  for (const one of buttons) one.disabled = true;
  part.busy = true;
  let [taken, left, more] = [0, "", []];
  for (let from = 0; from < chosen.length && !left; from += MOST_DECISIONS) {
    const some = chosen.slice(from, from + MOST_DECISIONS);
    fill(part.says, from ? `${from} of ${chosen.length} decided` : `${count(some.length, "decision")}…`);
    const result = await part.post(some.map((question) => decided(question, approved, part.comment.value.trim())), ways);
    if (result.why) { left = result.why; break; }
    for (const at of result.taken) { outcome(at, approved ? "approved" : "denied"); part.keep.delete(at); }
    for (const { at, detail } of result.refused) outcome(at, detail);
    taken += result.taken.length;
    if (result.stopped) left = `the others were not tried: ${stoppedBy(result.stopped)}`;
    if (result.changed) more = result.changed((ways) => decide(part, approved, ways));
  }
  const refused = chosen.length - taken;
  const why = left || (refused ? `${refused} refused: the rows say why` : "");
  part.note = `${count(taken, "decision")} taken${why ? `, ${why}` : ""}`;
  fill(part.says, part.note, more);
  part.busy = false;
  // What was said about these is not said about the next ones.
  if (!refused) part.comment.value = "";
  for (const one of buttons) one.disabled = false;
  return undefined;
}

/** Shows the approvals among the questions as a table, and whether it did. */
export function table(part, questions, post, link) {
  const waits = questions.filter(isPlain);
  part.hidden = waits.length < LEAST_ROWS && !part.busy;
  if (part.hidden) { part.key = ""; return false; }
  Object.assign(part, { questions: waits, post });
  part.keep ||= new Set();
  const key = waits.map((question) => `${question.at} ${question.hash}`).join("|");
  if (part.key === key || part.busy) return true;
  part.key = key;
  // Who decides a row of another one keeps what was ticked, and what was written.
  for (const at of [...part.keep]) if (!waits.some((question) => question.at === at)) part.keep.delete(at);
  const paths = columns(waits);
  const all = el("input", { type: "checkbox", "aria-label": "Choose all" });
  all.addEventListener("change", () => {
    for (const tick of part.querySelectorAll("tbody input")) if (tick.checked !== all.checked) tick.click();
  });
  const [label, comment] = field("Comment (for all that are ticked)", "input");
  comment.value = part.comment?.value || "";
  part.comment = comment;
  part.says = el("span", { class: "meta", role: "status" }, part.note || "");
  const names = paths.map((path) => path.split(".").pop());
  const heads = paths.map((path, n) => el("th", { scope: "col", title: path }, names.indexOf(names[n]) === n && names.lastIndexOf(names[n]) === n ? names[n] : path));
  fill(part, el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "The approvals" }, el("table", { class: "approvals" },
    el("thead", {}, el("tr", {}, el("td", {}, all), el("th", { scope: "col" }, "Step"), heads, el("td", {}), el("td", {}))),
    el("tbody", {}, waits.map((question) => row(question, paths, link, part.keep))))),
    label, el("div", { class: "buttons" }, button("Approve the ticked", "good", () => decide(part, true)),
      button("Deny the ticked", "bad", () => decide(part, false)), part.says),
    el("p", { class: "meta alone" }, "Or decide about one alone, or change what it is given:"));
  return true;
}
