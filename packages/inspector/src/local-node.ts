/** Nodes that make blocks for tests, and let accounts be impersonated. */
const developmentNode = /^(?:anvil|hardhat)/i;

/** Returns whether a host name of a URL is this machine's. `localhost` is left to its resolver. */
export function isLoopbackHost(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

/**
 * Returns whether a node serves a chain of this machine alone. Its loopback address does not say
 * so: it may be a tunnel to the node of a real chain.
 *
 * @param clientVersion its answer to `web3_clientVersion`
 */
export function isDevelopmentNode(clientVersion: unknown): boolean {
  return typeof clientVersion === "string" && developmentNode.test(clientVersion);
}
