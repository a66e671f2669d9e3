/** Times as a log writes and reads them: RFC 3339, microseconds. */

/** An instant in whole microseconds since 1970. */
export type Microseconds = bigint;

const TIME = new RegExp(
  "^(\\d{4})-?(\\d{2})-?(\\d{2})" +
    "(?:[Tt _](\\d{2})(?::?(\\d{2})(?::?(\\d{2})(?:[.,](\\d+))?)?)?(Z|z|[+-](?:[01]\\d|2[0-3])(?::?[0-5]\\d)?)?)?$",
);

/** The seconds that years of four digits have. */
const [FIRST, LAST] = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"].map((at) => Date.parse(at) / 1000) as [number, number];

/** Return the instant of an RFC 3339 time, null for anything else. Without a zone it is read as UTC. */
export function readTime(value: unknown): Microseconds | null {
  const found = typeof value === "string" ? TIME.exec(value) : null;
  return found ? fromParts(found) : null;
}

/** Return the instant that a caller gave as `ts`: with a zone, or a date alone; null for anything else. */
export function instant(value: unknown): Microseconds | null {
  const found = typeof value === "string" ? TIME.exec(value) : null;
  const hasZone = found?.[8] !== undefined || /^\d{4}-\d{2}-\d{2}$/.test(found?.[0] ?? "");
  return found && hasZone ? fromParts(found) : null;
}

function fromParts(found: RegExpExecArray): Microseconds | null {
  const [year, month, day, hour, minute, second] = [1, 2, 3, 4, 5, 6].map((at) => Number(found[at] ?? 0)) as [
    number, number, number, number, number, number,
  ];
  const leap = second === 60 ? 59 : second;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (year < 1 || date.getUTCMonth() !== month - 1 || hour > 23 || minute > 59 || leap > 59) {
    return null;
  }
  const offset = zone(found[8] ?? "Z");
  const seconds = date.getTime() / 1000 + hour * 3600 + minute * 60 + leap - offset;
  if (seconds < FIRST || seconds > LAST) {
    return null;
  }
  return BigInt(seconds) * 1_000_000n + BigInt((found[7] ?? "").slice(0, 6).padEnd(6, "0"));
}

function zone(text: string): number {
  const found = /^([+-])(\d{2}):?(\d{2})?$/.exec(text);
  return found ? (found[1] === "-" ? -1 : 1) * (Number(found[2]) * 3600 + Number(found[3] ?? 0) * 60) : 0;
}

/** Return an instant as the log writes it: UTC with six digits of a second and `Z`. */
export function formatTime(moment: Microseconds): string {
  const micros = ((moment % 1000n) + 1000n) % 1000n;
  const millis = Number((moment - micros) / 1000n);
  return `${new Date(millis).toISOString().slice(0, -1)}${String(micros).padStart(3, "0")}Z`;
}

/** Return the instant of a Date, which counts milliseconds. */
export function ofDate(date: Date): Microseconds {
  return BigInt(date.getTime()) * 1000n;
}
