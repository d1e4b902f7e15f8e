import { type Browser, chromium } from "playwright-core";
import { unpackChromium } from "./unpack-chromium.ts";

/** Nothing leaves the machine, and a container without privileges runs it. */
const args = [
  "--no-sandbox",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-gpu",
  "--disable-sync",
  "--font-render-hinting=none",
  "--no-first-run",
];

/**
 * Starts a Chromium without a window, with its usual protections: one per test file, which closes
 * it in `afterAll`. On Linux x64 it comes with the development dependencies; elsewhere it is the
 * installed Chrome.
 */
export async function openBrowser(): Promise<Browser> {
  if (process.platform !== "linux" || process.arch !== "x64") {
    return chromium.launch({ channel: "chrome", args });
  }
  const { executablePath, env } = await unpackChromium();
  const inherited = Object.entries(process.env).filter(([name]) => name !== "LD_LIBRARY_PATH");
  return chromium.launch({
    executablePath,
    args,
    env: { ...Object.fromEntries(inherited), ...env },
    // No condition of a test: a busy machine takes its time to start a browser.
    timeout: 120_000,
  });
}
