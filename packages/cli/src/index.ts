export type { Setting } from "@coinslot/indexer";
export { exitCode } from "./exit-code.ts";
export {
  type RunFacilitatorOptions,
  runFacilitatorService,
} from "./facilitator/run-service.ts";
export {
  type FacilitatorServiceConfiguration,
  type FacilitatorSources,
  readFacilitatorServiceConfiguration,
} from "./facilitator/service-configuration.ts";
export { facilitatorSettings } from "./facilitator/settings.ts";
export { type FacilitatorService, startFacilitatorService } from "./facilitator/start-service.ts";
export { runCli } from "./run-cli.ts";
export type { Terminal } from "./terminal.ts";
