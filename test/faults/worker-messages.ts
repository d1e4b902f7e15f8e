import { paymentStates } from "@coinslot/facilitator";
import { addressSchema, bytes32Schema, networkSchema } from "@coinslot/protocol";
import * as z from "zod";

/** Places where a worker may be told to kill itself, in the order of a payment's way. */
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
  /** Before anybody looks for its receipt. */
  "broadcast",
  /** With the receipt at hand, before the outcome is written. */
  "included",
  /** Before anybody is told of it. */
  "recorded",
  /** Before the answer goes out. */
  "settled",
] as const;

/** A place where a worker may be told to kill itself. */
export type KillPoint = (typeof killPoints)[number];

/** What a worker is told when it starts, as JSON in its only argument. */
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
  /** Where the facilitator logs. */
  logFile: z.string(),
});
export type WorkerOptions = z.infer<typeof workerOptionsSchema>;

/** What the runner tells a worker. */
export const runnerMessageSchema = z.discriminatedUnion("type", [
  /** Kill yourself when you pass this point for the n-th time from now; replaces an earlier wish. */
  z.object({ type: z.literal("kill-at"), point: z.enum(killPoints), passes: z.number() }),
  /** Forget it. */
  z.object({ type: z.literal("live") }),
  /** Tell what the ledger holds. */
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

/** What a worker tells the runner. */
export const workerMessageSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("listening"), port: z.number() }),
  z.object({ type: z.literal("payments"), payments: z.array(listedPaymentSchema) }),
  /** A payment was taken back by a reorganisation. */
  z.object({ type: z.literal("reorganised"), nonce: bytes32Schema, wasDelivered: z.boolean() }),
]);
export type WorkerMessage = z.infer<typeof workerMessageSchema>;
