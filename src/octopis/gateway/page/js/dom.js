/** Making elements. Text from the overlay only ever becomes text nodes: nothing here parses HTML. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Return an element. `properties` are attributes, but `on` (handlers by event) and `text`.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node|string|null)} children
 */
export function el(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** Return an element of a drawing. */
export function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(element, { text, on, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  for (const [event, handler] of Object.entries(on ?? {})) element.addEventListener(event, handler);
  if (text !== undefined) element.textContent = String(text);
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Return the element with an id; it stands in the page. */
export function byId(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/** Set a text where it has changed: untouched nodes cost no layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Set an attribute where it has changed. */
export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Return a function that calls `work` when it was not called for so long. */
export function settled(work, milliseconds) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, milliseconds);
  };
}

/** Return a colour of the page as it is now, for what is not drawn by style sheets. */
export function colourOf(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color; // a variable itself would still hold both schemes
  probe.remove();
  return found;
}
