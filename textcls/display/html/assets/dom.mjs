// What every page does with its document.
export const byId = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text, functions listen. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name in element && typeof value === "boolean") element[name] = value;
    else if (value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export const count = (number) => number.toLocaleString("en");
