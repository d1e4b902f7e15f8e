import { setTimeout as sleep } from "node:timers/promises";
import { channelScheme, type Hex, type PaymentRequirements } from "@coinslot/protocol";
import * as z from "zod";

/** Outcome of a call of the escrow, as the facilitator answered its caller. */
export interface CallOutcome {
  isDone: boolean;
  /** Of its transaction; `undefined` where none was needed. */
  hash: Hex | undefined;
  amount: bigint | undefined;
  /** Reason of a refusal, or of the giving up. */
  reason: string;
  /** Requests that it took. */
  attempts: number;
}

const answerSchema = z.object({
  success: z.boolean(),
  errorReason: z.string().optional(),
  transaction: z.templateLiteral(["0x", z.string()]).or(z.literal("")),
  amount: z.string().optional(),
});
/** Time limit of a caller for an answer. */
const patienceMs = 20_000;
const pauseMs = 200;

/** Asks for one call, again and again, at any process: until it is done, or refused. */
export async function callFacilitator(options: {
  url: () => Promise<string>;
  requirements: PaymentRequirements;
  payload: object;
  /** Ends the repetition. */
  signal: AbortSignal;
}): Promise<CallOutcome> {
  const { url, requirements, payload, signal } = options;
  const accepted = { ...requirements, scheme: channelScheme };
  const body = JSON.stringify(
    {
      x402Version: 2,
      paymentPayload: { x402Version: 2, accepted, payload },
      paymentRequirements: accepted,
    },
    (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value),
  );
  let reason = "was never asked for";
  for (let attempts = 1; ; attempts += 1) {
    const answer = await ask(`${await url()}/settle`, body);
    if ("hash" in answer) return { ...answer, attempts };
    reason = answer.reason;
    if (signal.aborted) {
      return { isDone: false, hash: undefined, amount: undefined, reason, attempts };
    }
    await sleep(pauseMs);
  }
}

/** Sends it once. Without a hash, another attempt may end it. */
async function ask(
  url: string,
  body: string,
): Promise<Omit<CallOutcome, "attempts"> | { reason: string }> {
  const headers = { "Content-Type": "application/json" };
  let read: z.infer<typeof answerSchema>;
  try {
    const signal = AbortSignal.timeout(patienceMs);
    const response = await fetch(url, { method: "POST", headers, body, signal });
    const text = await response.text();
    if (response.status >= 500) return { reason: `${response.status} ${text.slice(0, 80)}` };
    read = answerSchema.parse(JSON.parse(text));
  } catch (error) {
    return { reason: String(error) };
  }
  const { success, errorReason: reason = "", transaction, amount } = read;
  if (reason === "settlement_pending") return { reason };
  return {
    isDone: success,
    hash: transaction === "" ? undefined : transaction,
    amount: amount === undefined ? undefined : BigInt(amount),
    reason,
  };
}
