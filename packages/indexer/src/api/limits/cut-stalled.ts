import type { Response } from "express";

/**
 * Ends the connection of a reader that takes nothing of a lasting answer for `stallMs`. It would
 * keep its place, and its part of the buffers, for as long as it likes. A slow reader goes on:
 * every part that it takes begins the time anew. Without an end of `stallMs` none is cut.
 */
export function cutStalled(response: Response, stallMs: number): void {
  if (Number.isFinite(stallMs)) response.setTimeout(stallMs, () => response.destroy());
}
