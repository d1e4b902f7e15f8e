import { promises as dns } from "node:dns";
import { isIPv6, type LookupFunction } from "node:net";
import { isPublicAddress } from "./public-address.ts";

/** Finds the addresses of a host name. */
export type ResolveHost = (hostname: string) => Promise<readonly string[]>;

/**
 * A DNS lookup for sockets that yields public addresses or none. The socket connects to the very
 * address that was checked here, so DNS rebinding gains nothing. One address that is not public
 * spoils the name: no honest name mixes them.
 */
export function createPublicLookup(resolve: ResolveHost): LookupFunction {
  return function publicLookup(hostname, options, callback) {
    resolve(hostname)
      .then((addresses) => {
        if (addresses.length === 0 || !addresses.every(isPublicAddress)) throw new NotPublicError();
        return addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
      })
      .then(
        (found) => {
          const [first] = found;
          if (options.all === true) callback(null, found);
          else callback(null, first?.address ?? "", first?.family);
        },
        (error: NodeJS.ErrnoException) => callback(error, ""),
      );
  };
}

/**
 * Queries the name servers directly, with a deadline. The system's own lookup would hold one of the
 * process's few threads while a name server is silent. Every other lookup would wait with it.
 */
export function createHostResolver(options: {
  timeoutMs: number;
  /** Name servers, as addresses with a port. Default: the system's. */
  servers?: readonly string[] | undefined;
}): ResolveHost {
  const { timeoutMs, servers } = options;
  const resolver = new dns.Resolver({ timeout: timeoutMs, tries: 1 });
  if (servers !== undefined) resolver.setServers(servers);
  return async function resolveHost(hostname) {
    const found = await Promise.allSettled([
      resolver.resolve4(hostname),
      resolver.resolve6(hostname),
    ]);
    return found.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
  };
}

class NotPublicError extends Error {
  override readonly name = "NotPublicError";

  constructor() {
    super("The host has no address, or one that is not public");
  }
}
