/** VoltAgent memory that is recollect's: on a server, or straight on the session files. */
export {
  AccessDeniedError,
  CorruptLogError,
  InvalidAgentIdError,
  InvalidSessionIdError,
  LockTimeoutError,
  RecollectError,
  StoreError,
} from "./errors.js";
export { MemoryAdapter, type MemoryAdapterOptions, type SessionInfo } from "./files.js";
export type { Item, Json } from "./json.js";
export { RecollectStorage, type RecollectStorageOptions } from "./storage.js";
export type { ClientOptions } from "./client.js";
export type { InfoLogger } from "./voltagent.js";
