import { stopsOperation } from "../stops/stops-operation.ts";
import type { Operation } from "./operation.ts";

/** Every operation that a seller serves to its operator. A further one is a further entry. */
export const operations: readonly Operation[] = [stopsOperation];
