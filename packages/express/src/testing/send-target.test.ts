import { setTimeout } from "node:timers/promises";
import { listen } from "@coinslot/devnet";
import { expect, it } from "vitest";
import { sendTarget } from "./send-target.ts";

it("a request target gets its answer, also where the server takes its time", async () => {
  const server = await listen(async (_request, response) => {
    await setTimeout(20);
    response.end("late");
  });
  expect((await sendTarget(server, "/any")).status).toBe(200);
  await server.close();
});
