import { readFileSync } from "node:fs";
import { describeUnreadable } from "./describe-unreadable.ts";

/** Environment variables, as `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The value of a variable, or the content of the file that `<variable>_FILE` names, usual in
 * containers. Empty is not set.
 *
 * @param tell receives a problem, without the value
 */
export function readSecret(
  env: Environment,
  variable: string,
  tell: (problem: string) => void,
): string | undefined {
  const value = env[variable]?.trim() || undefined;
  const path = env[`${variable}_FILE`]?.trim() || undefined;
  if (path === undefined) return value;
  if (value !== undefined) tell(`${variable} and ${variable}_FILE are both set: leave out one`);
  try {
    return readFileSync(path, "utf8").trim() || undefined;
  } catch (error) {
    tell(`${variable}_FILE: ${describeUnreadable(path, error)}`);
    return undefined;
  }
}
