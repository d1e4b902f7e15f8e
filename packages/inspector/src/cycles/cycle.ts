import * as z from "zod";

/** The protocols of a cycle. */
export const wireNames = ["x402 v1", "x402 v2", "MPP"] as const;
export type Wire = (typeof wireNames)[number];

/** An answer's body may have terms as long as itself, and a finding quotes two of them. */
const text = z.string().max(1_000_000);
const wire = z.enum(wireNames);
const count = z.int().min(0);

const headerSchema = z.tuple([text, text]);

/** A body as it was recorded: its text up to a bound. Bytes that are no text are counted alone. */
const bodySchema = z.object({
  bytes: count,
  text: z.string().max(300_000).optional(),
  /** True if `text` is all of it. */
  isWhole: z.boolean(),
});
export type RecordedBody = z.infer<typeof bodySchema>;

/** A header that speaks of payment, decoded; or the reason why it cannot be. */
const decodedHeaderSchema = z.object({
  header: text,
  side: z.enum(["request", "answer"]),
  wire,
  value: z.json().optional(),
  fault: text.optional(),
});
export type DecodedHeader = z.infer<typeof decodedHeaderSchema>;

const domainSchema = z.object({ name: text, version: text });

/** One way to pay of an offer. Amounts are decimal strings in the smallest unit. */
const waySchema = z.object({
  wire,
  scheme: text,
  network: text,
  asset: text,
  payTo: text,
  amount: text,
  /** The amount for people, such as `0.001 USDT0`. */
  price: text,
  maxTimeoutSeconds: z.number().optional(),
  domain: domainSchema.optional(),
  /** Of a challenge. */
  challenge: z
    .object({
      id: text,
      realm: text,
      expires: text.optional(),
      /** Hash of the members that a credential repeats. */
      seal: text.optional(),
    })
    .optional(),
});
export type OfferedWay = z.infer<typeof waySchema>;

/** A member of the offer beside the same member of the payment. */
const comparisonSchema = z.object({
  /** The check that this member decides, such as `amount`. */
  check: text,
  member: text,
  offered: text,
  presented: text,
  verdict: z.enum(["same", "differs", "unknown"]),
  /** The consequence of a difference, in words. */
  note: text.optional(),
});
export type Comparison = z.infer<typeof comparisonSchema>;

const authorizationSchema = z.object({
  from: text,
  to: text,
  value: text,
  validAfter: text,
  validBefore: text,
  nonce: text,
});

/** The EIP-712 domain under which a signature recovers to its payer. */
const signedUnderSchema = z.object({
  name: text,
  version: text,
  chainId: z.number(),
  verifyingContract: text,
  primaryType: z.enum(["TransferWithAuthorization", "ReceiveWithAuthorization"]),
  /** Absent for 65 bytes with a low `s`. */
  form: z.enum(["compact", "high s"]).optional(),
});
export type SignedUnder = z.infer<typeof signedUnderSchema>;

const paymentSchema = z.object({
  wire,
  authorization: authorizationSchema.optional(),
  network: text.optional(),
  asset: text.optional(),
  price: text.optional(),
  /** The way that comes closest. */
  way: waySchema.optional(),
  comparisons: z.array(comparisonSchema).max(64),
  /** The first check that failed. */
  failed: z.object({ check: text, says: text }).optional(),
  signedUnder: signedUnderSchema.optional(),
  /** True if the same authorization came before. */
  isRepeated: z.boolean(),
});
export type ShownPayment = z.infer<typeof paymentSchema>;

/** The receipt of an answer, in the wire that paid. */
const receiptSchema = z.object({
  wire,
  success: z.boolean(),
  transaction: text.optional(),
  network: text.optional(),
  reason: text.optional(),
});
export type ShownReceipt = z.infer<typeof receiptSchema>;

/** An exchange of a cycle: a request and its answer. Times are unix milliseconds. */
const legSchema = z.object({
  number: count,
  request: z.object({
    method: text,
    target: text,
    headers: z.array(headerSchema),
    body: bodySchema,
  }),
  answer: z
    .object({
      status: z.int(),
      statusText: text,
      headers: z.array(headerSchema),
      body: bodySchema,
    })
    .optional(),
  decoded: z.array(decodedHeaderSchema).max(64),
  /** The ways to pay of a 402. */
  ways: z.array(waySchema).max(128),
  payment: paymentSchema.optional(),
  receipt: receiptSchema.optional(),
  /** Reason of the seller for its refusal. */
  refusal: z.object({ reason: text, says: text.optional() }).optional(),
  /** A label of the idempotency key; equal keys have one label. */
  key: text.optional(),
  startedAt: z.number(),
  answeredAt: z.number().optional(),
  endedAt: z.number().optional(),
  end: z.enum(["answered", "buyer left", "seller broke off", "unreachable"]).optional(),
});
export type Leg = z.infer<typeof legSchema>;

/** Findings of the chain about a receipt's transaction. */
const onChainSchema = z.object({
  transaction: text,
  status: z.enum(["success", "reverted", "not found", "other chain"]),
  gasUsed: text.optional(),
  /** In the smallest unit of the native coin. */
  fee: text.optional(),
  block: text.optional(),
  /** Time of the node's answers. */
  tookMs: z.number(),
});
export type OnChain = z.infer<typeof onChainSchema>;

/** The exchanges about one purchase, from the offer to the receipt. */
export const cycleSchema = z.object({
  id: count,
  method: text,
  target: text,
  startedAt: z.number(),
  legs: z.array(legSchema).max(64),
  /** Further legs, which were not kept. */
  droppedLegs: count,
  chain: onChainSchema.optional(),
});
export type Cycle = z.infer<typeof cycleSchema>;
