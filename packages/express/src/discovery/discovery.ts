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
import { type ListedRoute, listRoutes } from "./list-routes.ts";
import { writeLlmsText } from "./llms-text.ts";
import { llmsPath, writeOpenApi } from "./openapi-document.ts";
import type { PathTemplate } from "./path-template.ts";
import { type Served, toServed } from "./served-text.ts";
import { createSlices } from "./slices.ts";

/** Gates whose routes are listed, in the order of the application. */
export type DiscoveredGates = RequestHandler | readonly (RequestHandler | MountedGate)[];

interface Document {
  contentType: string;
  /** Its text, in pieces that each take little time. */
  write(routes: readonly ListedRoute[]): Iterable<string>;
  /** Once it is written. */
  served?: Served;
  /** While it is written, for all requests that wait for it. */
  writing?: Promise<Served> | undefined;
}

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
  const routes = listRoutes(settings.gates, tell);
  if (problems.length > 0) throw new ConfigurationError("The discovery document", problems);
  const documents = documentsOf(settings);
  const listed = new Set(routes.map(({ gate }) => gate));
  const isReady = () => [...listed].every((gate) => gate.servedVersions() !== undefined);

  return function serveDiscovery(request, response, next): void {
    const document = documents.get(request.path);
    if (document === undefined || !/^(?:GET|HEAD)$/.test(request.method)) {
      next();
      return;
    }
    const pass = (served: Served): void => {
      passGates(sellersOf(settings.gates, request), { request, response, next }, () => {
        send(response, served);
      });
    };
    if (document.served !== undefined) pass(document.served);
    // Before any payment: an upfront one would buy a 503.
    else if (!isReady()) answerRefusal(response, notReady);
    else writeOnce(document, routes).then(pass).catch(next);
  };
}

/** Writes a document in slices, once for all requests that come meanwhile. */
function writeOnce(document: Document, routes: readonly ListedRoute[]): Promise<Served> {
  document.writing ??= toServed(document.write(routes), {
    contentType: document.contentType,
    slices: createSlices(),
  })
    .then((served) => {
      document.served = served;
      return served;
    })
    .finally(() => {
      document.writing = undefined;
    });
  return document.writing;
}

function documentsOf(settings: DiscoverySettings): ReadonlyMap<string, Document> {
  return new Map<string, Document>([
    [
      "/openapi.json",
      { contentType: "application/json", write: (routes) => writeOpenApi(routes, settings) },
    ],
    [
      llmsPath,
      {
        contentType: "text/plain; charset=utf-8",
        write: (routes) => writeLlmsText(routes, settings),
      },
    ],
  ]);
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

/** Returns whether a path is below a mount path. */
function isBelow(path: string, { texts, parameters }: PathTemplate): boolean {
  const pattern = texts.map((text, index) => {
    const value = parameters[index]?.isRest ? ".*" : "[^/]+";
    const literal = text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
    return literal + (index < parameters.length ? value : "");
  });
  return new RegExp(`^${pattern.join("")}/`, "i").test(path);
}
