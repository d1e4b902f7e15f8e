import {
  type BlockHeader,
  blockByNumber,
  blockHeaderSchema,
  type RpcEndpointHandle,
} from "@coinslot/chain";
import type { SettlementContext, SettlementNetwork } from "../settle/context.ts";
import { isStuck } from "../settle/evidence/is-stuck.ts";
import { isAwaited, noteAnswer, type Subjects } from "../settle/evidence/silences.ts";

/** Nodes of a chain, and the clocks by which they are old or silent. */
export interface Electorate {
  network: Pick<SettlementNetwork, "network"> & {
    rpc: Pick<SettlementNetwork["rpc"], "endpoints">;
  };
  context: Pick<SettlementContext, "clock" | "logger"> & {
    ledger: Pick<SettlementContext["ledger"], "now">;
  };
}

/** Fact of the chain that a vote is about. A node may answer one, and lack the data of another. */
export interface Question {
  kind: "use" | "no use" | "events" | "payment" | "receipt" | "no EIP-3009";
  /** Id of the refund or payment. */
  of: string;
}

/** Decision of the endpoints: all the same, not all the same, or some have not come to it. */
export type Vote = "confirmed" | "denied" | "disputed" | "undecided";

/**
 * Word of one endpoint about a fact of the chain. `behind`: its chain has not come to the block.
 * `undefined`: it has no say, since it lacks the data.
 */
type Word = boolean | "behind" | undefined;

/**
 * Confirmed if each endpoint that has a say confirms a fact of the chain, and at least one does.
 * What gives money away is not decided by one node's word. An endpoint that lacks the data has no
 * say.
 *
 * Nothing is decided while an endpoint is behind: blocks above its head may be made up by another.
 * Nor while one does not answer, or returns malformed data: it may rest for a moment. One that is
 * stuck, or silent, for ten minutes holds up nothing.
 */
export async function askEach(
  electorate: Electorate,
  { kind, of }: Question,
  ask: (endpoint: RpcEndpointHandle, head: BlockHeader) => Promise<Word>,
): Promise<Vote> {
  const { network, context } = electorate;
  const answers = await Promise.all(
    network.rpc.endpoints.map(async (endpoint) => {
      let head: BlockHeader | undefined;
      let subjects: Subjects = ["head"];
      try {
        head = blockHeaderSchema.parse(await endpoint.request(blockByNumber("latest")));
        noteAnswer(endpoint, subjects);
        subjects = [kind, `${kind} ${of}`];
        const word = await ask(endpoint, head);
        noteAnswer(endpoint, subjects);
        return { head, word };
      } catch (error) {
        const silent = { network, endpoint, subjects, error };
        return { head, word: isAwaited(context, silent) ? ("behind" as const) : undefined };
      }
    }),
  );
  const heads = answers.flatMap(({ head }) => head ?? []);
  const now = context.ledger.now();
  const words = answers.map(({ head, word }) =>
    word === "behind" && head && isStuck(head, heads, now) ? undefined : word,
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
