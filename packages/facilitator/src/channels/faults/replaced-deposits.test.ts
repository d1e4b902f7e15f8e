import { keccak256, toHex } from "viem";
import { expect, it, onTestFinished, vi } from "vitest";
import { deposit, present, signDepositRequest } from "../../testing/channel-deposits.ts";
import { patience, price, startClaimingDevnet } from "../../testing/claiming-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";

it("proves a deposit by the mined form of its transaction, where that is not the newest", async () => {
  const here = await startClaimingDevnet("sqlite");
  onTestFinished(() => here.stop());
  const { devnet, channels } = here;
  const forms: string[] = [];
  const node = await startNodeProxy(devnet.rpcUrl, async (call, ask) => {
    const [raw] = call.params;
    if (call.method === "eth_sendRawTransaction" && typeof raw === "string") forms.push(raw);
    return call.method === "eth_getLogs" ? { result: [] } : ask();
  });
  onTestFinished(node.close);
  const times = { resendMs: 100, replaceMs: 200 };
  const facilitator = await here.start({}, { network: { rpcUrls: [node.url] }, times });
  const config = channels.configOf();
  await here.admit(facilitator, price, config);
  await devnet.mine(1);
  await devnet.setAutomine(false);
  const request = await signDepositRequest(here, config);
  const pending = await present(facilitator, { ...request, timeoutMs: 100 });
  expect(pending).toMatchObject({ state: "pending" });
  await vi.waitFor(() => expect(new Set(forms).size).toBeGreaterThan(1), patience);
  const rawTransaction = toHex(Buffer.from(`${forms[0]}`.slice(2), "hex"));
  await devnet.reorg({ depth: 1, transactions: [{ rawTransaction, blockIndex: 0 }] });
  await devnet.setAutomine(true);
  const proven = { state: "deposited", transaction: keccak256(rawTransaction) };
  expect(await deposit(here, facilitator, request)).toMatchObject(proven);
});
