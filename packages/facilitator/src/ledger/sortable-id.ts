import { randomUUID } from "node:crypto";

/**
 * An id that sorts by its time, so that rows which are made together lie together. It has 48 bits
 * of milliseconds, then the random ones of a UUID, of which Node makes many at a time.
 */
export function createSortableId(now: number): string {
  return Math.floor(now).toString(16).padStart(12, "0") + randomUUID().replaceAll("-", "");
}
