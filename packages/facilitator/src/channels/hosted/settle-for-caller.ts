import {
  type Address,
  type ChannelCallAnswer,
  type ChannelOperation,
  channelSettlementAbi,
  type Hex,
} from "@coinslot/protocol";
import { decodeFunctionResult, encodeFunctionData } from "viem";
import * as z from "zod";
import { topicOf } from "../../evm/topic-of.ts";
import { hexWord } from "../../evm/word.ts";
import { type CallerCall, findLastCall, readCall } from "../../ledger/channels/caller-calls.ts";
import { tryAtEach } from "../../settle/evidence/try-at-each.ts";
import { withoutLagging } from "../../settle/evidence/without-lagging.ts";
import { settleGas } from "../claims/settle-receivers.ts";
import { byEvent, type Evidence, followCall } from "./follow-call.ts";
import type { HostedContext, HostedNetwork, Permit } from "./hosted-context.ts";
import { readHead } from "./read-channel.ts";
import { callIdOf, requireGas, sendCall } from "./send-call.ts";
import { withTrial } from "./with-trial.ts";

type Settle = Extract<ChannelOperation, { type: "settle" }>;

const abi = channelSettlementAbi;
const settledTopic = topicOf("Settled(address,address,address,uint128)");
const hexSchema = z.templateLiteral(["0x", z.string().regex(/^(?:[0-9a-fA-F]{2})+$/)]);
/**
 * A caller that has lost an answer asks again within this time. One node's word that nothing is
 * left suffices for as long.
 */
const repeatMs = 600_000;

/**
 * Sends all that was claimed to a caller's receiver. It has no nonce: one settle of a receiver in a
 * token is under way at a time, and a request meanwhile follows it. Right after one, with nothing
 * more to send, a repeated request has its answer.
 *
 * @throws FacilitatorError, CallerLimitedError, RpcError, ZodError, DatabaseError
 */
export async function settleForCaller(
  hosted: HostedContext,
  permitted: Permit,
  { receiver, token }: Settle,
): Promise<ChannelCallAnswer> {
  const { network } = permitted;
  const subject = `settle/${receiver}/${token}`;
  const begun = await hosted.turns.run(`${network.escrow.place.network}/${subject}`, () =>
    begin(hosted, permitted, { receiver, token, subject }),
  );
  if ("state" in begun) return begun;
  const key = { ...network.escrow.place, id: begun.id };
  const evidence = evidenceOf(network, { receiver, token }, begun.value);
  return answerOf(await followCall(hosted, permitted, key, evidence));
}

async function begin(
  hosted: HostedContext,
  permitted: Permit,
  { receiver, token, subject }: { receiver: Address; token: Address; subject: string },
): Promise<ChannelCallAnswer | { id: Hex; value: bigint }> {
  const { network, caller } = permitted;
  const { context, place, metrics } = network.escrow;
  const last = await findLastCall(context.ledger, { ...place, subject });
  const asked = { receiver, token };
  const seen = await readReceiver(network, asked);
  if (last?.state === "sent") return { id: last.id, value: owedOf(seen) };
  const isRecent = last && Math.abs(context.ledger.now() - last.createdAt) < repeatMs;
  const isDoubtful = owedOf(seen) === 0n && !isRecent;
  const sums = (isDoubtful ? await readOwing(network, asked) : undefined) ?? seen;
  const value = owedOf(sums);
  if (value === 0n) {
    if (isRecent && last.state === "done") return answerOf(last);
    const reason = "invalid_batch_settlement_evm_nothing_to_settle";
    return { state: "refused", reason, message: "Nothing to settle for receiver and token" };
  }
  const data = encodeFunctionData({ abi, functionName: "settle", args: [receiver, token] });
  await requireGas(hosted, permitted, { data, gas: settleGas, isByBuyer: false });
  const isGood = await withTrial({ ...hosted, caller }, async () => {
    const result = await passes(network, data);
    return { isVain: !result, result };
  });
  if (!isGood) {
    metrics.callerCalls.inc({ network: place.network, kind: "settle", outcome: "refused" });
    return { state: "refused", reason: "invalid_batch_settlement_evm_settle_simulation_failed" };
  }
  const id = callIdOf("settle", [receiver, token, sums.settled]);
  const known = await readCall(context.ledger, { ...place, id });
  await sendCall(hosted, permitted, {
    id,
    kind: "settle",
    subject,
    data,
    gas: settleGas,
    isUrgent: false,
    replaces: known?.transactionId,
  });
  return { id, value };
}

/** Claimed and settled of a receiver. */
interface Sums {
  claimed: bigint;
  settled: bigint;
}

function owedOf({ claimed, settled }: Sums): bigint {
  return claimed > settled ? claimed - settled : 0n;
}

/** Sums of a receiver at the head. */
async function readReceiver(
  network: HostedNetwork,
  asked: Pick<Settle, "receiver" | "token">,
): Promise<Sums> {
  const { settlement, place } = network.escrow;
  const block = await readHead(network);
  const answer = await settlement.network.rpc.request(
    callOf(place.contract, asked, { blockHash: block.hash }),
    { minBlock: BigInt(block.number) },
  );
  return parseSums(answer);
}

/**
 * Sums of a receiver by the first endpoint that shows money to send; `undefined` where none does.
 * So no node hides money alone. One that makes some up costs a settle each ten minutes at most.
 */
async function readOwing(
  { escrow: { settlement, place } }: HostedNetwork,
  asked: Pick<Settle, "receiver" | "token">,
): Promise<Sums | undefined> {
  const endpoints = withoutLagging(settlement.network.rpc);
  if (endpoints.length < 2) return undefined;
  const call = callOf(place.contract, asked, "latest");
  const all = await Promise.allSettled(
    endpoints.map(async (endpoint) => parseSums(await endpoint.request(call))),
  );
  return all
    .flatMap((each) => (each.status === "fulfilled" ? [each.value] : []))
    .find((sums) => owedOf(sums) > 0n);
}

function callOf(
  to: Address,
  { receiver, token }: Pick<Settle, "receiver" | "token">,
  at: { blockHash: Hex } | "latest",
) {
  const data = encodeFunctionData({ abi, functionName: "receivers", args: [receiver, token] });
  return { method: "eth_call", params: [{ to, data }, at] };
}

function parseSums(answer: unknown): Sums {
  const [claimed, settled] = decodeFunctionResult({
    abi,
    functionName: "receivers",
    data: hexSchema.parse(answer),
  });
  return { claimed, settled };
}

/** Whether a settle passes its trial at one endpoint at least. */
async function passes({ escrow }: HostedNetwork, data: Hex): Promise<boolean> {
  const { settlement, place } = escrow;
  const call = { method: "eth_call", params: [{ to: place.contract, data }, "latest"] };
  return (await tryAtEach(settlement, call, ["settles"])) === "passes";
}

/** The event of our transaction. Without it, another one has sent the money before. */
function evidenceOf(
  { escrow: { place } }: HostedNetwork,
  { receiver, token }: { receiver: Address; token: Address },
  value: bigint,
): Evidence {
  return byEvent(
    value,
    ({ address, topics }) =>
      address === place.contract &&
      topics[0] === settledTopic &&
      topics[1] === `0x${hexWord(receiver)}` &&
      topics[2] === `0x${hexWord(token)}`,
  );
}

function answerOf(call: CallerCall | undefined): ChannelCallAnswer {
  const transaction = call?.hash;
  if (call === undefined || call.state === "sent") return { state: "pending", transaction };
  if (call.state === "done") return { state: "done", transaction, amount: call.amount };
  const reason = "invalid_batch_settlement_evm_settle_transaction_failed";
  return { state: "refused", reason, transaction };
}
