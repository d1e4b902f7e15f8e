// Reads the test runner's JSON report; prints the closing line of CI with its true numbers.
// Exits with 1 when a test failed, was skipped, or none ran.
import { readFileSync } from "node:fs";

let report;
try {
  report = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"));
} catch {
  console.log("The test runner left no report.\n0 passed, 1 failed");
  process.exit(1);
}
const brokenFiles = report.testResults.filter(
  (file) => file.status === "failed" && file.assertionResults.length === 0,
).length;
const passed = report.numPassedTests;
const failed = report.numFailedTests + brokenFiles;
const skipped = report.numPendingTests + report.numTodoTests;
if (skipped > 0) console.log(`${skipped} tests were skipped: a skipped test is a defect.`);
if (passed === 0) console.log("No test ran.");
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 || skipped > 0 || passed === 0 || !report.success ? 1 : 0);
