import {
  type Environment,
  facilitatorSettings,
  indexerSettings,
  type LoadedEnvironment,
  loadEnvironment as loadSettings,
} from "@coinslot/hosting/environment";
import { commandSettings } from "./command-settings.ts";

/**
 * The environment of a command, with the settings of an .env file: those of all commands, and
 * nothing else.
 *
 * @throws EnvironmentFileError when the file cannot be read
 */
export function loadEnvironment(environment: Environment, folder: string): LoadedEnvironment {
  const settings = [...commandSettings, ...facilitatorSettings, ...indexerSettings];
  return loadSettings({ environment, folder, settings });
}
