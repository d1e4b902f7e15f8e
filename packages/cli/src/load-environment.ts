import {
  type Environment,
  facilitatorSettings,
  indexerSettings,
  type LoadedEnvironment,
  loadEnvironment as loadSettings,
} from "@coinslot/hosting/environment";
import { commandSettings } from "./command-settings.ts";

/**
 * Loads the environment of a command, and the settings of any command from its .env file. Ignores
 * other variables of the file.
 *
 * @throws EnvironmentFileError when the file cannot be read
 */
export function loadEnvironment(environment: Environment, folder: string): LoadedEnvironment {
  const settings = [...commandSettings, ...facilitatorSettings, ...indexerSettings];
  return loadSettings({ environment, folder, settings });
}
