/** VoltAgent memory that is keepstone's: on a server, or straight on the session files. */
export {
  AccessDeniedError,
  CorruptLogError,
  InvalidAgentIdError,
  InvalidSessionIdError,
  LockTimeoutError,
  KeepstoneError,
  StoreError,
} from "./errors.js";
export { MemoryAdapter, type MemoryAdapterOptions, type SessionInfo } from "./files.js";
export type { Item, Json } from "./json.js";
export {
  KeepstoneEmbedding, KeepstoneVectors, type KeepstoneVectorsOptions,
} from "./vectors.js";
export {
  KeepstoneFileStorage, type KeepstoneFileStorageOptions, KeepstoneStorage, type KeepstoneStorageOptions,
} from "./storage.js";
export type { ClientOptions } from "./client.js";
export type { InfoLogger } from "./voltagent.js";
