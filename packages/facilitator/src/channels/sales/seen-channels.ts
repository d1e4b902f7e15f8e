import type { Hex } from "@coinslot/protocol";

/** Ids of channels in memory, the newest ones. */
export interface SeenChannels {
  has(channelId: Hex): boolean;
  add(channelId: Hex): void;
}

const maxChannels = 10_000;

export function createSeenChannels(): SeenChannels {
  const ids = new Set<Hex>();
  return {
    has: (channelId) => ids.has(channelId),
    add(channelId) {
      ids.add(channelId);
      const [oldest] = ids;
      if (ids.size > maxChannels && oldest !== undefined) ids.delete(oldest);
    },
  };
}
