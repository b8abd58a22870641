// Text from outside, made safe to look at: it goes into the page as text, never as markup, and characters
// that are not seen or that turn text around are shown by their numbers.

// Both are filled in from the server's own table of characters when this file is served: what is shown by its
// number in prose, and what is where somebody agrees to a call.
const HIDDEN = /[@HIDDEN@]/gu;
const DECEIVES = /[@DECEIVES@]/gu;
// What marks a number that JavaScript would round. Nobody outside knows it.
const MARK = Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("") + ":";

/** The most characters of a value that are shown. */
const LONGEST = 100000;

/** The most marks of hidden characters that are elements: a text of nothing else would make a page of a million. */
const MOST_MARKS = 2000;

const number = (sign) => `\\u{${sign.codePointAt(0).toString(16).toUpperCase()}}`;

/** Text as nodes, with what is hidden in it made visible. */
function shown(text) {
  const pieces = [];
  let from = 0;
  for (const hit of text.matchAll(HIDDEN)) {
    if (pieces.length >= 2 * MOST_MARKS) break;
    const seen = document.createElement("span");
    seen.className = "hid";
    seen.textContent = number(hit[0]);
    pieces.push(document.createTextNode(text.slice(from, hit.index)), seen);
    from = hit.index + hit[0].length;
  }
  const rest = text.slice(from);
  pieces.push(document.createTextNode(pieces.length >= 2 * MOST_MARKS ? rest.replace(HIDDEN, number) : rest));
  return pieces;
}

/** An element. Strings among its children are text. */
export function el(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") made.addEventListener(name === "form" ? "submit" : "click", value);
    else made.setAttribute(key, value);
  }
  fill(made, ...children);
  return made;
}

export function fill(element, ...children) {
  const nodes = children.flat(Infinity).flatMap((child) => (child instanceof Node ? [child] : shown(String(child))));
  element.replaceChildren(...nodes);
}

/** The same for what is shown anew again and again: what has the focus keeps it. */
export function refill(element, ...children) {
  const able = () => [...element.querySelectorAll("a, button, summary, input, select, textarea")];
  const at = able().indexOf(document.activeElement);
  fill(element, ...children);
  if (at >= 0) able()[at]?.focus({ preventScroll: true });
}

/** JSON with every number as it was written: those that would be rounded become marked text. */
export function parse(text) {
  const kept = text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g, (token) =>
    token[0] === '"' || String(Number(token)) === token ? token : `"${MARK}${token}"`);
  return JSON.parse(kept);
}

const quoted = (text, signs) => JSON.stringify(text).replace(signs, (sign) =>
  Array.from({ length: sign.length }, (_, at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""));

/** A value as indented JSON, in nodes and strings. */
export function json(value, indent = "", signs = HIDDEN) {
  if (typeof value === "string") {
    return value.startsWith(MARK) ? [el("span", { class: "n" }, value.slice(MARK.length))] : [el("bdi", {}, quoted(value, signs))];
  }
  if (value === null || typeof value !== "object") return [el("span", { class: "n" }, String(value))];
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  if (!entries.length) return [list ? "[]" : "{}"];
  const inner = `${indent}  `;
  const members = entries.map(([key, member], at) => [
    `${at ? "," : ""}\n${inner}`, list ? [] : [el("bdi", { class: "k" }, quoted(key, signs)), ": "],
    json(member, inner, signs)]);
  return [list ? "[" : "{", ...members.flat(Infinity), `\n${indent}${list ? "]" : "}"}`];
}

/** The same for what somebody agrees to: no character can pass for another one. */
export const exact = (value) => json(value, "", DECEIVES);
export const exactText = (value) => value === undefined ? "" : exact(value).map((piece) => (piece instanceof Node ? piece.textContent : piece)).join("");
/** A text as it is, anything else as JSON. */
export const readable = (value) => (typeof value === "string" && !value.startsWith(MARK) ? value : json(value));
/** A value as JSON, with every number as it was written: what is shown or sent of it. */
export const jsonText = (value) => JSON.stringify(value).replaceAll(new RegExp(`"${MARK}([^"]*)"`, "g"), "$1");
export const plain = (value) => (String(value).startsWith(MARK) ? String(value).slice(MARK.length) : String(value));
/** A number to reckon with; 0 where there is none. */
export const amount = (value) => Number(plain(value ?? 0));
export const took = (ms) => (amount(ms) < 1000 ? `${plain(ms)} ms` : `${(amount(ms) / 1000).toFixed(1)} s`);
export const count = (n, word) => `${plain(n)} ${word}${amount(n) === 1 ? "" : "s"}`;
export const when = (moment) => el("time", { datetime: moment, title: moment }, new Date(moment).toLocaleString());
/** A text, or the first part of a very long one. */
export const prose = (text) => (text.length <= LONGEST ? text
  : [text.slice(0, LONGEST), el("span", { class: "meta" }, `… ${count(text.length, "character")} in all`)]);
/** A value whole, or the first part of a very long one as text. */
function whole(value) {
  const text = typeof value === "string" ? plain(value) : jsonText(value);
  if (text.length <= LONGEST) return readable(value);
  return [text.slice(0, LONGEST), el("span", { class: "meta" }, `… ${count(text.length, "character")} in all`)];
}
export const box = (value, kind) => (value === undefined ? [] : el("pre", { class: kind, tabindex: "0" }, whole(value)));
export const head = (action, note) => el("p", { class: "head" }, el("code", {}, action), el("span", { class: "meta" }, note));
/** The id of a call, like `2.0`. */
export const called = (call) => call && `${plain(call.iteration)}.${plain(call.index)}`;

/** What a human decided, in a line. */
export function decision(event) {
  const of = event.approvals ? ` (${plain(event.approvals.given)} of ${plain(event.approvals.needed)})` : "";
  const by = `${event.by ? ` by ${event.by}` : ""}${of}`;
  const comment = event.comment ? `: ${event.comment}` : "";
  return el("p", { class: "meta" }, `${event.decision}${event.on_expiry ? `: ${event.on_expiry}` : ""}${by}${comment} · `, when(event.at));
}

/** To whom a question was posted, or why it was not, in a line. */
export function post({ at, to, tries, posted_at: posted, error, next_try_at: next, without_link: why }) {
  const failed = amount(tries) - (posted ? 1 : 0);
  const how = failed ? `, after ${failed} failed` : "";
  if (posted) return el("p", { class: "meta" }, `${at}: asked ${to}${how} · `, when(posted), why ? ` · without a link: ${why}` : "");
  return el("p", { class: "meta" }, `${at}: ${to} was not asked${how} (${error})`, next ? [" · next try ", when(next)] : " · given up");
}

/** What the approval of a call needs, and what it has. */
export function needs(approval) {
  if (!approval) return [];
  const facts = [];
  if (approval.approvers) {
    const names = (approval.approved_by || []).join(", ");
    facts.push([`${plain(approval.approvers)} different people must approve it; ${names ? `so far: ${names}` : "none has so far"}`]);
  }
  if (approval.expires_at) {
    const then = { deny: "is denied", fail: "fails the run", escalate: "is escalated" }[approval.on_expiry];
    facts.push(["without a decision until ", when(approval.expires_at), `, it ${then}`]);
  }
  if (approval.escalated) facts.push(["escalated: only holders of the scope decide:escalated may decide"]);
  if (approval.why) facts.push([`whether it needs an approval can't be decided: ${approval.why}`]);
  return facts.map((fact) => el("p", { class: "meta" }, ...fact));
}

/** How a human made a run continue, in a line of the trace. */
export function continuation(event) {
  const by = event.by ? ` by ${event.by}` : "";
  const limits = event.limits ? ` ${jsonText(event.limits)}` : "";
  return el("li", { class: "meta" }, `${event.limits ? "limits raised" : "retried"}${by}${limits} · `, when(event.at));
}

/** A model that failed and is asked again, or to which a request waits for its turn. */
export const away = (wait) => !wait.attempts
  ? [`A ${wait.of ? "call" : "request"} to the ${wait.of || "model"} ${wait.model} waits for its turn since `, when(wait.since), `: ${wait.kind}.`, ...(wait.again_at ? [" It is sent at ", when(wait.again_at), "."] : [])] : [`The model ${wait.model} is away since `, when(wait.since),
  `: ${count(wait.attempts, "attempt")} failed, the last one with ${wait.kind}. It is asked again at `, when(wait.again_at), "."];

/** How long a call waited for its turn, from a second on. */
export const waited = ({ waited_ms: ms = 0 }) => (amount(ms) < 1000 ? "" : `after a wait of ${took(ms)} for its turn`);

/** How a call ended, how long it took, and when it was asked for, decided and made: equal times once. */
export function ending(event) {
  const how = event.call_status || (event.success ? "" : "failed");
  const times = [];
  for (const [what, at] of [["asked", event.timestamp], ["decided", event.decided_at], ["called", event.called_at]]) {
    if (!at || !event.action) continue;
    const last = times[times.length - 1];
    if (last && new Date(last.at).toLocaleString() === new Date(at).toLocaleString()) last.what = `${last.what.replace(" and ", ", ")} and ${what}`;
    else times.push({ what, at });
  }
  return [[how, event.call_status ? "" : took(event.duration_ms), waited(event)].filter(Boolean).join(" · "),
    ...times.map(({ what, at }) => [` · ${what} `, when(at)])];
}

/** The run stopped during the calls that are still open: they may have happened. */
export const stopped = (trace) => trace.querySelectorAll(".call.open .head .meta").forEach((note) => fill(note, "uncertain"));
