// Rows with columns beside the text, as textcls/model/columns.py and cell_values.py read them: what stands in a column becomes cells,
// numbers first, then categories.

const CATEGORY_CHARACTERS = 200;
const SPACES = /[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;
const WHOLE = /^([+-]?[0-9]+)\.0+$/;
const LONGEST_NUMBER = 100;
const LEAST_NUMBER = 1e-30;
const CODES =
  "AED|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|ILS|INR|JPY|KRW|MXN|MYR|NOK|NZD|PHP|PLN|RON|RUB|SAR|SEK|SGD|THB|TRY|" +
  "TWD|UAH|USD|VND|ZAR";
const UNIT = `(?:[A-Z]{0,2}[$\xa2-\xa5\u0e3f\u20a0-\u20cf]|${CODES}|Rs\\.?|kr\\.?|z\u0142|K\u010d|Ft|%)`;
const SPACE = "[ \\t\\n\\r\xa0\u2009\u202f]*";
const NUMBER = new RegExp(
  `^${SPACE}'?([+-]?)${SPACE}(?:${UNIT}${SPACE})?([+-]?)` +
    "(\\.?\\d(?:[\\d.,' \xa0\u2009\u202f]*\\d)?\\.?)((?:[eE][+-]?\\d+)?)" +
    `(?:[.,][-\u2013\u2014]+)?${SPACE}(?:${UNIT}${SPACE})?$`,
);
const CLEAR_DATES = ["%d.%m.%Y", "%Y/%m/%d", "%d %b %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y", "%d.%m.%y"];
const DATES_ALIKE = [
  ["%d/%m/%Y", "%d-%m-%Y", "%d/%m/%y"],
  ["%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y"],
];
const ISO =
  /^(\d{4})(-?)(\d\d)\2(\d\d)(?:[Tt _](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,]\d+)?)?)? ?(?:[Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d){0,2})?)?$/;
const CHEROKEE = /[\u13a0-\u13fd\uab70-\uabbf]/;
const MONTHS = "january february march april may june july august september october november december".split(" ");
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const DAY = 86_400_000;
// Of other fields of a row so many are held against the names that it lacks, so much of each, and from so much likeness
// on they are taken for a mistake.
const [LOOKED_AT, LONGEST, ALIKE] = [20, 40, 0.8];

/** The names of what a row has: the text columns of a model, then its columns beside the text. */
const namesOf = ({ text_columns, columns = [] }) => [...text_columns, ...columns.map(({ name }) => name)];

/** The text of a row, which is given as a list of what stands in its fields. */
export const textOf = (parts, { text_columns }) => parts.slice(0, text_columns.length).join("\n");

/** A row as a request has it: a string, or an object where there is more than one field. */
export function input(parts, model) {
  const names = namesOf(model);
  if (names.length === 1) return parts[0];
  const beside = (i) => i >= model.text_columns.length;
  return Object.fromEntries(names.map((name, i) => [name, parts[i]]).filter(([, value], i) => !beside(i) || value));
}

/** The text and the cells of a row: a string, or an object. */
export function read(row, { text_columns, columns = [] }) {
  if (typeof row !== "string" && (typeof row !== "object" || row === null || Array.isArray(row))) {
    throw new Error("A row is a text, or an object with what stands in its columns.");
  }
  const fields = typeof row === "string" ? {} : row;
  const names = text_columns.map((name) => JSON.stringify(name)).join(" and ");
  if (fields !== row && text_columns.length > 1) throw new Error(`The model reads ${names}: pass an object with a text each.`);
  const lacking = fields === row && text_columns.find((name) => typeof row[name] !== "string");
  if (lacking) throw new Error(`A row has no text in ${JSON.stringify(lacking)}: the model reads ${names}.`);
  const text = typeof row === "string" ? row : text_columns.map((name) => row[name]).join("\n");
  if (fields === row) check(row, text_columns, columns);
  const found = columns.map((column) => cellsOf(fields[column.name] ?? null, column));
  const numbers = found.flatMap((cells, i) => (columns[i].kind === "category" ? [] : cells.slice(0, 1)));
  const categories = found.flatMap((cells, i) => (columns[i].kind === "category" ? cells : cells.slice(1)));
  return { text, cells: [...numbers, ...categories] };
}

/** Refuse a row that holds a list or an object, or lacks a column and has one that is called nearly so. */
function check(row, texts, columns) {
  const held = columns.find(({ name }) => typeof row[name] === "object" && row[name] !== null);
  if (held) throw new Error(`The column ${JSON.stringify(held.name)} holds a list or an object: write a string, a number or a date.`);
  const pair = misspelt(Object.keys(row), { text_columns: texts, columns });
  if (!pair) return;
  const [other, meant] = pair.map((name) => JSON.stringify(name));
  throw new Error(`The row has ${other}, and the model reads ${meant}: rename it, or pass ${meant} as null if it is another one.`);
}

/** One of the columns that are there, and what a model reads, if that is not there and is called nearly so; else null. */
export function misspelt(there, model) {
  const names = namesOf(model);
  const absent = names.filter((name) => !there.includes(name));
  for (const other of there.slice(0, LOOKED_AT).filter((name) => !names.includes(name))) {
    const meant = absent.find((name) => likeness(other.slice(0, LONGEST), name) >= ALIKE);
    if (meant !== undefined) return [other, meant];
  }
  return null;
}

/** How alike two names are, from 0 to 1: twice the signs that they share in order, of all that they have. */
function likeness(one, other) {
  let before = new Array(other.length + 1).fill(0);
  for (const sign of one) {
    const now = [0];
    for (let i = 0; i < other.length; i++) now.push(sign === other[i] ? before[i] + 1 : Math.max(now[i], before[i + 1]));
    before = now;
  }
  return (2 * before.at(-1)) / (one.length + other.length);
}

/** What the cells of a model are called, in their order. */
export function namesOfCells({ columns = [] }) {
  const numbers = columns.filter(({ kind }) => kind !== "category").map(({ name }) => name);
  const categories = columns.flatMap(({ name, kind }) =>
    kind === "category" ? [name] : kind === "date" ? ["month", "weekday", "hour"].map((part) => `${name} (${part})`) : [],
  );
  return [...numbers, ...categories];
}

/** The cells of a row as a person reads them: days since 1970 as dates. */
export function told(cells, { columns = [] }) {
  const dates = columns.filter(({ kind }) => kind !== "category").map(({ kind }) => kind === "date");
  return cells.map((cell, i) => {
    if (!dates[i] || !cell) return cell;
    const [day, time] = new Date(Math.round(cell * 1440) * 60_000).toISOString().slice(0, 16).split("T");
    return time === "00:00" ? day : `${day} ${time}`;
  });
}

function cellsOf(value, { kind, date_format, decimal_comma = false }) {
  if (kind === "category") return [category(value)];
  if (kind === "number") {
    const found = number(value, decimal_comma);
    return [found === null ? "" : decimal(found)];
  }
  const when = moment(value, date_format);
  if (when === null) return ["", "", "", ""];
  return [decimal(when / DAY), String(when.getUTCMonth() + 1), WEEKDAYS[when.getUTCDay()], String(when.getUTCHours())];
}

function category(value) {
  if (value === null || Number.isNaN(value)) return "";
  const words = folded(asPython(value).normalize("NFC")).split(SPACES).filter(Boolean);
  const found = [...words.join(" ")].slice(0, CATEGORY_CHARACTERS).join("").replace(WHOLE, "$1");
  return /\p{Surrogate}/u.test(found) ? "" : found;
}

/** Upper and lower case as one, as Python's `casefold` has it: by way of the upper case, where ﬁ is FI and ς is Σ. */
function folded(text) {
  const one = (sign) => (CHEROKEE.test(sign) ? sign.toUpperCase() : sign === "ı" ? sign : sign.toUpperCase().toLowerCase());
  return [...text].map(one).join("").replaceAll("ς", "σ").replaceAll("ß", "ss");
}

/** A value as `str` of Python writes it: whole numbers by all of their digits, small ones with a power of ten. */
function asPython(value) {
  if (Number.isInteger(value)) return BigInt(value).toString();
  return typeof value === "number" && Math.abs(value) < 1e-4 ? power(value.toExponential()) : String(value);
}

/** A number with nine digits, as Python's format `.9g` writes it, but for ties in the ninth; what is nearer to 0 than anything counts is 0. */
function decimal(value) {
  if (Math.abs(value) <= LEAST_NUMBER) return "0";
  const exponent = Number(value.toExponential(8).split("e")[1]);
  return exponent < -4 || exponent > 8 ? power(value.toExponential(8)) : String(Number(value.toPrecision(9)));
}

/** A number with a power of ten as Python writes it, with two digits at least and no zeros before it. */
function power(written) {
  const [digits, sign, exponent] = /^(.*)e([+-])(\d+)$/.exec(written).slice(1);
  return `${digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits}e${sign}${exponent.padStart(2, "0")}`;
}

function number(value, decimalComma) {
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "string") {
    const truth = ["false", "true"].indexOf(value.trim().toLowerCase());
    return truth >= 0 ? truth : bounded(decimalOf(value, decimalComma));
  }
  return typeof value === "number" ? bounded(value) : null;
}

const bounded = (value) => (value !== null && Math.abs(Number(value)) < 1e30 ? Number(value) : null);

/** A number as JavaScript writes it; null if it is none. */
function decimalOf(written, decimalComma) {
  if (written.length > LONGEST_NUMBER) return null;
  const found = NUMBER.exec(written.replaceAll("\u2212", "-").replaceAll("\u2019", "'"));
  if (!found || (found[1] && found[2])) return null;
  let digits = found[3];
  if (/^\d{1,3}([' \xa0\u2009\u202f]\d{3})+([.,]\d+)?$/.test(digits)) {
    digits = digits.replace(/[^\d.,]/g, "").replace(",", ".");
  } else if (/^[1-9]\d{0,2}[.,]\d{3}$/.test(digits)) {
    digits = digits.replace(decimalComma ? "." : ",", "").replace(",", ".");
  } else if (/^[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/.test(digits)) {
    digits = digits.replaceAll(",", "");
  } else if (/^(\d+,\d+|[1-9]\d{0,2}(\.\d{3})+,\d+|[1-9]\d{0,2}(\.\d{3}){2,})$/.test(digits)) {
    digits = digits.replaceAll(".", "").replace(",", ".");
  } else if (!/^(\d+\.?\d*|\.\d+)$/.test(digits)) return null;
  return found[1] + found[2] + digits + found[4];
}

/** A date as it is told where it was written: its time zone is left out. */
function moment(value, format) {
  if (typeof value !== "string" || !/^[\x00-\x7f]*$/.test(value)) return null;
  const written = value.split(SPACES).filter(Boolean).join(" ");
  const iso = ISO.exec(written);
  if (iso && !/^\d+$/.test(written)) return dateOf(...[iso[1], ...iso.slice(3)].map((part) => Number(part ?? 0)));
  if (iso) return null;
  const alike = DATES_ALIKE.find((forms) => forms.includes(format)) ?? [];
  for (const form of [...(format ? [format] : []), ...CLEAR_DATES, ...alike]) {
    const when = writtenAs(written, form);
    if (when) return when;
  }
  return null;
}

function writtenAs(written, form) {
  const order = [...form.matchAll(/%(.)/g)].map(([, part]) => part);
  const parts = { d: "(\\d\\d?)", m: "(\\d\\d?)", Y: "(\\d{4})", y: "(\\d\\d)", b: "([a-z]{3})", B: "([a-z]{3,9})" };
  const pattern = form.replace(/[.]/g, "\\.").replace(/%(.)/g, (_, part) => parts[part]);
  const found = new RegExp(`^${pattern}(?: (\\d\\d?):(\\d\\d)(?::(\\d\\d))?)?$`, "i").exec(written);
  if (!found) return null;
  const of = Object.fromEntries(order.map((part, i) => [part, found[i + 1].toLowerCase()]));
  const short = MONTHS.map((name) => name.slice(0, 3));
  const month = of.b ? short.indexOf(of.b) + 1 : of.B ? MONTHS.indexOf(of.B) + 1 : Number(of.m);
  const year = of.y ? Number(of.y) + (of.y < "69" ? 2000 : 1900) : Number(of.Y);
  return dateOf(year, month, Number(of.d), ...found.slice(order.length + 1).map((part) => Number(part ?? 0)));
}

function dateOf(year, month, day, hour, minute, second) {
  const found = new Date(Date.UTC(2000, 0, 1, hour, minute, second));
  // By `Date.UTC` the years from 0 to 99 are those of the last century.
  found.setUTCFullYear(year, month - 1, day);
  const same = year > 0 && found.getUTCMonth() === month - 1 && found.getUTCDate() === day && hour < 24 && minute < 60 && second < 60;
  return same ? found : null;
}
