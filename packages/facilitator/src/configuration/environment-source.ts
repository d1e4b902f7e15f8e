/**
 * Variables, as `process.env`, with the ways of a program to read secrets and to report problems.
 */
export interface EnvironmentSource {
  variables: Readonly<Record<string, string | undefined>>;
  /**
   * Reads a secret. Default: the variable alone, without white space around it; empty is not set. A
   * program in a container reads files, too.
   */
  secret?: ((name: string) => string | undefined) | undefined;
  /** Receives each problem, without the value of a secret. */
  tell: (problem: string) => void;
}

/** The value of a variable; `undefined` where it is empty or not set. */
export function readVariable({ variables }: EnvironmentSource, name: string): string | undefined {
  return variables[name]?.trim() || undefined;
}

/** The value of a secret variable. */
export function readSecretVariable(source: EnvironmentSource, name: string): string | undefined {
  return source.secret === undefined ? readVariable(source, name) : source.secret(name);
}

/** An amount in the smallest unit of each token. */
export function readUnits(source: EnvironmentSource, name: string): bigint | undefined {
  const text = readVariable(source, name);
  if (text === undefined) return undefined;
  if (/^[0-9]{1,78}$/.test(text)) return BigInt(text);
  source.tell(`${name}: must be a whole number of the token's smallest unit, such as 50000000`);
  return undefined;
}

/** A whole number. */
export function readCount(source: EnvironmentSource, name: string): number | undefined {
  const text = readVariable(source, name);
  if (text === undefined) return undefined;
  if (/^[0-9]{1,9}$/.test(text)) return Number(text);
  source.tell(`${name}: must be a whole number`);
  return undefined;
}
