import type { OperatorListener } from "../operators/serve-over-http.ts";

/** Listener for the operator's commands over HTTP, besides the socket of a SQLite ledger. */
export interface OperatorOptions {
  /** TCP port, of a listener of its own. 0 takes any that is free, and the log has it. */
  port: number;
  /** Address to listen on. Default 127.0.0.1: behind a proxy with TLS, or a tunnel. */
  host?: string | undefined;
  /**
   * Key of the operator: 32 to 256 characters of ASCII, drawn at random. Several, during a
   * rotation.
   */
  key: string | undefined | readonly (string | undefined)[];
}

const keyForm = /^[\x21-\x7e]{32,256}$/;

/** Reads the listener's options. There is none without a key. */
export function readOperators(options: OperatorOptions | undefined): {
  listener: OperatorListener | undefined;
  problems: string[];
} {
  if (options === undefined) return { listener: undefined, problems: [] };
  const { port, host = "127.0.0.1", key } = options;
  const keys = typeof key === "object" ? key : [key];
  const problems: string[] = [];
  if (!(Number.isInteger(port) && port >= 0 && port <= 65_535)) {
    problems.push("operators.port must be a port: 0 to 65535");
  }
  if (host === "") problems.push("operators.host is empty: leave it out for 127.0.0.1");
  if (keys.length === 0 || keys.some((each) => each === undefined || each === "")) {
    problems.push("operators.key is not set: the operator's commands are never served without one");
  } else if (!keys.every((each) => keyForm.test(each ?? ""))) {
    problems.push("operators.key must have 32 to 256 characters of ASCII, without spaces");
  }
  const set = keys.flatMap((each) => each ?? []);
  return { listener: problems.length > 0 ? undefined : { host, port, keys: set }, problems };
}
