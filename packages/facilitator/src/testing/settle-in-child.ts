import { writeSync } from "node:fs";
import { FacilitatorError } from "@coinslot/protocol";
import * as z from "zod";
import { createFacilitator } from "../create-facilitator.ts";
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
        ...(task.refunds ? { finalAfter: 2 } : {}),
      },
    ],
    ledger: task.ledger,
    refunds: task.refunds && { privateKey: task.refunds.privateKey },
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
  // Until it is killed.
  if (task.refunds) await new Promise(() => setInterval(() => undefined, 60_000));
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
