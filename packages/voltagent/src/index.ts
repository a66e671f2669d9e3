/** Keepstone memory for VoltAgent: on a server, or directly on the session files. */
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
