import type { IncomingMessage, ServerResponse } from "node:http";
import { type ConsoleClock, createConsole, type OperatorSource } from "./create-console.ts";
import type { ConsoleOptions } from "./settings.ts";

/** Settings of a console that is mounted into an application. */
export interface OperatorConsoleOptions extends ConsoleOptions {
  /**
   * Lets sessions act on the application's origin: every script of the shop's own pages may then do
   * what its operator may. Default false: the console reads only here. `startConsole` and
   * `coinslot console` act, on a listener and an origin of their own.
   */
  allowActingOnThisOrigin?: boolean | undefined;
}

/** A console for `app.use`, of Express 4 and 5. */
export interface OperatorConsole {
  (request: IncomingMessage, response: ServerResponse): void;
  /**
   * Prints a fresh one-time link. @param address origin and mount: `https://shop.example/_coinslot`
   */
  printLink(address: string): void;
  /** Ends all sessions and event streams. */
  close(): void;
}

/**
 * The operator's console as a middleware. It answers every path below its mount.
 *
 * @example
 * ```ts
 * app.use("/_coinslot", operatorConsole(facilitator, { origins: ["https://shop.example"] }));
 * ```
 *
 * @throws ConfigurationError with all problems of the options
 */
export function operatorConsole(
  source: OperatorSource,
  options: OperatorConsoleOptions & ConsoleClock = {},
): OperatorConsole {
  const { allowActingOnThisOrigin: mayAct = false, ...others } = options;
  const { handle, printLink, close } = createConsole(source, { ...others, mayAct });
  const answer = (request: IncomingMessage, response: ServerResponse) =>
    void handle(request, response);
  return Object.assign(answer, { printLink, close });
}
