import { createHash } from "node:crypto";
import { facilitatorSettings } from "@coinslot/hosting/environment";
import { expect, it } from "vitest";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";

it("coinslot facilitator --help lists every setting of the service", async () => {
  const { code, out } = await runCoinslot(["facilitator", "--help"]);
  expect(code).toBe(exitCode.done);
  for (const { name, explanation } of facilitatorSettings) {
    expect(out).toContain(`  ${name}\n      ${explanation}`);
  }
});

it("coinslot facilitator key prints a new caller key once, and the facilitator's entry for it", async () => {
  const { code, out, err } = await runCoinslot(["facilitator", "new-key", "shop"]);
  expect(code).toBe(exitCode.done);
  const [key = ""] = /^csf_[\w-]{43}$/m.exec(err) ?? [];
  expect(out).toBe(`shop:sha256:${createHash("sha256").update(key).digest("hex")}\n`);
});

it("coinslot facilitator key refuses an invalid caller name", async () => {
  const { code, out } = await runCoinslot(["facilitator", "new-key", "a shop"]);
  expect({ code, out }).toEqual({ code: exitCode.usage, out: "" });
});

it("coinslot facilitator lists all faults of its settings, and fails", async () => {
  const env = { FACILITATOR_PORT: "eighty", COINSLOT_LEDGER: "mysql://a:secret@b" };
  const { code, err } = await runCoinslot(["facilitator"], { env });
  expect(code).toBe(exitCode.failed);
  expect(err).toContain("FACILITATOR_PORT: must be a whole number");
  expect(err).toContain("COINSLOT_LEDGER: is not set, or has an unknown URL");
  expect(err).not.toContain("secret");
});
