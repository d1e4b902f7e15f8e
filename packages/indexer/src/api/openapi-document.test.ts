import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { buildOpenApiDocument } from "./openapi-document.ts";
import {
  closedSchemas,
  furtherOperations,
  publishedOperations,
  transferFields,
} from "./testing/published-facts.ts";

const objectSchema = z.looseObject({
  required: z.array(z.string()).default([]),
  properties: z.record(z.string(), z.unknown()),
  additionalProperties: z.unknown(),
});
const parameter = z.looseObject({
  name: z.string(),
  in: z.string(),
  required: z.boolean(),
  schema: z.looseObject({}),
});
const readable = z.looseObject({
  openapi: z.string(),
  security: z.array(z.looseObject({})),
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.looseObject({
        operationId: z.string(),
        security: z.array(z.unknown()).optional(),
        parameters: z.array(parameter),
        "x-rate-limit": z.looseObject({}),
        responses: z.record(z.string(), z.unknown()),
        requestBody: z.unknown().optional(),
      }),
    ),
  ),
  components: z.looseObject({
    securitySchemes: z.looseObject({}).optional(),
    responses: z.record(z.string(), z.unknown()),
    schemas: z.record(z.string(), z.looseObject({})),
  }),
});

function read(options: Parameters<typeof buildOpenApiDocument>[0]) {
  // Through JSON, as it is served.
  return readable.parse(JSON.parse(JSON.stringify(buildOpenApiDocument(options))));
}
const document = read({ authStatus: "specified", hasKeys: true });

function operation(path: string, method: string, from = document) {
  const found = from.paths[path]?.[method];
  if (found === undefined) throw new Error(`No ${method} ${path} in the document`);
  return found;
}

describe("the OpenAPI document", () => {
  it("is of version 3.1", () => expect(document.openapi).toBe("3.1.0"));

  it.each(publishedOperations)("has $method $path with its limit", (published) => {
    const { method, path, max, windowSeconds, answers } = published;
    const described = operation(path, method);
    expect(described["x-rate-limit"]).toEqual({ max, windowSeconds });
    expect(Object.keys(described.responses)).toEqual(expect.arrayContaining([...answers]));
  });

  it.each(furtherOperations)("has $method $path", ({ method, path, answers }) => {
    expect(Object.keys(operation(path, method).responses).sort()).toEqual([...answers].sort());
  });

  it("has no other paths", () => {
    const all = Object.values(document.paths).flatMap((methods) => Object.keys(methods));
    expect(all).toHaveLength(publishedOperations.length + furtherOperations.length);
  });

  it.each(Object.entries(closedSchemas))("closes %s", (name, { required, optional }) => {
    const schema = objectSchema.parse(document.components.schemas[name]);
    expect(schema.additionalProperties).toBe(false);
    expect([...schema.required].sort()).toEqual([...required].sort());
    expect(Object.keys(schema.properties).sort()).toEqual([...required, ...optional].sort());
  });

  it("leaves transfers open", () => {
    const schema = objectSchema.parse(document.components.schemas.Transfer);
    expect(schema.additionalProperties).toEqual({});
    expect([...schema.required].sort()).toEqual([...transferFields].sort());
  });

  it("describes the page of a history", () => {
    const { parameters } = operation(
      "/api/v1/{blockchain}/{token}/{address}/token-transfers",
      "get",
    );
    const schemas = Object.fromEntries(parameters.map(({ name, schema }) => [name, schema]));
    expect(schemas.limit).toEqual({ type: "integer", minimum: 1, maximum: 1000, default: 10 });
    expect(schemas.fromTs).toMatchObject({ type: "integer", minimum: 0, default: 0 });
    expect(schemas.toTs).toMatchObject({ type: "integer", minimum: 0 });
    expect(schemas.sort).toMatchObject({ enum: ["asc", "desc"], default: "desc" });
    for (const each of parameters) expect(each.required).toBe(each.in === "path");
  });

  it("takes batches of 1 to 10", () => {
    for (const [path, item] of [
      ["/api/v1/batch/token-transfers", "TransferQuery"],
      ["/api/v1/batch/token-balances", "BalanceQuery"],
    ] as const) {
      expect(operation(path, "post").requestBody).toEqual({
        required: true,
        content: {
          "application/json": {
            schema: {
              type: "array",
              minItems: 1,
              maxItems: 10,
              items: { $ref: `#/components/schemas/${item}` },
            },
          },
        },
      });
    }
  });

  it("refers to its own schemas only, which a validator accepts", () => {
    const text = JSON.stringify(document);
    const references = [...text.matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)];
    expect(references.length).toBeGreaterThan(20);
    expect(text.match(/"\$ref":/g)).toHaveLength(references.length);
    for (const [, kind, name = ""] of references) {
      const known =
        kind === "schemas" ? document.components.schemas : document.components.responses;
      expect(known).toHaveProperty(name);
    }
    const ajv = new Ajv2020({ strict: false });
    for (const schema of Object.values(document.components.schemas)) {
      expect(ajv.validateSchema(schema)).toBe(true);
    }
  });

  it("requires a key everywhere", () => {
    expect(document.security).toEqual([{ ApiKeyAuth: [] }]);
    expect(document.components.securitySchemes).toEqual({
      ApiKeyAuth: { type: "apiKey", in: "header", name: "x-api-key" },
    });
    expect(operation("/api/v1/health", "get").security).toBeUndefined();
  });

  it("leaves health and chains open, and lists 403, in the public deployment's mode", () => {
    const live = read({ authStatus: "live", hasKeys: true });
    for (const path of ["/api/v1/health", "/api/v1/chains"]) {
      expect(operation(path, "get", live).security).toEqual([]);
      expect(Object.keys(operation(path, "get", live).responses)).not.toContain("401");
    }
    expect(Object.keys(operation("/api/v1/keys", "get", live).responses)).toEqual(
      expect.arrayContaining(["401", "403"]),
    );
  });

  it("omits keys where none are required", () => {
    const open = read({ authStatus: "specified", hasKeys: false });
    expect(open.security).toEqual([]);
    expect(Object.keys(open.paths).filter((path) => path.includes("keys"))).toEqual([]);
    expect(JSON.stringify(open.paths)).not.toContain("Unauthorized");
  });
});
