import { createServer, type Server } from "node:http";
import { ConfigurationError } from "@coinslot/protocol";
import { boundConnections } from "./connections/bound-connections.ts";
import { type ConsoleClock, createConsole, type OperatorSource } from "./create-console.ts";
import type { ConsoleOptions } from "./settings.ts";

/** Settings of a console on a listener of its own. */
export interface StartConsoleOptions extends ConsoleOptions {
  /** TCP port. 0 takes any that is free. Default 4040. */
  port?: number | undefined;
  /** Address to listen on. Default 127.0.0.1: another needs `origins`. */
  host?: string | undefined;
}

/** A console that listens. */
export interface StartedConsole {
  /** Its address, such as `http://127.0.0.1:4040`. */
  url: string;
  /** Prints a fresh one-time link. */
  printLink(): void;
  /** Ends all sessions, event streams and connections. */
  close(): Promise<void>;
}

/** A connection that sends no whole request in time is closed. */
const headersTimeoutMs = 10_000;
const requestTimeoutMs = 30_000;
const loopbackHosts = ["127.0.0.1", "localhost", "::1"];

/**
 * Starts a console with a listener and an origin of its own, where sessions may act. Prints a
 * one-time link.
 *
 * @example
 * ```ts
 * const console = await startConsole(operatorAt("sqlite:./coinslot.db"));
 * ```
 *
 * @throws ConfigurationError with all problems of the options, Error where the port is taken
 */
export async function startConsole(
  source: OperatorSource,
  options: StartConsoleOptions & ConsoleClock = {},
): Promise<StartedConsole> {
  const { port = 4040, host = "127.0.0.1", origins = [], ...others } = options;
  if (!loopbackHosts.includes(host) && origins.length === 0) {
    throw new ConfigurationError("The console", [
      `host is ${host}, and origins is empty: browsers of other machines would be refused`,
    ]);
  }
  const server = createServer({
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: headersTimeoutMs / 2,
  });
  const admit = boundConnections(server);
  const console = createConsole(source, { ...others, origins, mayAct: true, admit });
  server.on("request", (request, response) => void console.handle(request, response));
  const url = await listen(server, { port, host });
  const [address = url] = origins;
  console.printLink(address);
  return {
    url,
    printLink: () => console.printLink(address),
    async close() {
      console.close();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

function listen(server: Server, { port, host }: { port: number; host: string }): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host, exclusive: true }, () => {
      server.off("error", reject);
      const address = server.address();
      const actual = typeof address === "object" && address !== null ? address.port : port;
      resolve(`http://${host.includes(":") ? `[${host}]` : host}:${actual}`);
    });
  });
}
