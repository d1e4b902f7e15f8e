import { onTestFinished } from "vitest";
import * as z from "zod";
import type { ConsoleClock, OperatorSource } from "../create-console.ts";
import { type StartConsoleOptions, type StartedConsole, startConsole } from "../start-console.ts";
import { ofPage, send, type TestAnswer, type TestRequest } from "./visit-console.ts";

/** A console on a port of its own, until the test ends, and the lines that it prints. */
export interface TestConsole extends StartedConsole {
  printed: string[];
  /** The link that was printed last. */
  link(): string;
}

/** A browser's session. */
export interface SignedIn {
  cookie: string;
  token: string;
  send(request: TestRequest): Promise<TestAnswer>;
  /** Runs an operation, as a page does. */
  run(operation: string, argument?: unknown, headers?: Record<string, string>): Promise<TestAnswer>;
}

export async function startTestConsole(
  source: OperatorSource,
  options: StartConsoleOptions & ConsoleClock = {},
): Promise<TestConsole> {
  const printed: string[] = [];
  const print = (line: string) => void printed.push(line);
  const started = await startConsole(source, { port: 0, print, ...options });
  onTestFinished(started.close);
  return { ...started, printed, link: () => linkOf(printed) };
}

export async function signIn(
  origin: string,
  credential: { link: string } | { key: string },
  base = "",
): Promise<SignedIn> {
  const path = `${base}/api/session`;
  const answer = await send(origin, {
    method: "POST",
    path,
    headers: ofPage(origin),
    body: credential,
  });
  const { token } = z.object({ token: z.string() }).parse(answer.json);
  const cookie = cookieOf(answer);
  const sendAs = (request: TestRequest) =>
    send(origin, {
      ...request,
      headers: { ...ofPage(origin, token, cookie), ...request.headers },
    });
  return {
    ...{ cookie, token, send: sendAs },
    run: (operation, argument = {}, headers = {}) =>
      sendAs({ method: "POST", path: `${base}/api/${operation}`, body: argument, headers }),
  };
}

/** The pair of name and value that a browser would send back. */
export function cookieOf({ headers }: TestAnswer): string {
  const [pair = ""] = String(headers["set-cookie"]).split(";");
  return pair;
}

function linkOf(printed: readonly string[]): string {
  const link = /#sign-in=([\w-]+)$/.exec(printed.at(-1) ?? "")?.[1];
  if (link === undefined) throw new Error(`No link was printed: ${printed.join("\n")}`);
  return link;
}
