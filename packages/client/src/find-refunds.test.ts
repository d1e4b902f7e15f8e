import { type Address, type Hex, plasma, plasmaUsdt0, transferTypedData } from "@coinslot/protocol";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { findRefunds, type PaymentTerms, paymentOf, refundNonce } from "./index.ts";
import { executeAuthorization, executePayment } from "./testing/execute-payment.ts";
import { listen } from "./testing/listen.ts";
import { startSeller } from "./testing/seller.ts";
import { useWorld } from "./testing/world.ts";

const world = useWorld();
const { keep, createFetch } = world;

/** Buys once; the seller executes the payment. */
async function buy(payingFetch = createFetch()) {
  const transactions: Hex[] = [];
  const seller = keep(
    await startSeller({
      async onPaid(paid) {
        transactions.push(await executePayment(world.devnet(), paid));
        return false;
      },
    }),
  );
  const response = await payingFetch(seller.url);
  const payment = paymentOf(response)?.payment.terms;
  const [transaction] = transactions;
  if (payment === undefined || transaction === undefined) throw new Error("Nothing was paid");
  return { payingFetch, payment, transaction };
}

/** Pays a refund from a float account, as a seller's relayer does. */
async function refund(
  payment: PaymentTerms,
  options: {
    n?: number;
    value?: bigint;
    to?: Address;
    float?: ReturnType<typeof createFloat>;
  } = {},
) {
  const { n = 1, value = 1_000n, to = payment.payer, float = createFloat() } = options;
  await world.devnet().mint({ to: float.address, amount: value });
  const authorization = {
    from: float.address,
    to,
    value,
    validAfter: 0n,
    validBefore: BigInt(payment.validBefore + 3_600),
    nonce: refundNonce(payment, n),
  };
  const { network, asset } = payment;
  const signature = await float.signTypedData(
    transferTypedData({ authorization, network, asset, domain: { name: "USDT0", version: "1" } }),
  );
  const transaction = await executeAuthorization(world.devnet(), { authorization, signature });
  return { transaction, from: float.address.toLowerCase() };
}

function createFloat() {
  return privateKeyToAccount(generatePrivateKey());
}

describe("the search for refunds", () => {
  it("finds those of a payment by the chain alone, partial ones and of any account", async () => {
    const { payingFetch, payment, transaction } = await buy();
    expect(await payingFetch.findRefunds(payment)).toMatchObject({
      refunds: [],
      refunded: 0n,
      isComplete: true,
    });
    const second = await refund(payment, { n: 2, value: 300n });
    const first = await refund(payment, { n: 1, value: 600n });
    await world.devnet().mine();
    const unknown = { ...payment, transaction: "a seller's word" };
    for (const known of [payment, { ...payment, transaction }, unknown]) {
      const found = await payingFetch.findRefunds(known);
      const lowered = found.refunds.map((each) => ({ ...each, from: each.from.toLowerCase() }));
      expect(lowered).toMatchObject([
        { n: 1, amount: 600n, confirmations: 1n, ...first },
        { n: 2, amount: 300n, confirmations: 3n, ...second },
      ]);
      expect(found).toMatchObject({ refunded: 900n, isComplete: true });
    }
  });

  it("takes no other payment's refund, and none to another address, for its own", async () => {
    const { payingFetch, payment } = await buy();
    const other = await buy(payingFetch);
    await refund(other.payment);
    await refund(payment, { to: createFloat().address });
    expect(await payingFetch.findRefunds(payment)).toMatchObject({ refunds: [], refunded: 0n });
    const rpcUrls = { [plasma]: world.devnet().rpcUrl };
    const found = await findRefunds({ payments: [payment, other.payment], rpcUrls });
    expect(found).toMatchObject([{ refunded: 0n }, { refunded: 1_000n }]);
  });

  it("reads as many blocks at a time as its node allows, and fails over from a broken one", async () => {
    const { payment } = await buy();
    await refund(payment, { value: 700n });
    for (let count = 0; count < 20; count += 1) await world.devnet().mine();
    const asked: number[] = [];
    const strict = keep(
      await listen(async (request, response) => {
        const { body } = request;
        const call = JSON.parse(body);
        if (call.method === "eth_getLogs") {
          const [{ fromBlock, toBlock }] = call.params;
          asked.push(Number(toBlock) - Number(fromBlock) + 1);
          if (Number(toBlock) - Number(fromBlock) >= 8) {
            const error = { code: -32_005, message: "query exceeds max block range 8" };
            return void response.end(JSON.stringify({ jsonrpc: "2.0", id: call.id, error }));
          }
        }
        const headers = { "Content-Type": "application/json" };
        const answer = await fetch(world.devnet().rpcUrl, { method: "POST", headers, body });
        response.end(await answer.text());
      }),
    );
    const broken = keep(await listen((_, response) => void response.writeHead(503).end()));
    const rpcUrls = { [plasma]: [broken.url, strict.url] };
    const [found] = await findRefunds({ payments: [payment], rpcUrls });
    expect(found).toMatchObject({ refunded: 700n, isComplete: true });
    expect(Math.max(...asked)).toBeGreaterThan(8);
    const only = findRefunds({ payments: [payment], rpcUrls: { [plasma]: broken.url } });
    await expect(only).rejects.toMatchObject({ code: "chain_unreadable" });
  });

  it("needs nodes of the payment's network", async () => {
    const payment = {
      network: "eip155:988" as const,
      asset: plasmaUsdt0.address,
      payer: world.account().address,
      nonce: `0x${"11".repeat(32)}` as const,
      validBefore: 1,
    };
    const rpcUrls = { [plasma]: world.devnet().rpcUrl };
    await expect(findRefunds({ payments: [payment], rpcUrls })).rejects.toMatchObject({
      code: "invalid_configuration",
    });
    await expect(createFetch().findRefunds(payment)).rejects.toMatchObject({
      code: "chain_unreadable",
    });
  });
});
