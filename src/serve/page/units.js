// Amounts and times as people read them.

import { el, plain, took } from "./text.js";

const SECOND_MS = 1000;
/** How often relative times are renewed. */
const RENEWAL_MS = 10 * SECOND_MS;
const STEPS = [[60, "second", SECOND_MS], [60, "minute", 60 * SECOND_MS], [24, "hour", 3600 * SECOND_MS], [30, "day", 86400 * SECOND_MS]];

// The page is in English; the whole time, which a pointer shows, is in the form of the reader's locale.
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });

/** A time as the distance from now: "2 hr. ago", "yesterday"; a far one as a date. */
function distance(moment, now = Date.now()) {
  const ms = new Date(moment) - now;
  if (!Number.isFinite(ms)) return String(moment);
  if (Math.abs(ms) < 5 * SECOND_MS) return "now";
  for (const [most, unit, length] of STEPS) {
    const n = Math.round(ms / length);
    if (Math.abs(n) < most) return relative.format(n, unit);
  }
  return new Date(moment).toLocaleDateString();
}

/** A relative time that stays true. */
export function ago(moment) {
  const time = el("time", { class: "ago", datetime: moment, title: new Date(moment).toLocaleString() }, distance(moment));
  return time;
}

setInterval(() => {
  for (const time of document.querySelectorAll("time.ago")) {
    const text = distance(time.dateTime);
    if (time.textContent !== text) time.textContent = text;
  }
}, RENEWAL_MS);

/** Dollars, with the digits that say something. */
export function dollars(cost) {
  const n = Number(plain(cost));
  if (n >= 1 || n <= 0) return `$${n.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  return n >= 0.0001 ? `$${n.toFixed(n >= 0.01 ? 3 : 4)}` : "under $0.0001";
}

/** A time in milliseconds: "420 ms", "3.4 s", "12 min", "3 h 20 min", "2 d 4 h". */
export function long(ms) {
  if (ms < 100 * SECOND_MS) return took(ms);
  const minutes = Math.round(ms / (60 * SECOND_MS));
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${hours / 24} d`;
}

/** Whether a run of this status has not ended. */
export const isOpen = (status) => ["running", "queued", "paused"].includes(status);

/** The time from a moment until now, in whole seconds, or until another moment. */
export function span(from, to) {
  const ms = (to ? new Date(to) : Date.now()) - new Date(from);
  if (!(ms >= 0)) return "";
  return to || ms >= 100 * SECOND_MS ? long(ms) : `${Math.round(ms / SECOND_MS)} s`;
}

/** How long a run of a list has been under way, or was. */
export const elapsed = ({ status, created_at: from, duration_ms: ms }) => (isOpen(status) ? span(from, null) : long(ms));
