import { blockByNumber, getChainPreset, parseBlockHeader, type RpcPool } from "@coinslot/chain";
import type { ConfiguredNetwork } from "@coinslot/hosting/environment";
import type { Check } from "./check.ts";

/** A block's time may be a little ahead of every other clock. */
const aheadSeconds = 15;
const staleSeconds = 60;

/**
 * Compares this machine's clock with the chain's. Payments are valid for minutes. So a wrong clock
 * refuses good ones, or accepts those that the token will refuse.
 */
export async function checkClock(options: {
  network: ConfiguredNetwork;
  pool: RpcPool;
  now: () => number;
}): Promise<Check[]> {
  const { network, pool, now } = options;
  const subject = { topic: "clock", about: network.name } as const;
  const block = parseBlockHeader(await pool.request(blockByNumber("latest")));
  if (block === undefined) {
    const found = "The endpoint returns no newest block: try another one.";
    return [{ ...subject, status: "broken", found }];
  }
  const behind = Math.round(now() / 1000 - Number(block.timestamp));
  if (behind < -aheadSeconds) {
    const found = `This machine's clock is at least ${-behind} s behind the chain's: set it by NTP.`;
    return [{ ...subject, status: "broken", found }];
  }
  const { blockTimeMs } = getChainPreset(network.chainId);
  if (behind > staleSeconds && blockTimeMs !== undefined) {
    const found = `The newest block is ${behind} s old: the chain stalls, the endpoint is behind, or this machine's clock is ahead. Compare with another endpoint, and set the clock by NTP.`;
    return [{ ...subject, status: "warning", found }];
  }
  return [{ ...subject, status: "ok", found: `${Math.abs(behind)} s from the newest block` }];
}
