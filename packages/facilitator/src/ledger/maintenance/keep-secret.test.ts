import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { keepSecret } from "./keep-secret.ts";

describe.each(engines)("a secret of the ledger, on %s", (engine) => {
  const { join } = ledgerForEachTest(engine);

  it("is written once, and the same for every process and every call", async () => {
    const ledgers = await Promise.all(["one", "two"].map((name) => join(name)));
    const calls = [...ledgers, ...ledgers].map((ledger) => keepSecret(ledger, "challenges"));
    const secrets = new Set(await Promise.all(calls));
    expect(secrets.size).toBe(1);
    const [secret = ""] = secrets;
    expect(Buffer.from(secret, "base64url")).toHaveLength(32);
    for (const ledger of ledgers) expect(await keepSecret(ledger, "challenges")).toBe(secret);
    for (const ledger of ledgers) expect(await keepSecret(ledger, "another")).not.toBe(secret);
  });
});
