import {
  type BlockHeader,
  blockByNumber,
  blockHeaderSchema,
  isRevert,
  type RpcEndpointHandle,
  RpcError,
  RpcUnavailableError,
} from "@coinslot/chain";
import * as z from "zod";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import { schemeOf } from "../../schemes/registry.ts";
import type { Execution } from "../../schemes/scheme.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { stateCall, wordOf } from "../evidence/authorization-states.ts";
import { findExecutions, firstBlockOf, maxSearchedBlocks } from "../evidence/find-executions.ts";
import { isStuck } from "../evidence/is-stuck.ts";
import type { LateLogs } from "../evidence/late-logs.ts";
import { isAwaited, noteAnswer, type Subjects } from "../evidence/silences.ts";

/** The part of the watch over blocks that these questions need. */
interface EndsWatch {
  context: Pick<SettlementContext, "clock" | "logger"> & {
    ledger: Pick<SettlementContext["ledger"], "now">;
  };
  network: Pick<SettlementNetwork, "network" | "rpc" | "finalAfter">;
  closingLogs: LateLogs;
}

/**
 * Word of an endpoint about a payment: executed; `over`, no sender can execute it any more; `open`,
 * one may, or the endpoint may still say something else. `undefined`: it has no say.
 */
type Word = Extract<Execution, { outcome: "executed" }> | "over" | "open" | undefined;
type Words = ReadonlyMap<OrderedPayment, Word>;
/** The word of an endpoint that returns an error. */
type Silence = (subjects: Subjects, error: unknown) => Word;

/** Ends of failed payments. */
export interface Ends {
  /** Executed, by the logs of an endpoint. */
  found: Map<OrderedPayment, Execution>;
  /** Over at each endpoint that has a say. */
  over: OrderedPayment[];
}

/**
 * Asks each endpoint for the ends of failed payments. A payment whose watch has ended is searched
 * no more, so one node's word does not end it. An endpoint that does not answer holds that
 * up. So does one that is behind the end of the payment's time: ten minutes at most.
 */
export async function findEnds(
  watch: EndsWatch,
  payments: readonly OrderedPayment[],
): Promise<Ends> {
  const { context, network } = watch;
  const views = await Promise.all(
    network.rpc.endpoints.map((endpoint) => readView(watch, endpoint, payments)),
  );
  const heads = views.flatMap(({ head }) => head ?? []);
  const now = context.ledger.now();
  const ends: Ends = { found: new Map(), over: [] };
  for (const payment of payments) {
    const words = views.map(({ head, words }) => {
      const word = words.get(payment);
      return word === "open" && head && isStuck(head, heads, now) ? undefined : word;
    });
    const execution = words.find((word) => typeof word === "object");
    if (execution) ends.found.set(payment, execution);
    else if (words.includes("over") && !words.includes("open")) ends.over.push(payment);
  }
  return ends;
}

/** The words of an endpoint, by states and logs up to its own head. */
async function readView(
  watch: EndsWatch,
  endpoint: RpcEndpointHandle,
  payments: readonly OrderedPayment[],
): Promise<{ head?: BlockHeader; words: Words }> {
  const { context, network } = watch;
  const silence: Silence = (subjects, error) =>
    isAwaited(context, { network, endpoint, subjects, error }) ? "open" : undefined;
  let head: BlockHeader;
  try {
    head = blockHeaderSchema.parse(await endpoint.request(blockByNumber("latest")));
  } catch (error) {
    const word = silence(["head"], error);
    return { words: new Map(payments.map((payment) => [payment, word])) };
  }
  noteAnswer(endpoint, ["head"]);
  const block = `0x${head.number.toString(16)}`;
  const calls = payments.map(({ payment }) => stateCall(payment, block));
  const answers = await endpoint.requestMany(calls, { minBlock: head.number });
  const words = new Map<OrderedPayment, Word>();
  const used: OrderedPayment[] = [];
  for (const [index, each] of payments.entries()) {
    const { id, kind, authorization, validBefore } = each.payment;
    const subjects = ["state", `state ${id}`];
    const answer = answers[index];
    if (answer?.ok === false && !isRevert(answer.error)) {
      words.set(each, silence(subjects, answer.error));
      continue;
    }
    noteAnswer(endpoint, subjects);
    const word = wordOf(answer);
    const isUnused = word !== undefined && schemeOf({ kind }).isUsed(authorization, word) === false;
    // A token that does not answer may have used it.
    if (!isUnused) used.push(each);
    else words.set(each, validBefore <= head.timestamp ? "over" : "open");
  }
  if (used.length === 0) return { head, words };
  const wordsOfUsed = await readUsed(watch, { endpoint, head, used, silence });
  return { head, words: new Map([...words, ...wordsOfUsed]) };
}

/** A used one that no log explains has been used without an event, or its logs are late. */
async function readUsed(
  { network: { finalAfter }, closingLogs }: EndsWatch,
  options: {
    endpoint: RpcEndpointHandle;
    head: BlockHeader;
    used: readonly OrderedPayment[];
    silence: Silence;
  },
): Promise<Words> {
  const { endpoint, head, used, silence } = options;
  const depth = BigInt(finalAfter);
  const subjectsOf = ({ payment }: OrderedPayment) => ["logs", `logs ${payment.id}`];
  const since = (payment: OrderedPayment) => max(0n, firstBlockOf(payment, head.number) - depth);
  const search = { rpc: endpoint, toBlock: head.number, finalAfter };
  let executions: ReadonlyMap<OrderedPayment, Execution>;
  try {
    executions = await findExecutions({ ...search, payments: used, fromBlock: since });
  } catch (error) {
    return new Map(used.map((each) => [each, silence(subjectsOf(each), error)]));
  }
  // The block at whose end it was unused is one node's word: it may be above the execution.
  const payments = used.filter(
    (each) => !executions.has(each) && !closingLogs.mayCome(each.payment.id),
  );
  if (payments.length > 0) {
    const fromBlock = () => max(0n, head.number - maxSearchedBlocks);
    try {
      const others = await findExecutions({ ...search, payments, fromBlock });
      executions = new Map([...executions, ...others]);
    } catch (error) {
      // Older logs that a node has pruned, or limits, decide nothing.
      if (!(error instanceof RpcError || error instanceof z.ZodError)) throw error;
      if (error instanceof RpcUnavailableError) {
        const fault = { outcome: "unknown", fault: error } as const;
        executions = new Map([...executions, ...payments.map((each) => [each, fault] as const)]);
      }
    }
  }
  const words = new Map<OrderedPayment, Word>();
  for (const each of used) {
    const execution = executions.get(each);
    const fault = execution?.outcome === "unknown" ? execution.fault : undefined;
    if (fault !== undefined) {
      words.set(each, silence(subjectsOf(each), fault));
      continue;
    }
    noteAnswer(endpoint, subjectsOf(each));
    if (execution?.outcome === "executed") words.set(each, execution);
    else if (execution?.outcome === "spent") {
      words.set(each, execution.blockNumber + depth <= head.number ? "over" : "open");
    } else words.set(each, closingLogs.mayCome(each.payment.id) ? "open" : "over");
  }
  return words;
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
