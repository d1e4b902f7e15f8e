import { operations, operatorAt } from "@coinslot/facilitator";
import { expect, it } from "vitest";
import * as z from "zod";
import { startTestConsole } from "../testing/signed-in.ts";
import { send } from "../testing/visit-console.ts";
import { describeApi } from "./openapi.ts";

const documentSchema = z.object({
  openapi: z.literal("3.1.0"),
  paths: z.record(z.string(), z.record(z.string(), z.unknown())),
});

it("describes every operation, with both of its schemas", async () => {
  const { url } = await startTestConsole(operatorAt("sqlite:/nonexistent/ledger.db"), {
    readOnLoopback: true,
  });
  const { json } = await send(url, { path: "/api/openapi.json" });
  const { paths } = documentSchema.parse(json);
  expect(paths).not.toHaveProperty("/api/audit.record");
  for (const { name, access } of operations.filter(({ name }) => name !== "audit.record")) {
    const { post } = z
      .object({
        post: z.object({
          parameters: z.array(z.object({ name: z.string() })),
          requestBody: z.object({ content: z.object({ "application/json": z.unknown() }) }),
          responses: z.object({ 200: z.object({ content: z.unknown() }) }),
        }),
      })
      .parse(paths[`/api/${name}`]);
    const isAct = post.parameters.some((parameter) => parameter.name === "Idempotency-Key");
    expect(isAct).toBe(access !== "read");
  }
});

it("reads the schemas of each operation once, for every base", () => {
  const operation = operations.find(({ name }) => name === "payments.list");
  if (operation === undefined) throw new Error("No such operation");
  let reads = 0;
  const counted = {
    ...operation,
    get result() {
      reads += 1;
      return operation.result;
    },
  };
  const documents = ["", "/_coinslot", "/_COINSLOT"].map((base) => describeApi([counted], base));
  expect(reads).toBe(1);
  expect(documents).toMatchObject([
    { servers: [{ url: "/" }] },
    { servers: [{ url: "/_coinslot" }] },
    { servers: [{ url: "/_COINSLOT" }] },
  ]);
});
