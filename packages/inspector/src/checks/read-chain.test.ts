import { listen, startDevnet } from "@coinslot/devnet";
import { expect, it, onTestFinished } from "vitest";
import { createChainReader } from "./read-chain.ts";

it("a transaction is read from the next node where the first one's answer never ends", async () => {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  const transaction = await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1n });
  const dripping = await listen((_request, response) => {
    const drops = setInterval(() => response.write(" "), 20);
    response.writeHead(200, { "content-type": "application/json" });
    response.once("close", () => clearInterval(drops));
  });
  onTestFinished(dripping.close);
  const read = createChainReader([dripping.url, devnet.rpcUrl], 1_000);
  expect(await read(transaction, devnet.network)).toMatchObject({ status: "success" });
});
