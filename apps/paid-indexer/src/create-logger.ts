import { type DestinationStream, type Logger, pino, stdSerializers } from "pino";

/** Logs in JSON, a line for each event. */
export function createLogger(
  level: string,
  destination: DestinationStream = pino.destination(),
): Logger {
  return pino({ level, serializers: { error: stdSerializers.err } }, destination);
}
