export type { ConsoleClock, OperatorSource } from "./create-console.ts";
export {
  type OperatorConsole,
  type OperatorConsoleOptions,
  operatorConsole,
} from "./operator-console.ts";
export type { ConsoleOptions } from "./settings.ts";
export { type StartConsoleOptions, type StartedConsole, startConsole } from "./start-console.ts";
