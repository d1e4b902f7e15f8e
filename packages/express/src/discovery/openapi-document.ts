import { headerName } from "@coinslot/protocol";
import type { DiscoverySettings } from "./discovery-options.ts";
import { writeGuidance } from "./guidance.ts";
import { isListedMethod } from "./listed-method.ts";
import { shapeOf, type TemplateParameter, writeTemplate } from "./path-template.ts";
import type { PricedRoute } from "./priced-route.ts";

/** Path of the text for agents, at the root of an origin. */
export const llmsPath = "/llms.txt";

/**
 * The OpenAPI document of some routes, of which no two have one method and path. Methods without an
 * operation in OpenAPI are left out.
 */
export function writeOpenApi(routes: readonly PricedRoute[], settings: DiscoverySettings): object {
  const { title, version, description, contact, publicUrl, categories, docs } = settings;
  return {
    openapi: "3.1.0",
    info: {
      title,
      version,
      ...(description === undefined ? {} : { description }),
      ...(contact === undefined ? {} : { contact }),
      "x-guidance": writeGuidance(routes, settings),
    },
    // Without it, paths are relative to the origin of the document.
    ...(publicUrl === undefined ? {} : { servers: [{ url: publicUrl }] }),
    security: [],
    "x-service-info": {
      ...(categories.length === 0 ? {} : { categories }),
      docs: { ...docs, llms: (publicUrl ?? "") + llmsPath },
    },
    ...(publicUrl === undefined
      ? {}
      : { "x-agentcash-guidance": { llmsTxtUrl: publicUrl + llmsPath } }),
    paths: writePaths(routes),
    components,
  };
}

/** Routes of one path share one template: that of the first, whose parameters name all. */
function writePaths(routes: readonly PricedRoute[]): Record<string, Record<string, object>> {
  const paths: Record<string, Record<string, object>> = {};
  const firsts = new Map<string, { path: string; parameters: readonly TemplateParameter[] }>();
  for (const route of routes) {
    if (!isListedMethod(route.method)) continue;
    const shape = shapeOf(route.template);
    const first = firsts.get(shape) ?? {
      path: writeTemplate(route.template),
      parameters: route.template.parameters,
    };
    firsts.set(shape, first);
    const item = paths[first.path] ?? {};
    paths[first.path] = item;
    item[route.method.toLowerCase()] = writeOperation(route, first.parameters);
  }
  return paths;
}

function writeOperation(
  { route, method, template, discovery, payment }: PricedRoute,
  names: readonly TemplateParameter[],
): object {
  const { responseSchema: schema } = discovery;
  const { mimeType = schema && "application/json" } = route;
  const isMediaType = mimeType !== undefined && /^[\w.+-]+\/[\w.+*-]+(?:\s*;.*)?$/.test(mimeType);
  const body = bodyOf(method, discovery.requestBody);
  return {
    summary: discovery.summary ?? route.description ?? `${method} ${writeTemplate(template)}`,
    parameters: [
      ...template.parameters.map((own, index) => pathParameter(own, { names, index, discovery })),
      ...discovery.parameters.filter((parameter) => parameter.in !== "path"),
      ...Object.keys(components.parameters).map(referTo("parameters")),
    ],
    ...(body === undefined ? {} : { requestBody: body }),
    responses: {
      "200": {
        description: "The paid answer",
        ...(isMediaType ? { content: { [mimeType]: schema === undefined ? {} : { schema } } } : {}),
      },
      "402": referTo("responses")("PaymentRequired"),
    },
    "x-payment-info": payment,
  };
}

function pathParameter(
  own: TemplateParameter,
  context: {
    /** Of the first route with this path. */
    names: readonly TemplateParameter[];
    index: number;
    discovery: PricedRoute["discovery"];
  },
): object {
  const { names, index, discovery } = context;
  const told = discovery.parameters.find(
    ({ in: place, name }) => place === "path" && name === own.name,
  );
  return {
    ...(own.isRest ? { description: "May hold slashes" } : {}),
    schema: { type: "string" },
    ...told,
    name: names[index]?.name ?? own.name,
    in: "path",
    required: true,
  };
}

const withBody = new Set(["POST", "PUT", "PATCH"]);
const anyBody = { content: { "*/*": { schema: {} } } };

function bodyOf(method: string, told: object | undefined): object | undefined {
  if (method === "GET" || method === "HEAD" || method === "TRACE") return undefined;
  return told ?? (withBody.has(method) ? anyBody : undefined);
}

function referTo(kind: "parameters" | "responses"): (name: string) => object {
  return (name) => ({ $ref: `#/components/${kind}/${name}` });
}

/** Shared by all operations: 10,000 of them stay below the 10 MB that `mppx` reads. */
const components = {
  parameters: {
    Payment: {
      name: headerName.paymentSignature,
      in: "header",
      required: false,
      description: "The signed payment of x402 version 2, in base64",
      schema: { type: "string" },
    },
    IdempotencyKey: {
      name: "Idempotency-Key",
      in: "header",
      required: false,
      description: "With the same payment it brings a lost answer again",
      schema: { type: "string", minLength: 16 },
    },
  },
  responses: {
    PaymentRequired: {
      description: "Payment Required. The offer in its headers and body goes before this document",
      headers: {
        [headerName.paymentRequired]: {
          description: "The offer of x402 version 2, in base64",
          schema: { type: "string" },
        },
        [headerName.authenticate]: {
          description: "Challenges of MPP",
          schema: { type: "string" },
        },
      },
      content: { "application/json": { schema: { type: "object" } } },
    },
  },
};
