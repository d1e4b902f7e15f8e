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

/** Fault points of a worker on the way of a refund. */
export const refundPoints = [
  /** Before the signed refund is stored. */
  "refund_signed",
  /** Before its transaction is planned. */
  "refund_queued",
] as const;

/** Fault points on the way of a deposit. */
export const depositPoints = ["deposit_queued", "deposit_recorded"] as const;

/** Fault points of a worker that sells by channels, in the order of a request's way. */
export const channelPoints = [
  /** With the channel, before the handler. */
  "channel_admitted",
  /** After the charge, before the answer. */
  "channel_charged",
  /** After a charge that was made in advance has been lowered. */
  "channel_lowered",
] as const;

const allPoints = [...killPoints, ...refundPoints, ...depositPoints, ...channelPoints] as const;

/** A fault point of a worker. */
export type KillPoint = (typeof allPoints)[number];

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
  /** Key of the account that pays refunds. */
  floatKey: bytes32Schema.optional(),
  /** A seller by channels, which sells by nothing else. */
  channels: z
    .object({
      authorizerKey: bytes32Schema,
      withdrawDelay: z.number(),
      mostAtRisk: z.string(),
      claimCost: z.string(),
      claimAfterSeconds: z.number(),
      serveAfter: z.number(),
      finalAfter: z.number(),
    })
    .optional(),
  /** Secrets of challenges: the first makes, all prove. Default: the ledger's. */
  challengeSecrets: z.tuple([z.string()], z.string()).optional(),
  /** Receiver of webhooks. */
  webhook: z.object({ url: z.string(), secret: z.string() }).optional(),
});
export type WorkerOptions = z.infer<typeof workerOptionsSchema>;

/** The runner's messages to a worker. */
export const runnerMessageSchema = z.discriminatedUnion("type", [
  /**
   * Die at the n-th pass of this point from now on; replaces an earlier order.
   */
  z.object({ type: z.literal("kill-at"), point: z.enum(allPoints), passes: z.number() }),
  /** The same, but stand still there. */
  z.object({ type: z.literal("freeze-at"), point: z.enum(allPoints), passes: z.number() }),
  /** Forget it. */
  z.object({ type: z.literal("live") }),
  /** Report the ledger's content. */
  z.object({ type: z.literal("list-payments") }),
]);
export type RunnerMessage = z.infer<typeof runnerMessageSchema>;

/** A payment as the ledger knows it. */
export const listedPaymentSchema = z.object({
  id: z.string(),
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
