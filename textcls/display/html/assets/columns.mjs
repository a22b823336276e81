// Rows with columns beside the text, as textcls/model/columns.py reads them: what stands in a column becomes cells,
// numbers first, then categories.

const CATEGORY_CHARACTERS = 200;
const SPACES = /[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;
const AROUND_NUMBERS = /^[ \t\n\r\xa0\u202f'%$€£¥]+|[ \t\n\r\xa0\u202f'%$€£¥]+$/g;
const ISO =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?$/;
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const DAY = 86_400_000;

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
  const fields = typeof row === "string" ? {} : row;
  const text = typeof row === "string" ? row : text_columns.map((name) => row[name]).join("\n");
  const found = columns.map((column) => cellsOf(fields[column.name] ?? null, column));
  const numbers = found.flatMap((cells, i) => (columns[i].kind === "category" ? [] : cells.slice(0, 1)));
  const categories = found.flatMap((cells, i) => (columns[i].kind === "category" ? cells : cells.slice(1)));
  return { text, cells: [...numbers, ...categories] };
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

function cellsOf(value, { kind, date_format }) {
  if (kind === "category") return [category(value)];
  if (kind === "number") {
    const found = number(value);
    return [found === null ? "" : String(found)];
  }
  const when = moment(value, date_format);
  if (when === null) return ["", "", "", ""];
  return [String(when / DAY), String(when.getUTCMonth() + 1), WEEKDAYS[when.getUTCDay()], String(when.getUTCHours())];
}

function category(value) {
  if (value === null) return "";
  const words = String(value).toLowerCase().replaceAll("ß", "ss").split(SPACES).filter(Boolean);
  const found = [...words.join(" ")].slice(0, CATEGORY_CHARACTERS).join("");
  return /\p{Surrogate}/u.test(found) ? "" : found;
}

function number(value) {
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "number") return Number.isFinite(value) && Math.abs(value) < 1e30 ? value : null;
  if (typeof value !== "string") return null;
  let written = value.replace(AROUND_NUMBERS, "");
  if (/^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$/.test(written)) written = written.replaceAll(",", "");
  else if (/^[+-]?(\d{1,3}(\.\d{3})+,\d+|\d{1,3}(\.\d{3}){2,}|\d+,\d+)$/.test(written)) written = written.replaceAll(".", "").replace(",", ".");
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(written)) return null;
  return Math.abs(Number(written)) < 1e30 ? Number(written) : null;
}

/** A date as it is told where it was written: its time zone is left out. */
function moment(value, format) {
  if (typeof value !== "string") return null;
  const written = value.trim();
  const iso = ISO.exec(written);
  if (iso) return dateOf(...iso.slice(1).map((part) => Number(part ?? 0)));
  if (!format) return null;
  const order = [...format.matchAll(/%(.)/g)].map(([, part]) => part);
  const parts = { d: "(\\d\\d?)", m: "(\\d\\d?)", Y: "(\\d{4})", b: "([a-z]{3})" };
  const pattern = format.replace(/[.]/g, "\\.").replace(/%(.)/g, (_, part) => parts[part]);
  const found = new RegExp(`^${pattern}(?: (\\d\\d?):(\\d\\d)(?::(\\d\\d))?)?$`, "i").exec(written);
  if (!found) return null;
  const of = Object.fromEntries(order.map((part, i) => [part, found[i + 1]]));
  const month = of.b ? MONTHS.indexOf(of.b.toLowerCase()) + 1 : Number(of.m);
  return dateOf(Number(of.Y), month, Number(of.d), ...found.slice(order.length + 1).map((part) => Number(part ?? 0)));
}

function dateOf(year, month, day, hour, minute, second) {
  const found = new Date(Date.UTC(year, month - 1, day, hour, minute, second));
  const same = found.getUTCMonth() === month - 1 && found.getUTCDate() === day && hour < 24 && minute < 60 && second < 60;
  return same ? found : null;
}
