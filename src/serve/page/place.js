// Where the page is: the address names a view and its filters, or a run and a part of it. Each change is a step of the browser's
// history, so that its buttons work.

/** The filters of a list of runs that are times. */
export const TIMES = ["since", "until", "ended_since", "ended_until"];
/** The filters of the views that have some, by their names in the address. */
const FILTERS = ["status", "waiting", "search", "loop", ...TIMES, "session", "called", "cursor"];
const OF_VIEWS = { runs: FILTERS, audit: ["action", "token", "run", "since", "cursor"] };
const VIEWS = ["runs", "loops", "workers", "audit"];

// An address that was typed by hand may not be valid.
const decoded = (text) => { try { return decodeURIComponent(text); } catch { return ""; } };

/** The place that an address names: `#` is home, `#/runs?status=failed` a list, `#ID/review.57` a part of a run. */
export function read(hash = location.hash) {
  const text = hash.replace(/^#/, "");
  if (!text.startsWith("/")) {
    const [id, at = ""] = text.split("/").map(decoded);
    return { view: id ? "run" : "home", id, at, name: "", filters: {} };
  }
  const [path, query = ""] = text.slice(1).split("?");
  const [view, name = ""] = path.split("/");
  const written = new URLSearchParams(query);
  const filters = Object.fromEntries((OF_VIEWS[view] || []).map((key) => [key, written.get(key) || ""]).filter(([, value]) => value));
  return { view: VIEWS.includes(view) ? view : "home", id: "", at: "", name: decoded(name), filters };
}

/** The address of a view with these filters of it. */
function addressed(view, filters) {
  const query = new URLSearchParams(OF_VIEWS[view].map((key) => [key, filters[key] || ""]).filter(([, value]) => value));
  return `#/${view}${query.size ? `?${query}` : ""}`;
}

/** The address of the list of runs with these filters. */
export const listed = (filters) => addressed("runs", filters);

/** The address of the list of what was done with these filters. */
export const whatWasDone = (filters) => addressed("audit", filters);

/** The moment that a filter of the time means: a word for a part of the calendar of the reader, or a time. */
export function moment(word, now = new Date()) {
  const midnight = (before) => new Date(now.getFullYear(), now.getMonth(), now.getDate() - before).toISOString();
  const words = { hour: () => new Date(now - 3600000).toISOString(), today: () => midnight(0), yesterday: () => midnight(1), week: () => midnight(6) };
  return words[word] ? words[word]() : word;
}

/** What the server is asked for runs with these filters. */
export function asked(filters, limit) {
  const query = new URLSearchParams({ limit });
  for (const key of FILTERS) {
    if (filters[key]) query.set(key, TIMES.includes(key) ? moment(filters[key]) : filters[key]);
  }
  return `agents?${query}`;
}

/** What the server is asked for the figures of the runs with these filters. No journal is read for them. */
export function usage(filters) {
  const query = new URLSearchParams({ by: "loop", journals: 0 });
  for (const key of ["loop", "since", "until"]) if (filters[key]) query.set(key, key === "loop" ? filters[key] : moment(filters[key]));
  return `usage?${query}`;
}
