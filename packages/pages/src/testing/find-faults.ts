import axe from "axe-core";
import type { Page } from "playwright-core";
import * as z from "zod";

const phone = { width: 360, height: 780 };

const reports = z.array(
  z.object({
    id: z.string(),
    help: z.string(),
    nodes: z.array(z.object({ target: z.array(z.unknown()), html: z.string() })),
  }),
);

/**
 * Checks the page as it stands: by axe in light and dark, and on a screen 360 pixels wide. The page
 * gets its size and colours back.
 *
 * @returns one line for each fault; none where the page is well
 */
export async function findFaults(page: Page): Promise<string[]> {
  const size = page.viewportSize();
  const faults: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    faults.push(...(await runAxe(page)).map((fault) => `${colorScheme}: ${fault}`));
  }
  await page.setViewportSize(phone);
  faults.push(...(await runAxe(page)).map((fault) => `phone: ${fault}`));
  const width = z.number().parse(await page.evaluate("document.documentElement.scrollWidth"));
  if (width > phone.width) faults.push(`phone: ${width} pixels wide`);
  if (size !== null) await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  return faults;
}

async function runAxe(page: Page): Promise<string[]> {
  await page.evaluate(`${axe.source}; undefined`);
  const violations = reports.parse(
    await page.evaluate("axe.run().then(({ violations }) => violations)"),
  );
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, html }) => `${id}: ${help}: ${target.join(" ")}: ${html}`),
  );
}
