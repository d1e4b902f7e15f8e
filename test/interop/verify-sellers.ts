// Writes the table of docs/verifying.md: node --import tsx --conditions=source
// test/interop/verify-sellers.ts
import { formatVerifiedTable, verifySellers } from "../support/verify-sellers.ts";

console.log(formatVerifiedTable(await verifySellers()));
