// What can be done with a run: cancel it, or start a new one like it. Each is confirmed by a sentence that says what it does.

import { ask, because, of } from "./server.js";
import { changed, say } from "./said.js";
import { button, field } from "./decide.js";
import { el, fill } from "./text.js";

/** Asks for a confirmation. `act` does it, with what was written in the field `note`, and throws when it fails; `other` says
 * another way after a refusal. */
export function confirm({ title, text, verb, kind, note, keep = "Close" }, act, other) {
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
      const another = other?.(why);
      if (another) fault.append(el("div", { class: "buttons" }, button(another.verb, "", () => perform(another.act))));
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
    ? { verb: "Start it with the present document", act: send('{"document":"current"}', startKey()) } : null));
}

/** The buttons for a run in this status. */
export function acts(run, { status }, done) {
  const isOver = ["completed", "failed", "cancelled"].includes(status);
  return isOver ? button("Run again", "small", () => rerun(run)) : button("Cancel", "small bad", () => cancel(run, done));
}
