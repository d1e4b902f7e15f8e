import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";

const screens = {
  desktop: { width: 1280, height: 800 },
  window: { width: 1080, height: 720 },
  phone: { width: 360, height: 780 },
};

/**
 * Screenshots of the whole page, light and dark, on a desktop, in a window beside others, and on a
 * phone: `<name>-desktop-light.png` and so on. The page gets its size and colours back.
 *
 * @returns the files
 */
export async function takePictures(
  page: Page,
  { folder, name }: { folder: string; name: string },
): Promise<string[]> {
  mkdirSync(folder, { recursive: true });
  const before = page.viewportSize();
  const files: string[] = [];
  for (const [screen, size] of Object.entries(screens)) {
    await page.setViewportSize(size);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      const path = join(folder, `${name}-${screen}-${colorScheme}.png`);
      await page.screenshot({ path, fullPage: true, animations: "disabled", caret: "hide" });
      files.push(path);
    }
  }
  if (before !== null) await page.setViewportSize(before);
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  return files;
}
