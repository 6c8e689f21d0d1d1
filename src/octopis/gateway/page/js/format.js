/** Numbers, times and notifications as people read them. */

const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-GB", { notation: "compact", maximumFractionDigits: 1 });

/** A count, as 1,234. */
export const count = (number) => whole.format(number);

/** A rate, as 0.4/s, 12/s or 1.2K/s. */
export function rate(number) {
  if (number > 0 && number < 10) return `${number.toFixed(1)}/s`;
  return `${number < 10_000 ? whole.format(number) : short.format(number)}/s`;
}

/** Bytes, as 1.2 kB. */
export function bytes(number) {
  if (number < 1000) return `${number} B`;
  const power = Math.min(4, Math.floor(Math.log10(number) / 3));
  return `${(number / 1000 ** power).toFixed(1)} ${["", "k", "M", "G", "T"][power]}B`;
}

/** The time of day of a moment in milliseconds since 1970. */
export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");

/** One and many, as 1 broker, 2 brokers. */
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** A value of an attribute as filters write it. */
export function value(found) {
  return typeof found === "string" ? `'${found.replaceAll("'", "''")}'` : String(found);
}

/** JSON as it came: integers that are too long for a number stay whole, as BigInt. */
export function parse(text) {
  return JSON.parse(text, (_, found, context) => {
    const isLong = typeof found === "number" && !Number.isSafeInteger(found);
    return isLong && /^-?\d+$/.test(context?.source ?? "") ? BigInt(context.source) : found;
  });
}

/** A label of at most so many characters. */
export const shortened = (text, most) =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text;

/** Attributes as JSON text, on one line. */
export function write(attributes) {
  const members = Object.entries(attributes).map(([name, found]) => {
    const text = typeof found === "bigint" ? String(found) : JSON.stringify(found);
    return `${JSON.stringify(name)}: ${text}`;
  });
  return `{${members.join(", ")}}`;
}
