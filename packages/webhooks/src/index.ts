export { createPoster, type PostEvent } from "./post-event.ts";
export { isPublicAddress } from "./public-address.ts";
export { createHostResolver, createPublicLookup, type ResolveHost } from "./public-lookup.ts";
export { readCallbackUrl } from "./read-callback-url.ts";
export { createSigner, isEventSecret, type SignEvent } from "./sign-event.ts";
