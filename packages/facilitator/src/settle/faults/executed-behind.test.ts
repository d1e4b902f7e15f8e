import { lyingWallet, multicall3, testUsdt0, walletLies } from "@coinslot/devnet";
import type { Address } from "@coinslot/protocol";
import { encodeFunctionData, type Hex, parseGwei } from "viem";
import { afterEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { type NodeAnswer, type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import { settle, submitAsStranger } from "../../testing/settling-actions.ts";
import {
  type Engine,
  enginesByDay,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../../testing/settling-devnet.ts";
import { createWallet, payBy, walletSignature } from "../../testing/wallets.ts";

type Paid = Awaited<ReturnType<SettlingDevnet["pay"]>>;

const answered = z.object({ result: z.looseObject({ from: z.string() }) });
const succeeds = { success: true };
const fails = { success: false, errorReason: "invalid_exact_evm_transaction_failed" };
const notAccepted = { success: false, errorReason: "payer_not_accepted" };

let here: SettlingDevnet;
let proxy: NodeProxy;

afterEach(async () => {
  await proxy.close();
  await here.stop();
});

function execute({ authorization, signature }: Paid): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return encodeFunctionData({
    abi: testUsdt0.abi,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, signature],
  });
}

function cancel({ authorization: { from, nonce } }: Paid): Hex {
  return encodeFunctionData({
    abi: testUsdt0.abi,
    functionName: "cancelAuthorization",
    args: [from, nonce, walletSignature],
  });
}

/** Takes all of a wallet's tokens, in a block of its own. */
async function empty(wallet: Address): Promise<void> {
  const amount = await here.balanceOf(wallet);
  const changeSignature = () => walletSignature;
  const paid = await here.pay({ amount, authorization: { from: wallet }, changeSignature });
  await submitAsStranger(here, paid);
}

/** Sends our transaction into a block with a wallet's lie and another sender's call. */
async function mineBeside(
  options: { wallet: Address; data: readonly Hex[]; place: "before" | "behind" },
  send: () => Promise<NodeAnswer>,
): Promise<NodeAnswer> {
  const { wallet, data, place } = options;
  const { client, accounts, setAutomine, mine, token, multicall3: address } = here.devnet;
  const [liar, sender] = accounts.others;
  if (liar === undefined || sender === undefined) throw new Error("No accounts");
  const lie = (kind: number) =>
    encodeFunctionData({ abi: lyingWallet.abi, functionName: "setLie", args: [kind, 0n] });
  const { baseFeePerGas } = await client.getBlock();
  const first = { maxFeePerGas: parseGwei("900"), maxPriorityFeePerGas: parseGwei("800") };
  const last = { maxFeePerGas: ((baseFeePerGas ?? 0n) * 9n) / 8n + 1n, maxPriorityFeePerGas: 0n };
  await setAutomine(false);
  if (place === "behind") {
    const burns = { account: liar, to: wallet, data: lie(walletLies.hasOrigin), gas: 200_000n };
    await client.sendTransaction({ ...burns, ...first });
  }
  const answer = await send();
  const calls = [
    { target: wallet, callData: lie(walletLies.none), allowFailure: false },
    ...data.map((callData) => ({ target: token, callData, allowFailure: false })),
  ];
  await client.writeContract({
    account: sender,
    address,
    abi: multicall3.abi,
    functionName: "aggregate3",
    args: [calls],
    gas: 600_000n,
    ...(place === "behind" ? last : first),
  });
  await mine();
  await setAutomine(true);
  return answer;
}

/**
 * Starts a facilitator. Returns a function that settles a new payment of a wallet beside another
 * sender's calls in the same block. `place`: of these calls. Where there are several, the first
 * gives the wallet money, and it has none before. `says` changes the receipts of our transactions.
 */
async function begin(engine: Engine, says?: Record<string, unknown>) {
  here = await startSettlingDevnet(engine);
  const { devnet, start } = here;
  const relayer = devnet.accounts.relayer.address.toLowerCase();
  let beside: Parameters<typeof mineBeside>[0] | undefined;
  proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
    if (method === "eth_sendRawTransaction" && beside) {
      const options = beside;
      beside = undefined;
      if (options.data.length > 1) await empty(wallet);
      return mineBeside(options, ask);
    }
    const answer = await ask();
    if (method !== "eth_getTransactionReceipt" || says === undefined) return answer;
    const { result } = answered.safeParse(answer).data ?? {};
    if (result?.from !== relayer) return answer;
    return { result: { ...result, ...says } };
  });
  const facilitator = await start({
    network: { rpcUrls: [proxy.url] },
    payersWithCode: { gasPerMinute: 700_000n },
  });
  const wallet = await createWallet(here);
  return {
    settlePlainly: async () => settle(facilitator, await payBy(here, wallet)),
    async settleBeside(call: (paid: Paid) => Hex | Hex[], place: "before" | "behind") {
      const paid = await payBy(here, wallet);
      beside = { wallet, data: [call(paid)].flat(), place };
      return settle(facilitator, paid);
    },
  };
}

describe.each(enginesByDay("sqlite"))(
  "a wallet whose authorization is used in the block of its burn, on %s",
  (engine) => {
    it.each([
      ["executed", execute, succeeds],
      ["cancelled", cancel, fails],
    ] as const)(
      "is refused from then on where it is %s behind our transaction",
      async (_, call, outcome) => {
        const { settleBeside, settlePlainly } = await begin(engine);
        expect(await settleBeside(call, "behind")).toMatchObject(outcome);
        expect(await settlePlainly()).toMatchObject(notAccepted);
      },
    );

    it.each([
      ["stands in front of our transaction", { transactionIndex: "0xff" }],
      ["has no known place beside our transaction", { transactionIndex: undefined }],
      ["stands in another block of that number", { blockHash: `0x${"11".repeat(32)}` }],
    ])(
      "is not refused, gains no record, and waits for its gas where the execution %s",
      async (_, says) => {
        const { settleBeside, settlePlainly } = await begin(engine, says);
        expect(await settleBeside(execute, "behind")).toMatchObject(succeeds);
        expect(await settleBeside(execute, "behind")).toMatchObject(succeeds);
        await expect(settlePlainly()).rejects.toThrow("The gas for payments of payers with code");
      },
    );

    it("is not refused where it had no money before our transaction, and its payment is executed behind", async () => {
      const { settleBeside, settlePlainly } = await begin(engine);
      const fund = ({ authorization: { from } }: Paid) =>
        encodeFunctionData({ abi: testUsdt0.abi, functionName: "mint", args: [from, 10_000n] });
      expect(await settleBeside((paid) => [fund(paid), execute(paid)], "behind")).toMatchObject(
        succeeds,
      );
      expect(await settlePlainly()).toMatchObject(succeeds);
    });

    it("spends no gas of the budget where observers execute its payments first", async () => {
      const { settleBeside, settlePlainly } = await begin(engine);
      // The budget has room for two whose gas was burnt.
      for (const _ of [1, 2, 3, 4]) {
        expect(await settleBeside(execute, "before")).toMatchObject(succeeds);
      }
      expect(await settlePlainly()).toMatchObject(succeeds);
    });

    it("keeps its record where an observer executes its payment first", async () => {
      const { settleBeside, settlePlainly } = await begin(engine);
      expect(await settlePlainly()).toMatchObject(succeeds);
      expect(await settleBeside(execute, "before")).toMatchObject(succeeds);
      // Without the voucher of the first, the budget has no room for the third of these.
      expect(await settleBeside(execute, "before")).toMatchObject(succeeds);
      expect(await settleBeside(execute, "before")).toMatchObject(succeeds);
      expect(await settlePlainly()).toMatchObject(succeeds);
    });
  },
);
