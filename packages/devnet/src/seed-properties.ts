import fc from "fast-check";
import { seed } from "./effort.ts";

// Set-up of the test runner: properties draw by the run's seed, so that two runs of a commit draw
// the same.
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });
