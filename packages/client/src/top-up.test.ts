import { plasma, plasmaUsdt0 } from "@coinslot/protocol";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import type { TopUp, TopUpRequest } from "./index.ts";
import { countSignatures } from "./testing/counting-account.ts";
import { requirements, startSeller } from "./testing/seller.ts";
import { useWorld } from "./testing/world.ts";

const world = useWorld();
const { keep, createFetch } = world;

function poorAccount() {
  return countSignatures(privateKeyToAccount(generatePrivateKey()));
}

/** Brings the funds at once, and remembers what it was asked for. */
function mintOnDemand(asked: TopUpRequest[] = []): TopUp {
  return async (request) => {
    asked.push(request);
    const amount = request.needs[0]?.amount ?? 0n;
    await world.devnet().mint({ to: request.payer, amount });
    return true;
  };
}

describe("a top-up", () => {
  it("is asked for when no network has the funds; then the offer is fetched again and paid", async () => {
    const seller = keep(await startSeller());
    const asked: TopUpRequest[] = [];
    const account = poorAccount();
    const response = await createFetch({ account, topUp: mintOnDemand(asked) })(seller.url);
    expect(response.status).toBe(200);
    expect(seller.unpaid).toHaveLength(2);
    expect(account.signatures()).toBe(1);
    expect(asked).toMatchObject([
      {
        payer: account.address,
        host: new URL(seller.url).host,
        needs: [{ network: plasma, asset: plasmaUsdt0.address, amount: 1000n, balance: 0n }],
      },
    ]);
  });

  it("is not asked for when the payer has the funds, nor for what is over budget", async () => {
    const never: TopUp = () => Promise.reject(new Error("Nobody was to ask"));
    const cheap = keep(await startSeller());
    expect((await createFetch({ topUp: never })(cheap.url)).status).toBe(200);
    const dear = keep(await startSeller({ accepts: () => [requirements({ amount: "999999" })] }));
    const call = createFetch({ account: poorAccount(), topUp: never })(dear.url);
    await expect(call).rejects.toMatchObject({ code: "over_budget" });
  });

  it("that is declined, or brings too little, ends with insufficient funds", async () => {
    const seller = keep(await startSeller());
    for (const answer of [false, true]) {
      let count = 0;
      const topUp: TopUp = async () => {
        count += 1;
        return answer;
      };
      const call = createFetch({ account: poorAccount(), topUp })(seller.url);
      await expect(call).rejects.toMatchObject({ code: "insufficient_funds" });
      expect(count).toBe(1);
    }
  });

  it.each([
    ["dearer", { amount: "1001" }],
    ["for somebody else", { payTo: `0x${"ee".repeat(20)}` as const }],
  ])("is not spent on an offer that has become %s meanwhile", async (_name, change) => {
    let offers = 0;
    const accepts = () => [requirements(offers++ === 0 ? {} : change)];
    const seller = keep(await startSeller({ accepts }));
    const account = poorAccount();
    const call = createFetch({ account, topUp: mintOnDemand() })(seller.url);
    await expect(call).rejects.toMatchObject({ code: "offer_changed" });
    expect(account.signatures()).toBe(0);
  });
});
