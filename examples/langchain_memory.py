"""A LangChain chain that retrieves from an agent's memory. Runs offline, on a scripted model.

pip install 'keepstone[langchain]' && python examples/langchain_memory.py
"""

from __future__ import annotations

from tempfile import TemporaryDirectory

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate

from keepstone.integrations.langchain import KeepstoneChatMessageHistory, KeepstoneRetriever


def main(home: str) -> None:
    """Keep a conversation, and answer a question from it."""
    history = KeepstoneChatMessageHistory("kick-off", home, agent="coder")
    history.add_messages([HumanMessage("We use pnpm"), AIMessage("Noted")])

    retriever = KeepstoneRetriever(home, agent="coder", k=3)
    prompt = ChatPromptTemplate.from_template("From memory: {memory}\nQuestion: {question}")
    chain = prompt | FakeListChatModel(responses=["pnpm"])
    question = "Which tool do we use? pnpm?"
    found = retriever.invoke(question)
    answer = chain.invoke({"memory": [document.page_content for document in found], "question": question})
    print(question, "->", answer.text)
    print("recalled:", found[0].page_content)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(folder)
