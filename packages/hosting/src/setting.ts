/** A setting of a service: an environment variable, and often a name in its configuration file. */
export interface Setting {
  /**
   * `<CHAIN>` or `<CHAIN_ID>` at its end stands for each chain: its name in capitals, or its id.
   */
  name: string;
  /** Its purpose, in one line. */
  explanation: string;
  /** A setting with neither this nor `isOptional` has to be set. */
  defaultValue?: string;
  isOptional?: boolean;
  /** Never printed; may be given by a file, which `<name>_FILE` names. */
  isSecret?: boolean;
  /** Its name in the configuration file. A setting without one is not for files. */
  inFile?: string;
}
