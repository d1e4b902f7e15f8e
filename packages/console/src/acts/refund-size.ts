import {
  getPaymentOperation,
  getRefundOperation,
  OperationRefusedError,
  type Operator,
} from "@coinslot/facilitator";
import {
  type Address,
  findKnownChain,
  findKnownToken,
  type Network,
  symbolOf,
} from "@coinslot/protocol";
import * as z from "zod";

/** Size of the refunds that an act sends. */
export interface RefundSize {
  /** In millionths of a token, rounded up. `undefined`: a token of unknown decimals. */
  micros: bigint | undefined;
  /** For the operator: amount, receiver and payment of each. */
  words: string;
}

interface Sum {
  payment: string;
  payer: Address;
  network: Network;
  asset: Address;
  amount: bigint;
}

const amount = z.string().regex(/^\d+$/).transform(BigInt);
const createArgument = z.object({ payment: z.string(), amount: amount.optional() });
const approveArgument = z.object({ id: z.string() });
const importArgument = z.object({ refunds: z.array(z.object({ id: z.string() })) });
/** Refunds of one act that are named to the operator. */
const maxNamed = 5;

/**
 * Size of the refunds that an operation sends with this argument, by the ledger's own rows.
 *
 * @param argument JSON that the operation's schema has passed
 * @returns `undefined` for an operation that sends no refund
 */
export async function sizeOfRefund(
  operator: Operator,
  operation: string,
  argument: unknown,
): Promise<RefundSize | undefined> {
  switch (operation) {
    case "refunds.create": {
      const wanted = createArgument.parse(argument);
      const payment = await operator.run(getPaymentOperation, { id: wanted.payment });
      const sum = wanted.amount ?? payment.value;
      return measure([{ ...payment, payment: payment.id, amount: sum }]);
    }
    case "refunds.approve": {
      const { id } = approveArgument.parse(argument);
      return measure([await operator.run(getRefundOperation, { id })]);
    }
    case "refunds.import":
      return measure(await findRefunds(operator, importArgument.parse(argument).refunds));
    default:
      return undefined;
  }
}

/** The ledger's refunds: the file's own amounts decide nothing, and unknown ones are refused. */
async function findRefunds(operator: Operator, listed: readonly { id: string }[]): Promise<Sum[]> {
  const found: Sum[] = [];
  for (const id of new Set(listed.map((each) => each.id))) {
    try {
      found.push(await operator.run(getRefundOperation, { id }));
    } catch (error) {
      // Any other refusal says nothing of the refund: the act is not measured without it.
      if (!(error instanceof OperationRefusedError) || error.code !== "unknown_refund") throw error;
    }
  }
  return found;
}

function measure(sums: readonly Sum[]): RefundSize {
  const micros = sums.map(toMicros);
  const total = micros.reduce<bigint | undefined>(
    (sum, each) => (sum === undefined || each === undefined ? undefined : sum + each),
    0n,
  );
  const named = sums.slice(0, maxNamed).map(nameOf).join("; ");
  if (sums.length === 1) return { micros: total, words: `a refund ${named}` };
  const more = sums.length > maxNamed ? "; and more" : "";
  const together = total === undefined ? "" : ` of ${toWhole(total, 6)} tokens together`;
  return { micros: total, words: `${sums.length} refunds${together}: ${named}${more}` };
}

function nameOf({ payment, payer, network, asset, amount: units }: Sum): string {
  const token = findKnownToken(network, asset);
  const money =
    token === undefined
      ? `${units} units of the token ${asset}`
      : `${toWhole(units, token.decimals)} ${symbolOf(token)}`;
  const chain = findKnownChain(network)?.name ?? network;
  return `of ${money} on ${chain} to ${payer} for the payment ${payment}`;
}

function toMicros({ network, asset, amount: units }: Sum): bigint | undefined {
  const token = findKnownToken(network, asset);
  if (token === undefined) return undefined;
  const unit = 10n ** BigInt(token.decimals);
  return (units * 1_000_000n + unit - 1n) / unit;
}

/** Whole tokens, such as "0.001". */
function toWhole(units: bigint, decimals: number): string {
  const digits = String(units).padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return fraction === "" ? whole : `${whole}.${fraction}`;
}
