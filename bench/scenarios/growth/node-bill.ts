import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Devnet, startDevnet, startPostgres } from "@coinslot/devnet";
import { type CoinslotFacilitator, createFacilitator } from "@coinslot/facilitator";
import { type PaymentPayloadV2, parseAuthorization, toLowerHex } from "@coinslot/protocol";
import { type Bill, type CountingNode, startCountingNode } from "../../support/counting-node.ts";
import type { Figure } from "../../support/figure.ts";
import { fundPayers, requirementsOf, signPayments } from "../../support/signed-payments.ts";

/** Time that a provider's answer takes. */
const latencyMs = 30;
const idleSeconds = 60;
/** From a payment until its block is final, with some time to spare. */
const aloneSeconds = 14;
const aloneCount = 4;
const busySeconds = 12;
const perSecond = 50;
/** Payments at one a second. */
const steadyCount = 20;

/**
 * Calls to a node of Plasma, one block a second. They are of a seller without payments, of a
 * payment alone until it is final, and of fifty a second. Two processes share a ledger.
 */
export async function nodeBill(): Promise<Figure[]> {
  const postgres = await startPostgres();
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  try {
    const database = await postgres.createDatabase();
    const [one, two] = await Promise.all([
      measure([`sqlite:${join(folder, "ledger.db")}`]),
      measure([database.url, database.url]),
    ]);
    return [...figuresOf("", one), ...figuresOf(", two processes", two)];
  } finally {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Bills {
  idle: Bill;
  alone: Bill;
  steady: Bill;
  busy: Bill;
}

/** One process for each ledger URL, on one chain and one node. */
async function measure(ledgers: readonly string[]): Promise<Bills> {
  const devnet = await startDevnet({ accountCount: 40 });
  const node = await startCountingNode(devnet.rpcUrl, latencyMs);
  const running: CoinslotFacilitator[] = [];
  try {
    await fundPayers(devnet);
    await devnet.setIntervalMining(1);
    for (const ledger of ledgers) {
      const facilitator = createFacilitator({
        networks: [
          {
            network: devnet.network,
            rpcUrls: [node.url],
            relayer: { privateKey: devnet.accounts.relayer.privateKey },
          },
        ],
        ledger,
      });
      running.push(facilitator);
      await facilitator.ready();
    }
    const pay = payer(devnet, running, await signPayments(devnet, 2_000));
    // The first payments teach a process the pace of the chain.
    for (let count = 0; count < 2 * running.length; count += 1) await pay();
    await sleep(aloneSeconds * 1_000);
    node.take();
    await sleep(idleSeconds * 1_000);
    const idle = node.take();
    for (let count = 0; count < aloneCount; count += 1) {
      await pay();
      await sleep(aloneSeconds * 1_000);
    }
    const alone = node.take();
    const steady = await keepBusy({ node, pay, count: steadyCount, perSecond: 1 });
    const count = busySeconds * perSecond;
    return { idle, alone, steady, busy: await keepBusy({ node, pay, count, perSecond }) };
  } finally {
    await Promise.all(running.map((facilitator) => facilitator.close()));
    await node.close();
    await devnet.stop();
  }
}

async function keepBusy(options: {
  node: CountingNode;
  pay: () => Promise<void>;
  count: number;
  perSecond: number;
}): Promise<Bill> {
  const { node, pay } = options;
  const payments: Promise<void>[] = [];
  for (let count = 0; count < options.count; count += 1) {
    payments.push(pay());
    await sleep(1_000 / options.perSecond);
  }
  await Promise.all(payments);
  await sleep(aloneSeconds * 1_000);
  return node.take();
}

/** Verifies, reserves and settles the next payment as a gate does, at each process in turn. */
function payer(
  devnet: Devnet,
  facilitators: readonly CoinslotFacilitator[],
  payments: PaymentPayloadV2[],
) {
  const requirements = requirementsOf(devnet);
  let next = 0;
  return async function pay(): Promise<void> {
    const facilitator = facilitators[next % facilitators.length];
    const payment = payments[next];
    next += 1;
    if (facilitator === undefined || payment === undefined) throw new Error("No payment is left.");
    const { payload } = payment;
    const authorization = parseAuthorization(payload.authorization);
    const verified = await facilitator.verify(payment, requirements);
    if (!verified.isValid) throw new Error("A good payment was not verified.");
    const reserved = await facilitator.reserve({
      id: {
        network: devnet.network,
        asset: toLowerHex(devnet.token),
        payer: toLowerHex(authorization.from),
        nonce: authorization.nonce,
      },
      fingerprint: "GET /weather",
      value: authorization.value,
      validBefore: authorization.validBefore,
      payTo: toLowerHex(authorization.to),
      balance: verified.balance,
    });
    if (reserved.state !== "reserved") throw new Error("A good payment was not reserved.");
    const { reservation } = reserved;
    const options = { reservation };
    const { success, errorReason } = await facilitator.settle(payment, requirements, options);
    if (!success) throw new Error(`A good payment was not settled: ${errorReason}`);
    await facilitator.deliver(reservation);
  };
}

function figuresOf(where: string, { idle, alone, steady, busy }: Bills): Figure[] {
  const rows: { name: string; bill: Bill; per: number; atMost?: number }[] = [
    { name: `node calls in an idle minute${where}`, bill: idle, per: idleSeconds / 60, atMost: 4 },
    { name: `node calls of a payment alone${where}`, bill: alone, per: aloneCount, atMost: 6 },
    { name: `node calls of a payment at one a second${where}`, bill: steady, per: steadyCount },
    {
      name: `node calls of a payment at ${perSecond} a second${where}`,
      bill: busy,
      per: busySeconds * perSecond,
      atMost: 1,
    },
  ];
  return rows.map(({ name, bill, per, atMost }) => {
    const methods = [...bill.byMethod].map(([method, count]) => `${method} ${round(count / per)}`);
    return {
      scenario: name,
      ours: {
        value: bill.calls / per,
        unit: "",
        note: `in ${round(bill.requests / per)} requests: ${methods.join(", ")}`,
      },
      ...(atMost !== undefined && { goal: { of: "ours", atMost } }),
    };
  });
}

function round(value: number): number {
  return Number(value.toPrecision(2));
}
