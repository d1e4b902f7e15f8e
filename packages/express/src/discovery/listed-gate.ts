import type { RequestHandler } from "express";
import type { Gate } from "../gate.ts";
import type { Route } from "../routes/read-routes.ts";

/** A gate whose routes can be listed. */
export interface ListedGate extends Pick<Gate, "settings" | "servedVersions"> {
  routes: readonly Route[];
  /** A router of the Express that has read the keys. */
  router: object;
  /** True if it finds routes by their keys; false for a route beside its handler. */
  isTable: boolean;
}

const gates = new WeakMap<RequestHandler, ListedGate>();

/** Remembers the gate of a middleware, for discovery. */
export function registerGate(middleware: RequestHandler, gate: ListedGate): void {
  gates.set(middleware, gate);
}

/** The gate of a middleware; `undefined` for a function of another origin. */
export function findGate(middleware: RequestHandler): ListedGate | undefined {
  return gates.get(middleware);
}
