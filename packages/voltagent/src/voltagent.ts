/** What is taken from VoltAgent, loaded when it is needed: that takes a second, which scripts on files need not wait. */

/** What a logger must be able to do: VoltAgent's loggers all can. */
export interface InfoLogger {
  info(message: string, context?: object): void;
}

const load = () => import("@voltagent/core");

/** Return VoltAgent's own logger, whose records its console shows. */
export async function voltAgentLogger(): Promise<InfoLogger> {
  const { LoggerProxy } = await load();
  return new LoggerProxy({ component: "keepstone" });
}

/** Return the error by which VoltAgent knows that another caller was first to begin a conversation. */
export async function alreadyExists(conversation: string): Promise<Error> {
  const { ConversationAlreadyExistsError } = await load();
  return new ConversationAlreadyExistsError(conversation);
}

/** Return VoltAgent's error for a conversation that is missing. */
export async function notFound(conversation: string): Promise<Error> {
  const { ConversationNotFoundError } = await load();
  return new ConversationNotFoundError(conversation);
}
