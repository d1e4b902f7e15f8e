/** 127.0.0.0/8 and ::1, `localhost` and the names below it (RFC 6761). */
const loopback = /^(?:127(?:\.[0-9]+){3}|\[::1\]|(?:.+\.)?localhost)$/;

/**
 * Operator of an RPC URL, as far as the URL shows it: the host name. Two ports of one host, like
 * two of its paths, are one operator. A lie on one of them is a lie on both.
 *
 * A loopback host counts by name and port. Its nodes belong to the user of this machine, so a lie
 * there harms that user alone. A local fork and a local node can check one another.
 */
export function operatorOf(rpcUrl: string): string {
  const { hostname, port } = new URL(rpcUrl);
  // The root's dot makes no other host.
  const name = hostname.replace(/\.$/, "");
  return loopback.test(name) && port !== "" ? `${name}:${port}` : name;
}

/** Returns whether RPC URLs are of two operators at least, so that one can contradict the other. */
export function hasWitnesses(rpcUrls: readonly string[]): boolean {
  return new Set(rpcUrls.map(operatorOf)).size > 1;
}
