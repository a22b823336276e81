// Labels by examples: taught to the model that is served, and taken back.
import { administer } from "./answer.mjs";
import { byId, count, make } from "./dom.mjs";

/** The form. `changed` is called when the model has been rewritten, and shows what it answers now. */
export function teaching({ name, changed }) {
  let model = null;

  const ask = (more, options) =>
    administer(`v1/models/${encodeURIComponent(model)}/labels${more}`, byId("teach-key").value.trim(), options);

  const tell = (...said) => byId("teach-said").replaceChildren(...said);

  /** Do what needs the key, one thing at a time; say what is wrong with it. */
  async function attempt(work) {
    for (const button of byId("teach").querySelectorAll("button")) button.disabled = true;
    tell("…");
    try {
      await work();
    } catch (error) {
      tell(error.message);
      if (error.status === 401) byId("teach-key").focus();
    } finally {
      for (const button of byId("teach").querySelectorAll("button")) button.disabled = false;
    }
  }

  async function teach() {
    const label = byId("teach-label").value.trim();
    const examples = byId("teach-examples").value.split("\n").map((line) => line.trim()).filter(Boolean);
    const body = JSON.stringify({ label, examples });
    const taught = await ask("", { method: "POST", headers: { "content-type": "application/json" }, body });
    await list();
    await changed();
    tell(...report(taught), make("br"), taught.calibration);
  }

  function report(taught) {
    const examples = taught.examples === 1 ? "1 example" : `${count(taught.examples)} examples`;
    const said = [name(taught.label), `: ${taught.new ? "new, " : ""}${examples}.`];
    if (taught.without_known_words) said.push(` In ${count(taught.without_known_words)} the model knows no word.`);
    if (taught.found === null) return [...said, " One alone cannot say how well it is told from others."];
    const of = `${count(taught.found)} of ${count(taught.asked)}`;
    said.push(` Left out one at a time, ${of} are found by the others`);
    Object.entries(taught.mistaken_for)
      .slice(0, 3)
      .forEach(([label, times], i) => said.push(i ? ", " : "; mistaken for ", name(label), ` ${count(times)}`));
    return [...said, "."];
  }

  async function takeBack(label) {
    const { left } = await ask(`/${encodeURIComponent(label)}`, { method: "DELETE" });
    await list();
    await changed();
    tell(name(label), left ? ": as it was trained." : ": no longer there.");
  }

  async function list() {
    const { labels } = await ask("", {});
    const taught = labels.filter((each) => each.taught_examples);
    byId("taught").replaceChildren(...taught.map(row));
    tell(taught.length ? "" : "Nothing has been taught.");
  }

  function row({ label, taught_examples: examples }) {
    const click = () => attempt(() => takeBack(label));
    const button = make("button", { type: "button", click, "aria-label": `Take back ${label}` }, "Take back");
    return make("li", {}, name(label), ` · ${examples === 1 ? "1 example" : `${count(examples)} examples`} `, button);
  }

  byId("teach-form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(teach);
  });
  byId("teach-list").addEventListener("click", () => attempt(list));

  return {
    /** Show the form if this model can be taught here. */
    show(card) {
      if (model === card.name) return;
      model = card.teachable ? card.name : null;
      byId("teach").hidden = model === null;
      byId("taught").replaceChildren();
      tell();
    },
  };
}
