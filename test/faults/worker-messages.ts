import { paymentStates } from "@coinslot/facilitator";
import { addressSchema, bytes32Schema, networkSchema } from "@coinslot/protocol";
import * as z from "zod";

/** Fault points of a worker, in the order of a payment's way. */
export const killPoints = [
  /** After the payment has been reserved, before the handler. */
  "reserved",
  /** In the handler. */
  "handling",
  /** Before a transaction is planned. */
  "queued",
  /** Before the signed transaction is stored. */
  "signed",
  /** Before it is broadcast. */
  "stored",
  /** Before its receipt is looked up. */
  "broadcast",
  /** With the receipt at hand, before the outcome is written. */
  "included",
  /** Before its outcome is reported. */
  "recorded",
  /** Before the answer goes out. */
  "settled",
] as const;

/** A fault point of a worker. */
export type KillPoint = (typeof killPoints)[number];

/** A worker's options at its start, as JSON in its only argument. */
export const workerOptionsSchema = z.object({
  network: networkSchema,
  rpcUrl: z.string(),
  ledger: z.string(),
  relayerKey: bytes32Schema,
  token: addressSchema,
  payTo: addressSchema,
  price: z.string(),
  validitySeconds: z.number(),
  /** The handler appends its process and the path to this file each time that it runs. */
  runsFile: z.string(),
  /** File of the facilitator's log. */
  logFile: z.string(),
});
export type WorkerOptions = z.infer<typeof workerOptionsSchema>;

/** The runner's messages to a worker. */
export const runnerMessageSchema = z.discriminatedUnion("type", [
  /**
   * Die at the n-th pass of this point from now on; replaces an earlier order.
   */
  z.object({ type: z.literal("kill-at"), point: z.enum(killPoints), passes: z.number() }),
  /** The same, but stand still there. */
  z.object({ type: z.literal("freeze-at"), point: z.enum(killPoints), passes: z.number() }),
  /** Forget it. */
  z.object({ type: z.literal("live") }),
  /** Report the ledger's content. */
  z.object({ type: z.literal("list-payments") }),
]);
export type RunnerMessage = z.infer<typeof runnerMessageSchema>;

/** A payment as the ledger knows it. */
export const listedPaymentSchema = z.object({
  payer: addressSchema,
  nonce: bytes32Schema,
  state: z.enum(paymentStates),
  transactionHash: bytes32Schema.optional(),
  reason: z.string().optional(),
  isFinal: z.boolean(),
  isDelivered: z.boolean(),
});
export type ListedPayment = z.infer<typeof listedPaymentSchema>;

/** A worker's messages to the runner. */
export const workerMessageSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("listening"), port: z.number() }),
  z.object({ type: z.literal("payments"), payments: z.array(listedPaymentSchema) }),
  /** A payment was undone by a reorganisation. */
  z.object({ type: z.literal("reorganised"), nonce: bytes32Schema, wasDelivered: z.boolean() }),
  /** A settlement was refused: where it follows the handler, this ran in vain. */
  z.object({ type: z.literal("settlement-refused"), nonce: bytes32Schema }),
]);
export type WorkerMessage = z.infer<typeof workerMessageSchema>;
