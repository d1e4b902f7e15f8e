import { expect, it } from "vitest";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { idOf, reserve, useSettlingDevnet } from "../../testing/settling-actions.ts";

const begin = useSettlingDevnet();

const promised = 10;
const authorizationState = "0xe94a0102";

it("a payer without uncommitted balance causes one read of each open payment per block, over many requests", async () => {
  const here = await begin();
  const { devnet, start, pay } = here;
  const [payer] = devnet.accounts.others;
  if (payer === undefined) throw new Error("No account");
  await devnet.mint({ to: payer.address, amount: BigInt(promised) * 1_000n });
  let reads = 0;
  const proxy = await startNodeProxy(devnet.rpcUrl, ({ method, params }, ask) => {
    if (method === "eth_call" && JSON.stringify(params).includes(`"${authorizationState}`)) {
      reads += 1;
    }
    return ask();
  });
  try {
    const facilitator = await start({ network: { rpcUrls: [proxy.url] } });
    for (let index = 0; index < promised; index += 1) {
      await reserve(facilitator, await pay({ signer: payer }));
    }
    reads = 0;
    const asking = Array.from({ length: 8 }, async (_, index) => {
      const paid = await pay({ signer: payer });
      const verified = await facilitator.verify(paid.paymentPayload, paid.paymentRequirements);
      const { balance } = "balance" in verified ? verified : {};
      const { value, validBefore } = paid.authorization;
      const payTo = devnet.accounts.seller.address;
      const fingerprint = `GET /${index}`;
      return facilitator.reserve({
        id: idOf(paid),
        fingerprint,
        value,
        validBefore,
        payTo,
        balance,
      });
    });
    const reason = "invalid_exact_evm_insufficient_balance";
    for (const reserved of await Promise.all(asking)) {
      expect(reserved).toMatchObject({ state: "refused", reason });
    }
    expect(reads).toBe(promised);
    await facilitator.close();
  } finally {
    await proxy.close();
  }
});
