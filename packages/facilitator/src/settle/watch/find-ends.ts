import {
  type BlockHeader,
  blockByNumber,
  blockHeaderSchema,
  isRevert,
  RpcEndpointError,
  type RpcEndpointHandle,
  RpcUnavailableError,
} from "@coinslot/chain";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import { schemeOf } from "../../schemes/registry.ts";
import type { Execution } from "../../schemes/scheme.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { stateCall, wordOf } from "../evidence/authorization-states.ts";
import {
  firstBlockOf,
  isNodesFault,
  maxSearchedBlocks,
  searchBlocks,
} from "../evidence/find-executions.ts";
import { isStuck } from "../evidence/is-stuck.ts";
import type { LateLogs } from "../evidence/late-logs.ts";
import { isAwaited, noteAnswer, type Subjects } from "../evidence/silences.ts";
import { withSignal } from "../evidence/with-signal.ts";

/** The part of the watch over blocks that these questions need. */
interface EndsWatch {
  context: Pick<SettlementContext, "clock" | "logger"> & {
    ledger: Pick<SettlementContext["ledger"], "now">;
  };
  network: Pick<SettlementNetwork, "network" | "rpc" | "finalAfter">;
  closingLogs: LateLogs;
  /** Ends the questions, by its reason. */
  stopping: AbortSignal;
}

/**
 * Word of an endpoint about a payment: executed; `over`, no sender can execute it any more;
 * `denied`, the same, and none has, for it is unused, or its nonce was used otherwise; `open`, one
 * may, or the endpoint may still say something else. `undefined`: it has no say.
 */
type Word = Extract<Execution, { outcome: "executed" }> | "over" | "denied" | "open" | undefined;
type Words = ReadonlyMap<OrderedPayment, Word>;
/** The word of an endpoint that returns an error. */
type Silence = (subjects: Subjects, error: unknown) => Word;

/** Time of one endpoint. 100 ranges of logs take 15 minutes, with nine seconds for each. */
const maxEndsMs = 1_200_000;

/** Ends of failed payments. */
export interface Ends {
  /** Executed, by the logs of an endpoint that two others do not, and will not, contradict. */
  found: Map<OrderedPayment, Execution>;
  /** Over at each endpoint that has a say. */
  over: OrderedPayment[];
}

/**
 * Asks each endpoint for the ends of failed payments. A payment whose watch has ended is searched
 * no more, so one node's word does not end it. An endpoint that does not answer holds that
 * up. So does one that is behind the end of the payment's time: ten minutes at most.
 *
 * An execution that one endpoint shows counts against a single other. It does not against two that
 * deny it. One that may still be the second is waited for.
 */
export async function findEnds(
  watch: EndsWatch,
  payments: readonly OrderedPayment[],
): Promise<Ends> {
  const { context, network } = watch;
  const views = await Promise.all(
    network.rpc.endpoints.map((endpoint) =>
      withinTime(watch, endpoint, (limited) => readView(watch, { endpoint, limited }, payments)),
    ),
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
    const denied = words.filter((word) => word === "denied").length;
    const isOver = denied > 0 || words.includes("over");
    const isOpen = words.includes("open");
    if (execution === undefined) {
      if (isOver && !isOpen) ends.over.push(payment);
    } else if (denied === 0 || (denied === 1 && !isOpen)) ends.found.set(payment, execution);
  }
  return ends;
}

/** The words of an endpoint, by states and logs up to its own head. */
async function readView(
  watch: EndsWatch,
  { endpoint, limited }: { endpoint: RpcEndpointHandle; limited: RpcEndpointHandle },
  payments: readonly OrderedPayment[],
): Promise<{ head?: BlockHeader; words: Words }> {
  const { context, network } = watch;
  const silence: Silence = (subjects, error) =>
    isAwaited(context, { network, endpoint, subjects, error }) ? "open" : undefined;
  let head: BlockHeader;
  try {
    head = blockHeaderSchema.parse(await limited.request(blockByNumber("latest")));
  } catch (error) {
    const word = silence(["head"], error);
    return { words: new Map(payments.map((payment) => [payment, word])) };
  }
  noteAnswer(endpoint, ["head"]);
  const block = `0x${head.number.toString(16)}`;
  const calls = payments.map(({ payment }) => stateCall(payment, block));
  const answers = await limited.requestMany(calls, { minBlock: head.number });
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
    else words.set(each, validBefore <= head.timestamp ? "denied" : "open");
  }
  if (used.length === 0) return { head, words };
  const wordsOfUsed = await readUsed(watch, { endpoint, limited, head, used, silence });
  return { head, words: new Map([...words, ...wordsOfUsed]) };
}

interface UsedOptions {
  /** The pool's, by which silences are counted. */
  endpoint: RpcEndpointHandle;
  limited: RpcEndpointHandle;
  head: BlockHeader;
  used: readonly OrderedPayment[];
  silence: Silence;
}

/** A used one that no log explains has been used without an event, or its logs are late. */
async function readUsed(
  { network: { finalAfter }, closingLogs }: EndsWatch,
  options: UsedOptions,
): Promise<Words> {
  const { endpoint, limited: rpc, head, used, silence } = options;
  const depth = BigInt(finalAfter);
  const subjectsOf = ({ payment }: OrderedPayment) => ["logs", `logs ${payment.id}`];
  const since = (payment: OrderedPayment) => max(0n, firstBlockOf(payment, head.number) - depth);
  const search = { rpc, payments: used, toBlock: head.number };
  let executions: ReadonlyMap<OrderedPayment, Execution>;
  try {
    executions = await searchBlocks(search, since);
  } catch (error) {
    return new Map(used.map((each) => [each, silence(subjectsOf(each), error)]));
  }
  const unexplained = used.filter((each) => !executions.has(each));
  // Asked once: a search of older blocks takes longer than logs are late.
  const late = new Set(unexplained.filter(({ payment }) => closingLogs.mayCome(payment.id)));
  // The block at whose end it was unused is one node's word: it may be above the execution.
  const oldest = max(0n, head.number - maxSearchedBlocks);
  const older = await findOlder(
    { ...options, used: unexplained.filter((each) => !late.has(each) && since(each) > oldest) },
    oldest,
  );
  const words = new Map<OrderedPayment, Word>();
  for (const each of used) {
    const execution = executions.get(each) ?? older.get(each);
    const fault =
      execution !== "open" && execution?.outcome === "unknown" ? execution.fault : undefined;
    if (execution === "open" || fault !== undefined) {
      words.set(each, fault === undefined ? "open" : silence(subjectsOf(each), fault));
      continue;
    }
    noteAnswer(endpoint, subjectsOf(each));
    if (execution?.outcome === "executed") words.set(each, execution);
    else if (execution?.outcome === "spent") {
      words.set(each, execution.blockNumber + depth <= head.number ? "denied" : "open");
    } else words.set(each, late.has(each) ? "open" : "over");
  }
  return words;
}

/**
 * Executions by older logs. Those that a node has pruned, or limits, decide nothing. Nor do those
 * about which it was silent for ten minutes: the newer ones then decide.
 */
async function findOlder(
  { endpoint, limited: rpc, head, used, silence }: UsedOptions,
  oldest: bigint,
): Promise<ReadonlyMap<OrderedPayment, Execution | "open">> {
  if (used.length === 0) return new Map();
  let found: Map<OrderedPayment, Execution>;
  try {
    found = await searchBlocks({ rpc, payments: used, toBlock: head.number }, () => oldest);
  } catch (fault) {
    if (!isNodesFault(fault)) throw fault;
    const unsearched = { outcome: "unknown", fault, isUnsearched: true } as const;
    found = new Map(used.map((each) => [each, unsearched]));
  }
  const words = new Map<OrderedPayment, Execution | "open">(found);
  for (const each of used) {
    const subjects = ["old logs", `old logs ${each.payment.id}`];
    const execution = found.get(each);
    const isUnsearched = execution?.outcome === "unknown" && execution.isUnsearched === true;
    const fault = isUnsearched ? execution.fault : undefined;
    if (!(fault instanceof RpcUnavailableError)) {
      noteAnswer(endpoint, subjects);
      if (isUnsearched) words.delete(each);
    } else if (silence(subjects, fault) === "open") words.set(each, "open");
    else words.delete(each);
  }
  return words;
}

/**
 * Ends all requests to an endpoint when the watch stops, or their time is over: then as one that
 * timed out.
 */
async function withinTime<T>(
  { context, stopping }: EndsWatch,
  endpoint: RpcEndpointHandle,
  read: (limited: RpcEndpointHandle) => Promise<T>,
): Promise<T> {
  const ending = new AbortController();
  const { signal } = ending;
  const stop = () => ending.abort(stopping.reason);
  if (stopping.aborted) stop();
  stopping.addEventListener("abort", stop, { once: true });
  const cancel = context.clock.setTimer(() => ending.abort(tooSlow(endpoint)), maxEndsMs);
  const ended = withSignal(endpoint, signal);
  const limited: RpcEndpointHandle = {
    ...ended,
    async requestMany(calls, options) {
      try {
        return await ended.requestMany(calls, options);
      } catch (error) {
        if (!(error instanceof RpcUnavailableError)) throw error;
        return calls.map(() => ({ ok: false, error, failures: [] }));
      }
    },
  };
  try {
    return await read(limited);
  } finally {
    cancel();
    stopping.removeEventListener("abort", stop);
  }
}

function tooSlow({ endpoint: number, chainId }: RpcEndpointHandle): RpcUnavailableError {
  const details = `it has not answered all calls in ${maxEndsMs} ms`;
  const name = { number, label: `endpoint ${number}` };
  const failures = [new RpcEndpointError({ name, kind: "timeout", details, maybeSent: true })];
  return new RpcUnavailableError({ chainId, subject: "all calls", failures, retryAfterMs: 0 });
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
