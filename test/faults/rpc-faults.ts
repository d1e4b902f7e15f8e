import { setTimeout as sleep } from "node:timers/promises";
import { answerLagging } from "./lagging-node.ts";
import type { RpcExchange } from "./rpc-exchange.ts";
import type { Random } from "./seeded-random.ts";

/** The possible faults of the answer to one HTTP request. */
export type RpcFault = (exchange: RpcExchange, random: Random) => Promise<void>;

/** The answer of a healthy server. */
export async function answerHonestly(exchange: RpcExchange): Promise<void> {
  exchange.reply(exchange.format(await exchange.forward()));
}

/** Most blocks by which a node lags. */
const maxLag = 3;
const html = "<html><head><title>Bad gateway</title></head><body>nginx</body></html>";

/**
 * Every fault by its name. Those that fail after a request may or may not have forwarded it to the
 * node. A client cannot distinguish them, and must be right in both cases.
 */
export const rpcFaults = {
  /** The answer is late. */
  async delayed(exchange, random) {
    await sleep(random.between(50, 2_500));
    await answerHonestly(exchange);
  },
  /** The request never arrives. */
  async dropped(exchange) {
    exchange.hangUp();
  },
  /** The node executes the request, and its answer is lost. */
  async answerLost(exchange) {
    await exchange.forward();
    exchange.hangUp();
  },
  /** The request arrives twice; the answer is that of the second. */
  async duplicated(exchange) {
    await exchange.forward();
    await answerHonestly(exchange);
  },
  /** A gateway times out, perhaps too early. */
  async serverError(exchange, random) {
    await perhapsForward(exchange, random);
    exchange.reply("upstream", { status: random.pick([500, 502, 503, 504]) });
  },
  /** Too many requests. */
  async rateLimited(exchange, random) {
    const headers: Record<string, string> = random.chance(0.5) ? { "retry-after": "1" } : {};
    exchange.reply("slow down", { status: 429, headers });
  },
  /** The body ends in the middle. */
  async truncated(exchange, random) {
    const body = exchange.format(await exchange.forward());
    exchange.reply(body.slice(0, random.between(1, body.length - 1)));
  },
  /** The answer to another client's request. */
  async wrongId(exchange) {
    const answers = await exchange.forward();
    exchange.reply(exchange.format(answers.map((answer) => ({ ...answer, id: 1_000_000_007 }))));
  },
  /** A page for people, with status 200. */
  async page(exchange, random) {
    await perhapsForward(exchange, random);
    exchange.reply(html, { headers: { "content-type": "text/html" } });
  },
  /** The node is some blocks behind, silently. */
  async lagging(exchange, random) {
    exchange.reply(exchange.format(await answerLagging(exchange, random.between(1, maxLag))));
  },
  /** Receipts that exist are not found. */
  async receiptsMissing(exchange) {
    const asked = new Set(
      exchange.calls
        .filter(({ method }) => method === "eth_getTransactionReceipt")
        .map(({ id }) => id),
    );
    const answers = await exchange.forward();
    exchange.reply(
      exchange.format(
        answers.map((answer) => (asked.has(answer.id) ? { ...answer, result: null } : answer)),
      ),
    );
  },
} satisfies Record<string, RpcFault>;

/** The name of a fault. */
export type RpcFaultName = keyof typeof rpcFaults;

const always = [
  "delayed",
  "dropped",
  "answerLost",
  "duplicated",
  "serverError",
  "rateLimited",
  "truncated",
  "wrongId",
  "page",
] as const satisfies readonly RpcFaultName[];

/** Chooses a fault that makes a difference to these calls. */
export function chooseFault({ calls }: RpcExchange, random: Random): RpcFaultName {
  const asks = (method: string) => calls.some((call) => call.method === method);
  if (asks("eth_getTransactionReceipt") && random.chance(0.25)) return "receiptsMissing";
  if (!asks("eth_sendRawTransaction") && random.chance(0.25)) return "lagging";
  return random.pick(always);
}

async function perhapsForward(exchange: RpcExchange, random: Random): Promise<void> {
  if (random.chance(0.5)) await exchange.forward();
}
