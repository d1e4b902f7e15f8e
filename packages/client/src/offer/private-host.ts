import { BlockList, isIP } from "node:net";

/**
 * Special-use suffixes of names that no public server answers to: RFC 6761, 6762, 8375; ICANN's
 * `internal`.
 */
const privateSuffix = /\.(?:localhost|local|internal|lan|home\.arpa)$/;

const privateAddresses = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
] as const) {
  privateAddresses.addSubnet(network, prefix, "ipv4");
}
for (const [network, prefix] of [
  ["::", 127],
  ["fc00::", 7],
  ["fe80::", 10],
] as const) {
  privateAddresses.addSubnet(network, prefix, "ipv6");
}

/**
 * Returns whether a host is one that the internet does not route. It is a loopback, private or
 * link-local address, or a name without a dot or under a private suffix. A container's name is one.
 *
 * @param hostname as the `hostname` of a `URL`: lower case, IPv6 in brackets
 */
export function isPrivateHost(hostname: string): boolean {
  const address = hostname.replace(/^\[(.*)\]$/, "$1");
  const family = isIP(address);
  if (family !== 0) return privateAddresses.check(address, family === 4 ? "ipv4" : "ipv6");
  return !hostname.includes(".") || privateSuffix.test(hostname);
}
