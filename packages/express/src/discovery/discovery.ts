import { createHash } from "node:crypto";
import { ConfigurationError } from "@coinslot/protocol";
import type { NextFunction, Request, RequestHandler, Response } from "express";
import { answerRefusal } from "../answer.ts";
import { notReady } from "../refusals.ts";
import {
  type DiscoveryOptions,
  type DiscoverySettings,
  type MountedGate,
  type PlacedGate,
  readDiscovery,
} from "./discovery-options.ts";
import { listRoutes, withoutRepeats } from "./list-routes.ts";
import { writeLlmsText } from "./llms-text.ts";
import { llmsPath, writeOpenApi } from "./openapi-document.ts";
import type { PathTemplate } from "./path-template.ts";
import { type PricedRoute, priceRoutes } from "./priced-route.ts";

/** Gates whose routes are listed, in the order of the application. */
export type DiscoveredGates = RequestHandler | readonly (RequestHandler | MountedGate)[];

/** A document as it is sent. */
interface Served {
  contentType: string;
  body: Buffer;
  etag: string;
}

type Write = (routes: readonly PricedRoute[]) => Served;

/**
 * Makes a middleware that serves `/openapi.json` and `/llms.txt`, written from the routes of these
 * gates. Mount it at the root of an origin, where readers look for them. Where a key names one of
 * the two paths, the document is sold.
 *
 * @example
 * ```ts
 * app.use(
 *   paymentMiddleware.discovery([gate, { gate: newGate, mountPath: "/v2" }], {
 *     title: "Weather",
 *     contact: { email: "team@example.com" },
 *   }),
 * );
 * app.use(gate);
 * app.use("/v2", newGate);
 * ```
 *
 * @param gates made by `paymentMiddleware` or `paymentMiddleware.route`
 * @throws ConfigurationError with all problems of options and routes
 */
export function createDiscovery(
  gates: DiscoveredGates,
  options: DiscoveryOptions = {},
): RequestHandler {
  const problems: string[] = [];
  const tell = (problem: string): void => {
    problems.push(problem);
  };
  const settings = readDiscovery(gates, options, tell);
  const routes = withoutRepeats(
    settings.gates.flatMap(({ gate, mount }) => listRoutes(gate, { mount, tell })),
  );
  if (problems.length > 0) throw new ConfigurationError("The discovery document", problems);
  const writers = writersOf(settings);
  const kept = new Map<string, Served>();

  /** A document, written once; `undefined` while a gate cannot take payments. */
  function find(path: string, write: Write): Served | undefined {
    const found = kept.get(path);
    if (found !== undefined) return found;
    const priced = priceRoutes(routes);
    if (priced === undefined) return undefined;
    const made = write(priced);
    kept.set(path, made);
    return made;
  }

  return function serveDiscovery(request, response, next): void {
    const write = writers.get(request.path);
    if (write === undefined || !/^(?:GET|HEAD)$/.test(request.method)) {
      next();
      return;
    }
    // Before any payment: an upfront one would buy a 503.
    const served = find(request.path, write);
    if (served === undefined) {
      answerRefusal(response, notReady);
      return;
    }
    passGates(sellersOf(settings.gates, request), { request, response, next }, () => {
      send(response, served);
    });
  };
}

function writersOf(settings: DiscoverySettings): ReadonlyMap<string, Write> {
  return new Map([
    [
      "/openapi.json",
      (routes) => toServed("application/json", JSON.stringify(writeOpenApi(routes, settings))),
    ],
    [llmsPath, (routes) => toServed("text/plain; charset=utf-8", writeLlmsText(routes, settings))],
  ]);
}

function toServed(contentType: string, text: string): Served {
  const body = Buffer.from(text, "utf8");
  const hash = createHash("sha256").update(body).digest("base64url");
  return { contentType, body, etag: `"${hash}"` };
}

function send(response: Response, { contentType, body, etag }: Served): void {
  response.set({
    "Content-Type": contentType,
    "Cache-Control": "max-age=300",
    "X-Content-Type-Options": "nosniff",
    ETag: etag,
  });
  // Express answers 304 to a request that knows the ETag.
  response.send(body);
}

/**
 * The gates that may sell a document: one of their keys names it. A wildcard does not; it sells the
 * document where the gate stands before discovery.
 */
function sellersOf(gates: readonly PlacedGate[], { baseUrl, path }: Request): PlacedGate[] {
  return gates.filter(
    ({ gate, mount }) =>
      gate.isTable &&
      (mount === undefined || isBelow(baseUrl + path, mount)) &&
      gate.routes.some((route) => route.path.toLowerCase().endsWith(path)),
  );
}

/**
 * Lets gates sell a document, wherever discovery is mounted. A gate that has passed the request
 * before lets it pass again.
 */
function passGates(
  [first, ...others]: readonly PlacedGate[],
  { request, response, next }: { request: Request; response: Response; next: NextFunction },
  serve: () => void,
): void {
  if (first === undefined) {
    serve();
    return;
  }
  first.middleware(request, response, (error?: unknown) => {
    if (error === undefined) passGates(others, { request, response, next }, serve);
    else next(error);
  });
}

/** Returns whether a path may be below a mount path, by the text before its first parameter. */
function isBelow(path: string, { texts, parameters }: PathTemplate): boolean {
  const start = parameters.length === 0 ? `${texts[0]}/` : (texts[0] ?? "/");
  return path.toLowerCase().startsWith(start.toLowerCase());
}
