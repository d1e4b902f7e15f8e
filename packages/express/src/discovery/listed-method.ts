/** Methods for which OpenAPI 3.1 has an operation. */
export const listedMethods = [
  "GET",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "HEAD",
  "OPTIONS",
  "TRACE",
] as const;

/** A method for which OpenAPI 3.1 has an operation. */
export type ListedMethod = (typeof listedMethods)[number];

/** Returns whether OpenAPI 3.1 has an operation for a method. */
export function isListedMethod(method: string): method is ListedMethod {
  return listedMethods.some((each) => each === method);
}
