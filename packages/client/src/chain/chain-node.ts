import { createPublicClient, http, type PublicClient } from "viem";

/** One RPC endpoint of a chain. */
export interface ChainNode {
  /**
   * Sends a question, and at the same time asks for the chain id.
   *
   * @throws when it does not answer, or serves another chain, even if it served the right one
   * before
   */
  ask<T>(question: (client: PublicClient) => Promise<T>): Promise<T>;
}

/** Creates a node; asks nothing yet. Each answer has its time, the last byte included. */
export function createChainNode(url: string, chainId: number, answerMs: number): ChainNode {
  // Part of a time that several nodes share: a signal takes no fractions.
  const timeoutMs = Math.ceil(answerMs);
  const client = createPublicClient({
    transport: http(url, {
      retryCount: 0,
      timeout: 0,
      // The limit of viem ends with the headers: a body that drips would never end.
      // A redirect could lead to a port of this machine.
      fetchFn: (input, init) =>
        fetch(input, { ...init, redirect: "error", signal: AbortSignal.timeout(timeoutMs) }),
    }),
  });
  return {
    async ask(question) {
      const [actual, answer] = await Promise.all([client.getChainId(), question(client)]);
      if (actual !== chainId)
        throw new Error(`An RPC endpoint of chain ${chainId} serves ${actual}`);
      return answer;
    },
  };
}
