import { writeSync } from "node:fs";
import { sleep, systemClock } from "@coinslot/chain";
import {
  addressSchema,
  type ChannelPayload,
  channelPayloadSchema,
  FacilitatorError,
  type Network,
  networkSchema,
  readChannelSettlement,
} from "@coinslot/protocol";
import * as z from "zod";
import { type CoinslotFacilitator, createFacilitator } from "../create-facilitator.ts";
import type { FaultPointName } from "../settle/context.ts";

/** The program's options: one JSON argument. */
const taskSchema = z.object({
  network: z.templateLiteral(["eip155:", z.number()]),
  rpcUrl: z.string(),
  privateKey: z.string(),
  ledger: z.string(),
  /** The fault point that kills the process; without it, it settles and reports. */
  dieAt: z.string().optional(),
  /** The point at which the process freezes as by SIGSTOP, once, after a report. */
  freezeAt: z.string().optional(),
  /** Key of the float, and the payments that it gives back. */
  refunds: z.object({ privateKey: z.string(), payments: z.array(z.string()) }).optional(),
  /** Key of the channels' authorizer: it claims what is due, until it is killed. */
  channels: z.object({ privateKey: z.string() }).optional(),
  /** The payload of a deposit that it presents, as long as its outcome is not known. */
  deposit: z
    .object({ payload: channelPayloadSchema, price: z.string().transform(BigInt) })
    .optional(),
  /** A buyer's payload of a refund, which it then serves until it is killed. */
  channelRefund: channelPayloadSchema.optional(),
  /** The body of a caller's `/settle`, and its receiver: it is asked for until it has an answer. */
  hosted: z
    .object({ body: z.unknown(), receiver: addressSchema, privateKey: z.string() })
    .optional(),
  payments: z.array(
    z.object({ paymentPayload: z.looseObject({}), paymentRequirements: z.looseObject({}) }),
  ),
});

/** A program that settles payments, and may be killed or frozen at a named place. */
async function main(argument: string): Promise<void> {
  const task = taskSchema.parse(JSON.parse(argument));
  let hasFrozen = false;
  const facilitator = createFacilitator({
    networks: [
      {
        network: task.network,
        rpcUrls: [task.rpcUrl],
        relayer: { privateKey: task.privateKey },
        ...(task.refunds || task.channels || task.hosted ? { finalAfter: 2 } : {}),
      },
    ],
    ledger: task.ledger,
    refunds: task.refunds && { privateKey: task.refunds.privateKey },
    channels: task.channels && { authorizer: task.channels },
    hostedChannels: task.hosted && {
      callers: [{ name: "shop", receivers: [task.hosted.receiver] }],
      authorizer: { privateKey: task.hosted.privateKey },
    },
    heartbeatLeaseSeconds: 1.5,
    times: { leaseMs: 1_500 },
    async faultPoint(name: FaultPointName) {
      if (name === task.freezeAt && !hasFrozen) {
        hasFrozen = true;
        writeSync(process.stdout.fd, "frozen\n");
        process.kill(process.pid, "SIGSTOP");
      }
      if (name !== task.dieAt) return;
      process.kill(process.pid, "SIGKILL");
      // Nothing after this place may run while the signal is on its way.
      await new Promise(() => undefined);
    },
  });
  await facilitator.ready();
  for (const payment of task.refunds?.payments ?? []) {
    await facilitator.refunds.create({ payment, idempotencyKey: payment });
  }
  while (task.deposit !== undefined) {
    await presentDeposit(facilitator, task.network, task.deposit);
    // The next one at once would leave the process no time to hear of the chain.
    await sleep(systemClock, 100);
  }
  if (task.hosted) await askForCaller(facilitator, task.hosted.body);
  const { channelRefund } = task;
  while (channelRefund !== undefined) {
    const { channelConfig, voucher } = channelRefund;
    const outcome = await facilitator.channels?.refund({
      network: networkSchema.parse(task.network),
      presented: { channelConfig, voucher },
      amount: undefined,
      isGone: () => false,
    });
    if (outcome?.state !== "busy") break;
    await sleep(systemClock, 100);
  }
  // Until it is killed.
  if (task.refunds || task.channels) await new Promise(() => setInterval(() => undefined, 60_000));
  const results = await Promise.all(
    task.payments.map(async ({ paymentPayload, paymentRequirements }) => {
      try {
        const { success, errorReason } = await facilitator.settle(
          payloadSchema.parse(paymentPayload),
          requirementsSchema.parse(paymentRequirements),
        );
        return errorReason ?? success;
      } catch (error) {
        if (error instanceof FacilitatorError) return error.kind;
        throw error;
      }
    }),
  );
  console.log(JSON.stringify(results));
  await facilitator.close();
}

async function askForCaller({ hostedChannels }: CoinslotFacilitator, body: unknown) {
  const read = readChannelSettlement(body);
  if (!read.ok || hostedChannels === undefined) throw new Error("No call of a caller.");
  const answer = await hostedChannels.settle(read.request, {
    caller: "shop",
    isGone: () => false,
  });
  console.log(answer.state, "transaction" in answer ? answer.transaction : "");
}

async function presentDeposit(
  { channels }: CoinslotFacilitator,
  network: Network,
  { payload, price }: { payload: ChannelPayload; price: bigint },
): Promise<void> {
  if (payload.type !== "deposit") throw new Error(payload.type);
  await channels?.deposit?.({
    network,
    route: "GET /weather",
    presented: payload,
    price,
    fingerprint: "GET /weather",
    isGone: () => false,
    deposit: payload.deposit,
    domain: { name: "USDT0", version: "1" },
    minDeposit: 0n,
    timeoutMs: 1_000,
  });
}

const payloadSchema = z.looseObject({
  x402Version: z.number(),
  payload: z.record(z.string(), z.unknown()),
});
const requirementsSchema = z.looseObject({
  scheme: z.string(),
  network: z.string(),
  asset: z.string(),
  payTo: z.string(),
  maxTimeoutSeconds: z.number(),
});

await main(process.argv[2] ?? "");
