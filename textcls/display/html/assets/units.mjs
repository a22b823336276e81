// Words, phrases and sentences, by the rules of textcls/model/units.py: runs of tokens, over which contributions are
// added up. Words of scripts without spaces are those of the browser, which knows more languages.
import { UNSPACED_PAIR, UNSPACED_RUN, unspaced } from "./tokens.mjs";
import { SENTENCE_ENDS } from "./unicode.mjs";

// What is shown first of a long text, as in textcls/display/passages.py.
const LONG = 150;
const LONGEST = 60;
const [LEAST, MOST, SHARE] = [3, 8, 0.5];

const SEGMENTER = Intl.Segmenter && new Intl.Segmenter(undefined, { granularity: "word" });

export const UNITS = ["token", ...(SEGMENTER ? ["word"] : []), "phrase", "sentence"];

const ALWAYS = new Set(SENTENCE_ENDS.map((point) => String.fromCodePoint(point)));
const BEFORE_SPACE = new Set("!?\u2026\u203c\u203d\u2047\u2048\u2049");
const INNER = new Set("'\u2019-\u2010\u2011.,:/&@+\u00b7_");
const QUOTES = new Set("\"'\u2018\u2019\u201c\u201d\u201e\u201f");
const one = (text) => [...text].length === 1;
const isMark = (token) => one(token) && /^[\p{P}\p{S}]/u.test(token);
const isAlphanumeric = (text) => /^[\p{L}\p{N}]$/u.test(text);
const isSpace = (text) => /^[\s\x1c-\x1f\x85]/u.test(text);

/** What the rules look at: the text, and where its tokens stand. */
class Marked {
  constructor(text, places) {
    this.text = text;
    this.places = places;
    this.tokens = places.map(([start, end]) => text.slice(start, end));
    this.hasCapitals = /\p{Uppercase}/u.test(text);
  }

  gap(i) {
    return this.text.slice(this.places[i - 1][1], this.places[i][0]);
  }

  before(i) {
    return [...this.text.slice(Math.max(0, this.places[i][0] - 2), this.places[i][0])].at(-1) ?? "";
  }

  behind(i) {
    const end = this.places[i][1];
    return end < this.text.length ? String.fromCodePoint(this.text.codePointAt(end)) : "";
  }

  /** Whether the mark at `i` stands within a word or number, as in don't, 3.5 and and/or. */
  glued(i) {
    return INNER.has(this.tokens[i]) && isAlphanumeric(this.before(i)) && isAlphanumeric(this.behind(i));
  }

  opens(i) {
    const mark = this.tokens[i];
    if (/^[\p{Ps}\p{Pi}]$/u.test(mark)) return true;
    const start = this.before(i) === "" || isSpace(this.before(i));
    return QUOTES.has(mark) && this.behind(i) !== "" && !isSpace(this.behind(i)) && start;
  }

  /** Whether a token still belongs to the sentence that has just ended. */
  closes(i, gap) {
    const token = this.tokens[i];
    if (ALWAYS.has(token) || BEFORE_SPACE.has(token) || token === ".") return !gap;
    return isMark(token) && !gap && (/^[\p{Pe}\p{Pf}]$/u.test(token) || QUOTES.has(token));
  }

  /** Whether a sentence may end behind token `i`; `ending`: whether it might have before. */
  mayEnd(i, ending) {
    const token = this.tokens[i];
    if (ALWAYS.has(token)) return true;
    if (BEFORE_SPACE.has(token)) return !this.glued(i);
    if (token === ".") {
      const initial = i > 0 && one(this.tokens[i - 1]) && /^\p{L}$/u.test(this.tokens[i - 1]);
      return ending || !(this.glued(i) || initial);
    }
    return ending && isMark(token);
  }

  /** Whether token `i` begins a sentence, behind a mark that may end one. */
  begins(i, gap) {
    const before = this.tokens[i - 1];
    if (ALWAYS.has(before)) return true;
    if (!gap) return false;
    return before !== "." || !this.hasCapitals || !/^\p{Lowercase}/u.test(this.tokens[i]);
  }

  /** Whether a phrase ends between tokens `i - 1` and `i`. */
  phraseEnds(i) {
    if (this.gap(i) && unspaced(this.tokens[i]) && unspaced(this.tokens[i - 1])) return true;
    if (isMark(this.tokens[i]) && !this.glued(i)) return this.opens(i);
    return isMark(this.tokens[i - 1]) && !this.glued(i - 1) && !this.opens(i - 1);
  }
}

/** The units of a text as (first token, token behind the last); `places` are those of its tokens, as indices. */
export function unitSpans(text, places, unit) {
  if (!places.length) return [];
  if (unit === "token") return places.map((_, i) => [i, i + 1]);
  const edges = unit === "word" ? wordEdges(text, places) : unitEdges(text, places, unit);
  return edges.map((first, i) => [first, edges[i + 1] ?? places.length]);
}

/** The smallest unit that a person reads: words where letters of scripts without spaces stand side by side. */
export const readingUnit = (text) => (SEGMENTER && UNSPACED_PAIR.test(text) ? "word" : "token");

/** The numbers of the tokens that begin a word. */
function wordEdges(text, places) {
  const within = new Set();
  for (const run of text.matchAll(UNSPACED_RUN)) {
    const starts = new Set([...SEGMENTER.segment(run[0])].map((word) => word.index));
    for (let i = 1; i < run[0].length; i++) if (!starts.has(i)) within.add(run.index + i);
  }
  return places.flatMap(([start], i) => (i && within.has(start) ? [] : [i]));
}

/** The numbers of the tokens that begin a phrase or sentence. */
function unitEdges(text, places, unit) {
  const marked = new Marked(text, places);
  const edges = [0];
  let ending = false;
  for (let i = 1; i < places.length; i++) {
    const gap = marked.gap(i);
    ending = marked.mayEnd(i - 1, ending);
    if (/[\n\r\u2028\u2029]/.test(gap)) {
      edges.push(i);
      ending = false;
    } else if (ending && marked.closes(i, gap)) {
      continue;
    } else if ((ending && marked.begins(i, gap)) || (unit === "phrase" && marked.phraseEnds(i))) {
      edges.push(i);
      ending = false;
    }
  }
  return edges;
}

/** An answer with units in the place of its tokens: of each the sums over its tokens, and how many these are. */
export function grouped(result, text, places, unit) {
  if (unit === "token") return result;
  const labels = Object.keys(result.bias);
  const tokens = unitSpans(text, places, unit).map(([first, behind]) => {
    const some = result.tokens.slice(first, behind);
    const sum = (of) => some.reduce((total, token) => total + of(token), 0);
    return {
      text: text.slice(places[first][0], places[behind - 1][1]),
      start: some[0].start,
      end: some.at(-1).end,
      attention: sum((token) => token.attention),
      contributions: Object.fromEntries(labels.map((label) => [label, sum((token) => token.contributions[label])])),
      known: some.some((token) => token.known),
      size: some.length,
    };
  });
  return { ...result, tokens };
}

/**
 * What is shown first of a long text, as [first, behind the last] in reading order: the sentences with the largest sums,
 * and the one with the strongest token; none if the text is not long. `places` are those of the units in `text`.
 */
export function passages(text, places, values, unit) {
  if (values.length <= LONG || values.every((value) => !value)) return [];
  const sum = ([first, behind], of) => values.slice(first, behind).reduce((all, value) => all + of(value), 0);
  const sentences = unit === "token" || unit === "word" ? unitSpans(text, places, "sentence") : values.map((_, i) => [i, i + 1]);
  const pieces = sentences.flatMap(([first, behind]) => {
    const found = [];
    for (let i = first; i < behind; i += LONGEST) found.push([i, Math.min(i + LONGEST, behind)]);
    return found;
  });
  const strongest = values.reduce((best, value, i) => (Math.abs(value) > Math.abs(values[best]) ? i : best), 0);
  const ranked = pieces
    .map((piece, i) => ({ piece, i, last: !(piece[0] <= strongest && strongest < piece[1]), size: Math.abs(sum(piece, Number)) }))
    .sort((a, b) => a.last - b.last || b.size - a.size || a.i - b.i);
  const chosen = [];
  const total = sum([0, values.length], Math.abs);
  let carried = 0;
  for (const { piece } of ranked.slice(0, MOST)) {
    if (chosen.length >= LEAST && carried >= SHARE * total) break;
    chosen.push(piece);
    carried += sum(piece, Math.abs);
  }
  chosen.sort((a, b) => a[0] - b[0]);
  const joined = chosen.reduce((found, [first, behind]) => {
    if (found.at(-1)?.[1] === first) found.at(-1)[1] = behind;
    else found.push([first, behind]);
    return found;
  }, []);
  return joined[0][0] === 0 && joined[0][1] === values.length ? [] : joined;
}
