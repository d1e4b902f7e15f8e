import { describe, expect, it } from "vitest";
import { settle, useSettlingDevnet } from "../../testing/settling-actions.ts";
import { createWallet, dearWallet, payBy } from "../../testing/wallets.ts";

const begin = useSettlingDevnet();

describe("a wallet whose payments move money and use much gas", () => {
  it("spends the shared budget by what each uses beyond an ordinary call", async () => {
    const here = await begin();
    const facilitator = await here.start({ payersWithCode: { gasPerMinute: 350_000n } });
    const wallet = await createWallet(here);
    await here.devnet.client.setCode({ address: wallet, bytecode: dearWallet });
    const outcomes: string[] = [];
    for (let count = 0; count < 12; count += 1) {
      const paid = await payBy(here, wallet);
      const outcome = await settle(facilitator, paid).catch(String);
      outcomes.push(typeof outcome === "string" ? "waits" : `${outcome.success}`);
    }
    // The first has no record. Those behind it have 1,400,000 gas: each has 330,000 at risk, and
    // 145,000 of it stay spent.
    expect(outcomes.join(" ")).toBe(`${"true ".repeat(9)}waits waits waits`);
  });
});
