import { isIP } from "node:net";

/**
 * The part of an RPC URL that may be shown: the last two labels of its host. The rest has keys, as
 * `https://name-1234.provider.example/key`. Of this machine and of bare addresses, the host.
 */
export function hostOf(url: string): string {
  if (!URL.canParse(url)) return "";
  const host = new URL(url).hostname.replace(/^\[|\]$/g, "");
  return isIP(host) === 0 ? host.split(".").slice(-2).join(".") : host;
}
