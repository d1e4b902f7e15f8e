import { afterEach, expect, it } from "vitest";
import { operatorAt } from "../operators/operator.ts";
import { type SettlingDevnet, startSettlingDevnet } from "../testing/settling-devnet.ts";
import { listChainsOperation } from "./chains-operation.ts";
import { listRelayersOperation } from "./relayers-operation.ts";
import { todayOperation } from "./today/today-operation.ts";

let settling: SettlingDevnet | undefined;
afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

it("a running seller knows its chains and relayers, in its process and by its socket", async () => {
  settling = await startSettlingDevnet("sqlite");
  const { devnet, ledger, start, pay } = settling;
  const facilitator = await start({
    network: { rpcUrls: [devnet.rpcUrl, "http://127.0.0.1:1/secret-key"] },
  });
  const { paymentPayload, paymentRequirements } = await pay();
  await facilitator.settle(paymentPayload, paymentRequirements);
  const address = devnet.accounts.relayer.address.toLowerCase();
  for (const operator of [facilitator.operator, operatorAt(ledger.url)]) {
    const relayers = await operator.run(listRelayersOperation, {});
    expect(relayers).toMatchObject({
      source: "seller",
      relayers: [
        { relayer: address, state: "active", isLow: false, nextNonce: expect.any(Number) },
      ],
    });
    expect(relayers.relayers[0]?.balance).toMatch(/^\d{18,}$/);
    expect(BigInt(relayers.relayers[0]?.burnPerDay ?? 0)).toBeGreaterThan(0n);
    const chains = await operator.run(listChainsOperation, {});
    expect(chains).toMatchObject({
      source: "seller",
      chains: [
        {
          network: devnet.network,
          isReachable: true,
          endpoints: [{ endpoint: 1, host: "127.0.0.1", state: "ready" }, { endpoint: 2 }],
        },
      ],
    });
    expect(chains.chains[0]?.endpoints[0]?.requests).toBeGreaterThan(0);
    expect(JSON.stringify(chains)).not.toContain("secret");
    const today = await operator.run(todayOperation, {});
    expect(today).toMatchObject({ source: "seller", today: { income: [{ value: "1000" }] } });
  }
  await facilitator.close();
  const beside = await operatorAt(ledger.url).run(listRelayersOperation, {});
  expect(beside).toMatchObject({ source: "ledger", relayers: [{ balance: null, isLow: null }] });
});
