import {
  type BlockHeader,
  blockByNumber,
  parseBlockHeader,
  type RpcEndpointHandle,
  RpcError,
  type RpcPool,
  RpcUnavailableError,
} from "@coinslot/chain";
import * as z from "zod";
import { isStuck } from "../settle/evidence/is-stuck.ts";

/** Nodes of a chain, and the clock by which their heads are old. */
export interface Electorate {
  rpc: Pick<RpcPool, "endpoints">;
  /** Unix milliseconds. */
  now: () => number;
}

/** Decision of the endpoints: all the same, not all the same, or some have not come to it. */
export type Vote = "confirmed" | "denied" | "disputed" | "undecided";

/**
 * Word of one endpoint about a fact of the chain. `behind`: its chain has not come to the block.
 * `undefined`: it has no say, since it lacks the data.
 */
type Word = boolean | "behind" | undefined;

/** Wait for an endpoint that does not answer. */
const maxSilenceMs = 600_000;
/** The first and the last vote in a row without an answer of an endpoint, in Unix milliseconds. */
const silences = new WeakMap<RpcEndpointHandle, { since: number; at: number }>();

/**
 * Confirmed if each endpoint that has a say confirms a fact of the chain, and at least one does.
 * What gives money away is not decided by one node's word. An endpoint that lacks the data, or
 * returns malformed data, has no say.
 *
 * Nothing is decided while an endpoint is behind: blocks above its head may be made up by another.
 * Nor while one does not answer: it may rest for a moment. One that is stuck, or silent, for ten
 * minutes holds up nothing.
 */
export async function askEach(
  { rpc: { endpoints }, now }: Electorate,
  ask: (endpoint: RpcEndpointHandle, head: BlockHeader) => Promise<Word>,
): Promise<Vote> {
  const answers = await Promise.all(
    endpoints.map(async (endpoint) => {
      let head: BlockHeader | undefined;
      try {
        head = parseBlockHeader(await endpoint.request(blockByNumber("latest")));
        const word = head && (await ask(endpoint, head));
        silences.delete(endpoint);
        return { head, word };
      } catch (error) {
        return { head, word: faultOf(endpoint, error, now()) };
      }
    }),
  );
  const heads = answers.flatMap(({ head }) => head ?? []);
  const words = answers.map(({ head, word }) =>
    word === "behind" && head && isStuck(head, heads, now()) ? undefined : word,
  );
  const [isConfirmed, isDenied] = [words.includes(true), words.includes(false)];
  if (isConfirmed && isDenied) return "disputed";
  if (words.includes("behind")) return "undecided";
  if (isDenied) return "denied";
  return isConfirmed ? "confirmed" : "undecided";
}

/** True if the vote of `askEach` is `confirmed`. */
export async function isConfirmed(...asked: Parameters<typeof askEach>): Promise<boolean> {
  return (await askEach(...asked)) === "confirmed";
}

function faultOf(endpoint: RpcEndpointHandle, error: unknown, now: number): Word {
  if (!(error instanceof RpcError || error instanceof z.ZodError)) throw error;
  if (!(error instanceof RpcUnavailableError)) return undefined;
  const known = silences.get(endpoint);
  const since = known && now - known.at < maxSilenceMs ? known.since : now;
  silences.set(endpoint, { since, at: now });
  return now - since < maxSilenceMs ? "behind" : undefined;
}
