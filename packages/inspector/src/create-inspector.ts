import { assetsFolder } from "./assets-folder.ts";
import { createChainReader } from "./checks/read-chain.ts";
import type { Cycle } from "./cycles/cycle.ts";
import { type BoardLimits, type CycleBoard, createCycleBoard } from "./cycles/cycle-board.ts";
import { startPageServer } from "./page/page-server.ts";
import { startProxy } from "./proxy/proxy-server.ts";
import { writeRecording } from "./recording/recording.ts";
import { replayCycle } from "./replay/replay-cycle.ts";

/** Options of an inspector. */
export interface InspectorOptions extends BoardLimits {
  /** Origin of the seller, such as `http://localhost:4021`. */
  seller: string;
  /** Port of the proxy, on 127.0.0.1. Default 0: any free one. */
  port?: number;
  /** Port of the page, on 127.0.0.1. Default 0: any free one. */
  pagePort?: number;
  /** Nodes that are asked for the gas of a receipt's transaction. Default: none. */
  rpcUrls?: readonly string[];
}

/** A running inspector. */
export interface Inspector extends Omit<CycleBoard, "open"> {
  /** The seller's stand-in: buyers ask here. */
  proxyUrl: string;
  /** The page that shows the cycles. */
  pageUrl: string;
  /** The cycles as the text of a file, which `readRecording` reads. */
  record(): string;
  /** Ends open exchanges, too. */
  close(): Promise<void>;
}

/**
 * Starts a proxy before a seller under development, which joins its exchanges into 402 cycles.
 *
 * @example
 * ```ts
 * const inspector = await startInspector({ seller: "http://localhost:4021" });
 * console.log(`Buyers ask at ${inspector.proxyUrl}, people look at ${inspector.pageUrl}`);
 * ```
 *
 * @throws TypeError for a seller that is no origin by http or https
 */
export async function startInspector(options: InspectorOptions): Promise<Inspector> {
  const { port = 0, pagePort = 0, rpcUrls = [], ...limits } = options;
  const seller = readSeller(options.seller);
  const readChain = rpcUrls.length === 0 ? undefined : createChainReader(rpcUrls);
  const { open, ...board } = createCycleBoard({ ...limits, readChain });
  const proxy = await startProxy({ seller, port, observer: { open } });
  const [rpcUrl] = rpcUrls;
  const facts = { seller: seller.origin, proxyUrl: proxy.url, canReplay: rpcUrl !== undefined };
  const replay =
    rpcUrl === undefined
      ? undefined
      : (cycle: Cycle) => replayCycle(cycle, { url: proxy.url, seller: seller.origin, rpcUrl });
  const pageOptions = { board, port: pagePort, assets: assetsFolder, facts, replay };
  const page = await startPageServer(pageOptions).catch(async (error: unknown) => {
    await proxy.close();
    throw error;
  });
  return {
    ...board,
    proxyUrl: proxy.url,
    pageUrl: page.url,
    record: () => writeRecording(board.cycles(), Date.now()),
    async close() {
      await proxy.close();
      await page.close();
    },
  };
}

/**
 * Reads a seller's origin.
 *
 * @throws TypeError for another URL
 */
function readSeller(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isOrigin =
    url !== undefined &&
    ["http:", "https:"].includes(url.protocol) &&
    url.pathname === "/" &&
    `${url.search}${url.hash}${url.username}${url.password}` === "";
  if (isOrigin) return url;
  throw new TypeError("expected the seller's origin, such as http://localhost:4021");
}
