import { expect } from "vitest";
import { BridgeError } from "../index.ts";

/** Waits for a bridge to refuse, with this code; returns the error. */
export async function expectBridgeError(
  promise: Promise<unknown>,
  code: string,
): Promise<BridgeError> {
  const error = await promise.then(
    () => new Error("It was not refused"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof BridgeError)) throw error;
  expect(error.code).toBe(code);
  // No test world has a URL without it.
  expect(error.message).not.toMatch(/127\.0\.0\.1|secret-key/);
  return error;
}
