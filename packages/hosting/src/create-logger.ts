import { type DestinationStream, type Logger, pino, stdSerializers } from "pino";

/** Levels of the log, from the most to the least. */
export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;

/** A level of the log. */
export type LogLevel = (typeof logLevels)[number];

/** Creates a logger that writes a line of JSON for each event, by default to standard output. */
export function createLogger(
  level: LogLevel,
  destination: DestinationStream = pino.destination(),
): Logger {
  return pino({ level, serializers: { error: stdSerializers.err } }, destination);
}
