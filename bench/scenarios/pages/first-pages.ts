import { mkdtemp, rm } from "node:fs/promises";
import { get, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gunzipSync, gzipSync } from "node:zlib";
import { startDevnet } from "@coinslot/devnet";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import type { Figure } from "../../support/figure.ts";
import { startSellerProcess } from "../../support/seller.ts";
import { requirementsOf } from "../../support/signed-payments.ts";
import { unpaidPrograms } from "./unpaid-programs.ts";

const languages = ["en", "de", "zh", "es"];

/** Bytes of the pages that people load first, and the unpaid path of programs beside them. */
export async function firstPages(): Promise<Figure[]> {
  const devnet = await startDevnet();
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  try {
    const own = new URL("../../support/seller-process.ts", import.meta.url);
    const program = await bundleProgram(own, join(folder, "own"), { minifies: true });
    let sellers = 0;
    const start = (options: {
      kind: "ours" | "bare";
      program?: string;
      hasPaywall?: boolean;
      consoleKey?: string;
    }) => {
      sellers += 1;
      return startSellerProcess(options.program ?? program, {
        rpcUrl: devnet.rpcUrl,
        chainId: devnet.chainId,
        relayer: { privateKey: devnet.accounts.relayer.privateKey },
        ledger: `sqlite:${join(folder, `ledger-${sellers}.db`)}`,
        requirements: requirementsOf(devnet),
        ...options,
      });
    };
    const figures: Figure[] = [];
    const seller = await start({ kind: "ours", hasPaywall: true, consoleKey: "k".repeat(40) });
    try {
      figures.push(await paywallBytes(seller.port), ...(await consoleBytes(seller.consoleUrl)));
    } finally {
      await seller.stop();
    }
    return [...figures, ...(await unpaidPrograms({ start, folder }))];
  } finally {
    await rm(folder, { recursive: true, force: true });
    await devnet.stop();
  }
}

/** The whole document: it loads nothing else. */
async function paywallBytes(port: number): Promise<Figure> {
  const sizes: number[] = [];
  for (const language of languages) {
    const page = await fetch(`http://127.0.0.1:${port}/weather`, {
      headers: { Accept: "text/html", "Accept-Language": language, "Sec-Fetch-Mode": "navigate" },
    });
    sizes.push(gzipSync(await page.text()).length / 1_000);
  }
  return {
    scenario: "paywall, gzipped, largest of four languages",
    ours: { value: Math.max(...sizes), unit: "KB" },
    goal: { of: "ours", atMost: 15 },
  };
}

/** The document, and the files that it names: the bodies as a browser receives them. */
async function consoleBytes(origin = ""): Promise<Figure[]> {
  const document = await receive(`${origin}/`);
  const sizes = [document.received];
  for (const [, path = ""] of document.text.matchAll(/\b(?:src|href)="([^"]*assets\/[^"]+)"/g)) {
    const file = await receive(new URL(path, `${origin}/`).href);
    if (/\bimport(?!\s*\()[^;()]{0,200}["']\.\//.test(file.text)) {
      throw new Error(`${path} imports a file that is not counted.`);
    }
    sizes.push(file.received);
  }
  if (sizes.length < 2) throw new Error("The console's document names no file.");
  return [
    {
      scenario: "console, first page as a browser receives it",
      ours: {
        value: sizes.reduce((total, size) => total + size, 0) / 1_000,
        unit: "KB",
        note: `${sizes.length} files`,
      },
      goal: { of: "ours", atMost: 100 },
    },
  ];
}

/** Gets a page with the header of a browser: `fetch` does not say how many bytes came. */
async function receive(url: string): Promise<{ received: number; text: string }> {
  const request = get(url, { headers: { "Accept-Encoding": "gzip, deflate, br, zstd" } });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once("response", resolve).once("error", reject);
  });
  const body = await buffer(response);
  const isZipped = response.headers["content-encoding"] === "gzip";
  if (response.statusCode !== 200) throw new Error(`${url}: ${response.statusCode}`);
  return { received: body.length, text: String(isZipped ? gunzipSync(body) : body) };
}
