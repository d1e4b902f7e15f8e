import { randomUUID } from "node:crypto";

/**
 * An id that sorts by its time, so that rows which are made together lie together. It has 48 bits
 * of milliseconds, then the random ones of a UUID. Node makes many of these at a time.
 */
export function createSortableId(now: number): string {
  return timePart(now) + randomUUID().replaceAll("-", "");
}

/** Sorts before every id of this time, and after those before it. Unix milliseconds. */
export function sortableIdAt(time: number): string {
  return timePart(Math.min(Math.max(time, 0), 2 ** 48 - 1));
}

/** The time of an id. Unix milliseconds. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 12), 16);
}

function timePart(time: number): string {
  return Math.floor(time).toString(16).padStart(12, "0");
}

/** Unix milliseconds of a text that begins with a sortable id. `NaN` for any other. */
export function timeOfSortableId(id: string): number {
  return /^[0-9a-f]{12}/.test(id) ? Number.parseInt(id.slice(0, 12), 16) : Number.NaN;
}
