import { dialectOf } from "../routes/path-dialect.ts";
import type { Route } from "../routes/read-routes.ts";
import { readRouteKey } from "../routes/route-key.ts";
import type { PlacedGate } from "./discovery-options.ts";
import type { ListedGate } from "./listed-gate.ts";
import { listedMethods } from "./listed-method.ts";
import {
  belowMount,
  type PathTemplate,
  readTemplate,
  shapeOf,
  templateOf,
} from "./path-template.ts";
import { knownRange } from "./price-info.ts";
import type { DiscoveryTerms } from "./route-discovery.ts";

/** A route under one of its methods and paths. */
export interface ListedRoute {
  gate: ListedGate;
  route: Route;
  discovery: DiscoveryTerms;
  /** Upper case. */
  method: string;
  template: PathTemplate;
  /** Of its template. */
  shape: string;
}

/**
 * Lists the routes of gates, and reports each that no list can hold. Of several routes with one
 * method and path the first one counts: it is listed, or hides the others where it is hidden.
 */
export function listRoutes(
  gates: readonly PlacedGate[],
  tell: (problem: string) => void,
): ListedRoute[] {
  const taken = new Set<string>();
  return gates.flatMap(({ gate, mount }) =>
    gate.routes.flatMap((route) => {
      const found = listRoute(gate, route, { mount, tell });
      const free = found.filter((listed) => !taken.has(claimOf(listed)));
      for (const claim of [...found.map(claimOf), ...claimsOf(gate, route, mount)]) {
        taken.add(claim);
      }
      return free;
    }),
  );
}

function listRoute(
  gate: ListedGate,
  route: Route,
  { mount, tell }: { mount: PathTemplate | undefined; tell: (problem: string) => void },
): ListedRoute[] {
  const { discovery, key, accepts } = route;
  if (discovery === false) return [];
  const { bounds } = discovery;
  const report = (problem: string): void => tell(`"${key}": ${problem}`);
  if (bounds !== undefined && knownRange(accepts) !== undefined) {
    report("discovery.price is for prices by function, and tokens that are no known dollars");
  }
  const methods = methodsOf(gate, route, { discovery, report });
  const templates = templatesOf(gate, route, { discovery, mount, report });
  for (const template of templates) reportStrangers(template, { discovery, report });
  return templates.flatMap((template) => {
    const shape = shapeOf(template);
    return methods.map((method) => ({ gate, route, discovery, method, template, shape }));
  });
}

function claimOf({ method, shape }: Pick<ListedRoute, "method" | "shape">): string {
  return `${method} ${shape}`;
}

/** Every method and path that reaches a route by its key, listed or not. */
function claimsOf(gate: ListedGate, route: Route, mount: PathTemplate | undefined): string[] {
  const { verb, path } = keyOf(gate, route) ?? {};
  const own = path === undefined ? undefined : templateOf(path, dialectOf(gate.router));
  const template = mount && own ? belowMount(mount, own) : own;
  if (verb === undefined || template === undefined) return [];
  const shape = shapeOf(template);
  return methodsOfVerb(gate, verb).map((method) => claimOf({ method, shape }));
}

function methodsOfVerb({ isTable }: ListedGate, verb: string): readonly string[] {
  if (verb === "GET") return ["GET", "HEAD"];
  if (verb !== "*") return [verb];
  // A name without a method: the methods are those of the handler beside it.
  return isTable ? listedMethods : [];
}

interface Reading {
  discovery: DiscoveryTerms;
  report: (problem: string) => void;
}

/** The key of a route; that of a route beside its handler is its name, where it has this form. */
function keyOf({ isTable, router }: ListedGate, { key, verb, path }: Route) {
  if (isTable) return { verb, path };
  const read = readRouteKey(key, router);
  return read.ok ? read.parts : undefined;
}

function methodsOf(
  gate: ListedGate,
  route: Route,
  { discovery: { methods }, report }: Reading,
): readonly string[] {
  const { verb } = keyOf(gate, route) ?? { verb: "*" };
  if (verb === "*") return methods ?? ["GET"];
  if (methods !== undefined) report("discovery.methods is for keys of all methods");
  return [verb];
}

function templatesOf(
  gate: ListedGate,
  route: Route,
  { discovery, mount, report }: Reading & { mount: PathTemplate | undefined },
): PathTemplate[] {
  const path = keyOf(gate, route)?.path;
  const found =
    discovery.paths.length > 0
      ? discovery.paths.map(readTemplate)
      : [path === undefined ? undefined : templateOf(path, dialectOf(gate.router))];
  const templates = found.flatMap((own) => {
    const full = mount && own ? belowMount(mount, own) : own;
    return full ?? [];
  });
  if (templates.length === found.length) return templates;
  report(
    gate.isTable || path !== undefined
      ? "its path has no template of OpenAPI: set discovery.paths, or discovery: false"
      : 'it has no path: name it as a key, such as "GET /report", or set discovery.paths, or discovery: false',
  );
  return [];
}

/** Reports parameters of a path that it does not have. */
function reportStrangers(template: PathTemplate, { discovery, report }: Reading): void {
  const names = new Set<unknown>(template.parameters.map(({ name }) => name));
  for (const { in: place, name } of discovery.parameters) {
    if (place === "path" && !names.has(name)) {
      report(`discovery.parameters names "${name}", which its path does not have`);
    }
  }
}
