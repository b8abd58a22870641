// What can be done with a run: cancel it, or start a new one like it. Each is confirmed by a sentence that says what it does.

import { ask, because, get, of } from "./server.js";
import { changed, say } from "./said.js";
import { button, field } from "./decide.js";
import { difference } from "./diff.js";
import { el, fill } from "./text.js";

/** What the folder has changed in the documents of a run since it started, once somebody wants to see it. */
export function changes(run) {
  const part = el("div", {}, el("p", { class: "meta" }, "…"));
  const details = el("details", { class: "changes" }, el("summary", {}, "What has changed"), part);
  details.addEventListener("toggle", async () => {
    if (!details.open || details.asked) return;
    details.asked = true;
    try {
      const { files, left_out: left = [] } = await get(of(run.id, "document"));
      fill(part, files.map((one) => [el("p", { class: "meta" }, one.file, one.present === undefined ? ", not used any more" : one.recorded === undefined ? ", new" : ""),
        difference(one.recorded, one.present)]), left.length ? el("p", { class: "meta" }, `Not shown here: ${left.join(", ")}`) : [],
      files.length || left.length ? [] : el("p", { class: "meta" }, "Nothing but its form."));
    } catch (why) {
      details.asked = false;
      fill(part, el("p", { class: "fault" }, because(why)));
    }
  });
  return details;
}

/** Asks for a confirmation. `act` does it, with what was written in the field `note`, and throws when it fails; `others` say
 * other ways after a refusal. */
export function confirm({ title, text, verb, kind, note, keep = "Close" }, act, ...others) {
  const fault = el("div", { class: "fault", role: "alert" });
  const [label, input] = note ? field(note, "input") : [[], null];
  const buttons = el("div", { class: "buttons" });
  const dialog = el("dialog", { class: "card", "aria-labelledby": "dialog-title" }, el("h2", { id: "dialog-title" }, title),
    el("p", {}, text), label, fault, buttons);
  const perform = async (way) => {
    for (const one of buttons.children) one.disabled = true;
    fill(fault, "");
    try {
      await way(input ? input.value.trim() : "");
      dialog.close();
    } catch (why) {
      fill(fault, el("p", {}, because(why)));
      const ways = others.map((other) => other(why)).filter(Boolean);
      if (ways.length) fault.append(...ways.flatMap(({ shows }) => shows || []), el("div", { class: "buttons" }, ways.map((way) => button(way.verb, "", () => perform(way.act)))));
      for (const one of buttons.children) one.disabled = false;
    }
  };
  fill(buttons, button(verb, kind, () => perform(act)), button(keep, "", () => dialog.close()));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function cancel(run, done) {
  confirm({
    title: `Cancel the run ${run.id}?`, kind: "bad", verb: "Cancel this run", keep: "Leave it running", note: "Why (the trace keeps it)",
    text: `The run of ${run.name} ends, and can't continue. What its calls did stays done, and its trace stays.`,
  }, async (reason) => {
    await ask(`agents/${encodeURIComponent(run.id)}${reason ? `?reason=${encodeURIComponent(reason)}` : ""}`, { method: "DELETE" });
    say("The run is cancelled.");
    done();
    changed();
  });
}

/** A word that makes a start that is sent twice one run. */
export const startKey = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("");

function rerun(run) {
  const key = startKey();
  const send = (body, key) => async () => {
    const answer = await ask(of(run.id, "rerun?async=true"), { method: "POST", body, headers: { "Idempotency-Key": key } });
    const { agent_run_id: id } = await answer.json();
    changed();
    location.hash = `#${encodeURIComponent(id)}`;
  };
  confirm({
    title: `Run ${run.name} again?`, kind: "first", verb: "Start a new run",
    text: `A new run starts with the input of ${run.id}. Its calls are made again; the earlier run stays as it is.`,
  }, send("{}", key), (why) => (why.code === "document_changed"
    ? { shows: changes(run), verb: "Start it with the present document", act: send('{"document":"current"}', startKey()) } : null));
}

/** How a workflow ends that can be retried at the steps that failed. */
const STEPS_FAILED = ["step_failed", "rejected", "form_expired"];

/** Retries a run whose model could not be reached, or that failed in a way that a retry may cure. */
function retry(run, done) {
  const send = (more) => async () => {
    await ask(of(run.id, "retry?async=true"), { method: "POST", body: `{${more}}` });
    say("The run is retried.");
    done();
    changed();
  };
  confirm({
    title: `Retry the run ${run.id}?`, kind: "first", verb: "Retry this run",
    text: "It continues where it failed. What is done stays done, and what failed is tried again.",
  }, send(""), (why) => (why.code === "document_changed"
    ? { shows: changes(run), verb: "With the new text", act: send('"new_document":true') } : why.code === "on_failure_ran"
    ? { verb: "Retry all the same", act: send('"after_on_failure":true') } : null), (why) => (why.code === "document_changed"
    ? { verb: "With the recorded text", act: send('"new_document":false') } : null));
}

/** The buttons for a run in this status. */
export function acts(run, { status, result, copy }, done) {
  if (copy) return button("Run again", "small", () => rerun(run));
  const isOver = ["completed", "failed", "cancelled"].includes(status);
  if (!isOver) return button("Cancel", "small bad", () => cancel(run, done));
  const isRetryable = status === "failed" && (result.termination === "model_error" && result.error?.retryable || result.termination === "spending_limit" || STEPS_FAILED.includes(result.termination));
  return [isRetryable ? button("Retry", "small", () => retry(run, done)) : [], button("Run again", "small", () => rerun(run))];
}
