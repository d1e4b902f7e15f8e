import { operations, operatorAt } from "@coinslot/facilitator";
import { expect, it } from "vitest";
import * as z from "zod";
import { startTestConsole } from "../testing/signed-in.ts";
import { send } from "../testing/visit-console.ts";

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
