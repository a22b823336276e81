// Labels that are paths of a tree, as textcls/model/label_paths.py has them: which are, and the deepest node that is sure.

const BETWEEN = " > ";
const MOST_LEVELS = 50;
// The least probability of a node that is sure, where no threshold is given; and sums that differ by less are the same.
const SURE = 0.5;
const SAME = 1e-6;

/** The parts of a label. */
export const pathOf = (label) => label.split(BETWEEN).map((part) => part.trim());

/** A node as a label is written. */
export const named = (path) => path.join(BETWEEN);

/** The paths of a model's labels, if they came from columns of levels or most are such paths; else null. */
export function treeOf({ labels, label_column: column, thresholds }) {
  const holding = labels.filter((label) => label.includes(BETWEEN)).length;
  if (thresholds || !holding || (!column.includes(BETWEEN) && 2 * holding <= labels.length)) return null;
  const paths = labels.map(pathOf);
  return paths.some((path) => path.includes("") || path.length > MOST_LEVELS) ? null : paths;
}

/** The deepest node that is sure, with its probability: from the root down to the best child. Null if none is. */
export function deepest(paths, scores, threshold) {
  let found = null;
  for (let below = [...paths.keys()], level = 1; below.length; level++) {
    const sums = new Map();
    // A label that ends above stands for itself there, and is no child.
    for (const c of below.filter((c) => paths[c].length >= level)) {
      const part = paths[c][level - 1];
      sums.set(part, (sums.get(part) ?? 0) + scores[c]);
    }
    const [best, score] = [...sums].reduce((a, b) => (b[1] > a[1] ? b : a), [null, -1]);
    if (best === null || score < (threshold ?? SURE) - SAME) return found;
    below = below.filter((c) => paths[c][level - 1] === best);
    found = { path: paths[below[0]].slice(0, level), score };
  }
  return found;
}
