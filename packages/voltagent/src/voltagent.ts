/** Parts of VoltAgent, loaded on first use: loading takes a second, which scripts on files often do not need. */

/** The interface of a logger, which all of VoltAgent's loggers have. */
export interface InfoLogger {
  info(message: string, context?: object): void;
}

const load = () => import("@voltagent/core");

/** Return VoltAgent's logger, whose records VoltAgent's console shows. */
export async function voltAgentLogger(): Promise<InfoLogger> {
  const { LoggerProxy } = await load();
  return new LoggerProxy({ component: "keepstone" });
}

/** Return VoltAgent's error for a conversation that another caller has already created. */
export async function alreadyExists(conversation: string): Promise<Error> {
  const { ConversationAlreadyExistsError } = await load();
  return new ConversationAlreadyExistsError(conversation);
}

/** Return VoltAgent's error for a missing conversation. */
export async function notFound(conversation: string): Promise<Error> {
  const { ConversationNotFoundError } = await load();
  return new ConversationNotFoundError(conversation);
}
