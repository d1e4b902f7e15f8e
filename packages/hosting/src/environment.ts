/**
 * Settings and secrets, without the services. A command that only reads its settings does not load
 * a web framework, a database and a facilitator for them.
 */
export { describeUnreadable } from "./environment/describe-unreadable.ts";
export {
  type EnvironmentFile,
  EnvironmentFileError,
  type LoadedEnvironment,
  loadEnvironment,
} from "./environment/load-environment.ts";
export { readRegularFile } from "./environment/read-regular-file.ts";
export { type Environment, readSecret } from "./environment/read-secret.ts";
export { facilitatorSettings } from "./facilitator/settings.ts";
export { type IndexerSettingName, indexerSettings } from "./indexer/settings.ts";
export {
  type ConfiguredNetwork,
  findNetworks,
  hasWitnesses,
  isHttpUrl,
} from "./networks/configured-networks.ts";
export type { Setting } from "./setting.ts";
