// Which labels stand on the page, in which order, and which one is meant: pure functions, without the page.

import { pathOf } from "./tree.mjs";

/** So many labels keep their places, and their keys; of more the most probable come first. */
export const FIXED = 9;
/** Of more than so many labels only these are shown until somebody types, or wants to see all. */
export const FOLDED = 24;

const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().trim();

/** The labels in the order in which they are shown, each with the key that gives it.
 *
 * `typed` finds labels: those that are it first, then those that begin with it, be it at a part of a path, then those
 * that hold it; of these the more probable ones first. With `typed` there are no keys, as digits are typed, too; and a
 * name that no label has is offered as a new one.
 */
export function shown(labels, scores, typed = "", all = false) {
  const wanted = plain(typed);
  if (wanted) {
    const rank = (label) => {
      const names = [label, ...pathOf(label)].map(plain);
      if (names[0] === wanted || names.at(-1) === wanted) return 0;
      return names.some((name) => name.startsWith(wanted)) ? 1 : names[0].includes(wanted) ? 2 : 3;
    };
    const score = (label) => scores.get(label) ?? -Infinity;
    const better = (a, b) => (score(a) === score(b) ? 0 : score(b) - score(a));
    const ranks = new Map(labels.map((label) => [label, rank(label)]));
    const found = labels.filter((label) => ranks.get(label) < 3).sort((a, b) => ranks.get(a) - ranks.get(b) || better(a, b));
    const rows = found.map((label) => ({ label, key: "", fresh: false }));
    const name = typed.trim();
    return labels.includes(name) ? rows : [...rows, { label: name, key: "", fresh: true }];
  }
  let order = labels;
  if (labels.length > FIXED) {
    const best = [...labels].filter((label) => scores.has(label)).sort((a, b) => scores.get(b) - scores.get(a)).slice(0, FIXED);
    order = [...best, ...labels.filter((label) => !best.includes(label))];
  }
  if (!all) order = order.slice(0, FOLDED);
  return order.map((label, i) => ({ label, key: i < FIXED ? String(i + 1) : "", fresh: false }));
}

/** The probability of each label that a proposal names; of hints, which have none, a falling order. */
export function scoresOf(proposal) {
  return new Map((proposal?.labels ?? []).map(({ label, score }, i) => [label, score ?? -i - 1]));
}

/** Which of the shown labels is meant by Enter: what was there before, else the best one; with `typed` the first. */
export function meant(rows, scores, typed, before) {
  if (!rows.length) return -1;
  if (typed.trim()) return 0;
  const old = rows.findIndex(({ label }) => label === before);
  if (old >= 0) return old;
  let best = -1;
  rows.forEach(({ label }, i) => {
    if (scores.has(label) && (best < 0 || scores.get(label) > scores.get(rows[best].label))) best = i;
  });
  return best;
}
