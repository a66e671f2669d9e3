/** Times in the format of a log: RFC 3339 with microseconds. */

/** An instant in whole microseconds since 1970. */
export type Microseconds = bigint;

// The same expression as in src/keepstone/model.py: both languages read the same times (tests/packages/golden/times.json).
const TIME = new RegExp(
  "^(\\d{4})(-?)(\\d\\d)\\2(\\d\\d)" +
    "(?:[Tt _](\\d\\d)(?:(:?)(\\d\\d)(?:\\6(\\d\\d)(?:[.,](\\d+))?)?)?" +
    "(?:([Zz])|([+-])([01]\\d|2[0-3])(?::?([0-5]\\d))?)?)?$",
);

/** The format of `formatTime`, for days that every month has; nearly every time that is read matches it. */
const WRITTEN = /^[1-9]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z$/;
const [MILLISECONDS_END, MICROSECONDS_END] = ["2026-01-11T14:31:00.000".length, "2026-01-11T14:31:00.000000".length];
const DATE_LENGTH = "2026-01-11".length;
/** First and last second, since 1970, of years with four digits. */
const [FIRST, LAST] = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"].map((at) => Date.parse(at) / 1000) as [number, number];

/** Return the instant of an RFC 3339 time, null for any other value. A time without a zone is UTC. */
export function readTime(value: unknown): Microseconds | null {
  if (typeof value !== "string") {
    return null;
  }
  if (WRITTEN.test(value)) {
    const micros = BigInt(value.slice(MILLISECONDS_END, MICROSECONDS_END));
    return BigInt(Date.parse(`${value.slice(0, MILLISECONDS_END)}Z`)) * 1000n + micros;
  }
  const found = TIME.exec(value);
  return found ? fromParts(found) : null;
}

/** Return the instant of a caller's `ts`, which must have a zone or be only a date; null for any other value. */
export function instant(value: unknown): Microseconds | null {
  const found = typeof value === "string" ? TIME.exec(value) : null;
  const hasZone = (found?.[10] ?? found?.[11]) !== undefined || found?.[0].length === DATE_LENGTH;
  return found && hasZone ? fromParts(found) : null;
}

function fromParts(found: RegExpExecArray): Microseconds | null {
  const [year, month, day, hour, minute, second, zoneHours, zoneMinutes] = [1, 3, 4, 5, 7, 8, 12, 13].map((at) =>
    Number(found[at] ?? 0),
  ) as [number, number, number, number, number, number, number, number];
  // Dates have no leap seconds, so the previous second is used.
  const leap = second === 60 ? 59 : second;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (year < 1 || date.getUTCMonth() !== month - 1 || day < 1 || hour > 23 || minute > 59 || leap > 59) {
    return null;
  }
  const ahead = (zoneHours * 3600 + zoneMinutes * 60) * (found[11] === "-" ? -1 : 1);
  const seconds = date.getTime() / 1000 + hour * 3600 + minute * 60 + leap - ahead;
  if (seconds < FIRST || seconds > LAST) {
    return null;
  }
  return BigInt(seconds) * 1_000_000n + BigInt((found[9] ?? "").slice(0, 6).padEnd(6, "0"));
}

/** Return an instant in the format of a log: UTC with six fractional digits and `Z`. */
export function formatTime(moment: Microseconds): string {
  // The remainder of a time before 1970 is negative.
  const micros = ((moment % 1000n) + 1000n) % 1000n;
  const millis = Number((moment - micros) / 1000n);
  return `${new Date(millis).toISOString().slice(0, -1)}${String(micros).padStart(3, "0")}Z`;
}

/** Return the instant of a Date, which counts milliseconds. */
export function ofDate(date: Date): Microseconds {
  return BigInt(date.getTime()) * 1000n;
}
