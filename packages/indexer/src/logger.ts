/** Log for operators. A pino logger fits. */
export interface IndexerLogger {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

export const silentLogger: IndexerLogger = { info() {}, warn() {}, error() {} };
