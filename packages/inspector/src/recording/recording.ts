import * as z from "zod";
import { type Cycle, cycleSchema } from "../cycles/cycle.ts";
import { stateOf } from "../cycles/state-of.ts";

/** Version of the file's format. A reader refuses a later one. */
const formatVersion = 1;

/** Largest file that is read, in characters. */
export const maxRecordingLength = 64 * 2 ** 20;

const headSchema = z.object({ coinslotRecording: z.int().positive() });
const recordingSchema = z.object({
  coinslotRecording: z.literal(formatVersion),
  /** Time of writing, ISO 8601. */
  recordedAt: z.string().max(64),
  cycles: z.array(cycleSchema).max(10_000),
});

/** Cycles in a file, to be shared: they hold no signature, key or cookie. */
export type Recording = z.infer<typeof recordingSchema>;

/**
 * Writes cycles as the text of a file, a cycle a line: indented, deep messages would make it larger
 * than a reader takes. Cycles under way are left out.
 */
export function writeRecording(cycles: readonly Cycle[], now: number): string {
  const recordedAt = new Date(now).toISOString();
  const head = JSON.stringify({ coinslotRecording: formatVersion, recordedAt }).slice(0, -1);
  const ended = cycles.filter((cycle) => stateOf(cycle) !== "paying");
  const lines = ended.map((cycle) => JSON.stringify(cycle)).join(",\n");
  return `${head},"cycles":[\n${lines}\n]}\n`;
}

/**
 * Reads the text of a file.
 *
 * @throws TypeError for a file of a later format, and for any other text
 */
export function readRecording(text: string): Recording {
  if (text.length > maxRecordingLength) throw new TypeError("The recording is too large.");
  const value = parse(text);
  const head = headSchema.safeParse(value);
  if (!head.success) throw new TypeError("The file is no recording of the inspector.");
  if (head.data.coinslotRecording > formatVersion) {
    throw new TypeError("The recording is of a later version: update coinslot to read it.");
  }
  const read = recordingSchema.safeParse(value);
  if (read.success) return read.data;
  const path = read.error.issues[0]?.path.map(String).join(".") ?? "";
  throw new TypeError(`The recording is damaged at ${path.slice(0, 120)}.`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
