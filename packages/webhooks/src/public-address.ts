import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** Public by its range, but local to the machine: Azure's host answers its guests here. */
const wireServer = "168.63.129.16";

/** The range of global unicast addresses (RFC 4291). An address outside it is never called. */
const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * Returns whether an IP address is one of the public internet. Every special-purpose range of IANA
 * is not: loopback, private, link-local with the clouds' metadata, shared, documentation,
 * multicast. Nor are IPv6 addresses that wrap an IPv4 one (mapped, NAT64, 6to4, Teredo): their
 * destination is decided elsewhere.
 */
export function isPublicAddress(address: string): boolean {
  // The library also reads octal and shortened forms, which no resolver returns.
  if (isIP(address) === 0) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== "unicast") return false;
  return parsed instanceof ipaddr.IPv6 ? parsed.match(globalUnicast) : address !== wireServer;
}
