import type { IncomingMessage, ServerResponse } from "node:http";
import { createAttemptLimit, type Operator, operations } from "@coinslot/facilitator";
import { createConfirmations } from "./acts/confirmations.ts";
import { createKeptActs } from "./acts/kept-acts.ts";
import { sendRefusal } from "./api/answer.ts";
import { answerApi } from "./api/answer-api.ts";
import { type Refusal, RefusedError, refusals } from "./api/refusal.ts";
import { refusalOf } from "./api/refusal-of.ts";
import { createSessionRecorder } from "./audit/record-session.ts";
import type { Admit } from "./connections/bound-connections.ts";
import type { ConsoleContext } from "./context.ts";
import { createEventStreams } from "./events/event-streams.ts";
import { createReadMeter } from "./events/read-meter.ts";
import { createPlaceReader } from "./place/read-place.ts";
import { createSessions } from "./sessions/sessions.ts";
import { type ConsoleOptions, readSettings } from "./settings.ts";
import { openAssets } from "./shell/assets.ts";
import { sendErrorPage } from "./shell/error-page.ts";
import { setSecurityHeaders } from "./shell/security-headers.ts";
import { sendShell } from "./shell/shell.ts";
import { createOneTimeLinks } from "./sign-in/one-time-links.ts";
import { printLink } from "./sign-in/print-link.ts";
import { createSignIn } from "./sign-in/sign-in.ts";
import type { Visit } from "./visit.ts";

/** A facilitator of this process, or an operator: `operatorAt("sqlite:./coinslot.db")`. */
export type OperatorSource = Operator | { readonly operator: Operator };

/** Clocks of a console, for tests. */
export interface ConsoleClock {
  /** Milliseconds since 1970. */
  now?: (() => number) | undefined;
}

/** A console without its listener. */
export interface Console {
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Prints a fresh link for this address of the console. */
  printLink(address: string): void;
  close(): void;
}

/** Of the same depth in `src` and `dist`. */
const assetsFolder = new URL("../assets/", import.meta.url);
/** Path of a mount. Other characters would reach a page, or a cookie. */
const baseForm = /^(?:\/[\w.~-]+)*$/;

/** Creates a console. @throws ConfigurationError with all problems of the options */
export function createConsole(
  source: OperatorSource,
  options: ConsoleOptions & ConsoleClock & { mayAct: boolean; admit?: Admit },
): Console {
  const settings = readSettings(options);
  const { mayAct, now = Date.now, admit = () => undefined } = options;
  const meter = createReadMeter("operator" in source ? source.operator : source);
  const { operator } = meter;
  const sessions = createSessions({ ...settings, now });
  const links = createOneTimeLinks({ now });
  const signIn = createSignIn({
    ...{ key: settings.key, readerKey: settings.readerKey },
    ...{ mayAct, sessions, links, limit: createAttemptLimit({ now }) },
  });
  const byName = new Map(operations.map((operation) => [operation.name, operation]));
  const context: ConsoleContext = {
    ...{ settings, mayAct, admit, operator, sessions, links, signIn },
    operations: byName,
    readPlace: createPlaceReader(settings.origins),
    confirmations: createConfirmations({
      ...{ hasKey: settings.key !== undefined, isKey: signIn.isKey },
      ...{ print: settings.print, now },
    }),
    keptActs: createKeptActs(),
    recordSession: createSessionRecorder({
      ...{ operator, operations: byName, onError: settings.onError, now },
    }),
    events: createEventStreams({
      ...{ meter, sessions, operations: byName },
      codeOf: (error) => (refusalOf(error) ?? refusals.failed).code,
    }),
  };
  const assets = openAssets(assetsFolder);

  async function dispatch(visit: Visit): Promise<void> {
    const { path, request } = visit;
    if (path === "/api" || path.startsWith("/api/")) return answerApi(context, visit);
    if (request.method !== "GET" && request.method !== "HEAD") {
      throw new RefusedError(refusals.wrongMethod);
    }
    const name = /^\/assets\/(.*)$/.exec(path)?.[1];
    if (name !== undefined) return assets.send(visit, name);
    sendShell(visit, assets);
  }

  return {
    async handle(request, response) {
      const { base, path, query } = readPath(request);
      const refuse = (refusal: Refusal) =>
        path.startsWith("/api") ? sendRefusal(response, refusal) : sendErrorPage(response, refusal);
      setSecurityHeaders(response, undefined);
      try {
        const place = context.readPlace(request);
        if (place === undefined) return refuse(refusals.unknownHost);
        if (!baseForm.test(base)) return refuse(refusals.unknownPath);
        await dispatch({ request, response, place, base, path, query });
      } catch (error) {
        const refusal = refusalOf(error);
        if (refusal === undefined) settings.onError(error);
        refuse(refusal ?? refusals.failed);
      }
    },
    printLink(address) {
      printLink({ links, print: settings.print, address, mayAct });
    },
    close() {
      context.events.close();
      sessions.endAll();
    },
  };
}

/** Express strips the path of a mount off the URL, and keeps it beside. */
function readPath(request: IncomingMessage): Pick<Visit, "base" | "path" | "query"> {
  const base = "baseUrl" in request && typeof request.baseUrl === "string" ? request.baseUrl : "";
  const [path = "", query = ""] = (request.url ?? "/").split("?", 2);
  return { base, path, query: new URLSearchParams(query) };
}
