import { type Inspector, startInspector } from "@coinslot/inspector";
import type { Market } from "./market.ts";
import { atUsualPort } from "./usual-port.ts";

/** Opens an inspector before the market's seller: at its usual ports, or at free ones. */
export function openInspector({ devnet, url }: Market): Promise<Inspector> {
  const free = { seller: new URL(url).origin, rpcUrls: [devnet.rpcUrl] };
  return atUsualPort(startInspector, { usual: { ...free, port: 4022, pagePort: 4023 }, free });
}
