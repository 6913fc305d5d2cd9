"""Models of the Hugging Face hub, through its own client: its cache, login and HF_HUB_OFFLINE are honoured."""

import re
from pathlib import Path

from espnet_ext.errors import UserError

NAME = re.compile(r"[\w.-]+/[\w.-]+(@[^@\s]+)?")
# Weights in the formats of other frameworks, and pickled or split ones beside those that are read.
SURPLUS = ("*.msgpack", "*.h5", "*.ot", "*.onnx", "*fp32*", "pytorch_model*", "flax_model*", "tf_model*")


def is_hub_name(name: str) -> bool:
    """Whether this could be `owner/name` or `owner/name@revision`."""
    return NAME.fullmatch(name) is not None


def download(name: str) -> Path:
    """The directory with the files of a repository, which are downloaded if the local cache lacks any.

    Raises UserError when there is no such repository or revision, or no access, or no connection.
    """
    import huggingface_hub
    import huggingface_hub.errors as hub

    repo, _, revision = name.partition("@")
    try:
        return Path(huggingface_hub.snapshot_download(repo, revision=revision or None, ignore_patterns=SURPLUS))
    except hub.GatedRepoError:
        reason = "its owner must grant access: ask for it on its page, then log in with `hf auth login`"
    except hub.RepositoryNotFoundError:
        reason = "neither a local path nor a model on the hub; for a private one log in with `hf auth login`"
    except hub.RevisionNotFoundError:
        reason = f"the repository has no revision {revision!r}"
    except (hub.LocalEntryNotFoundError, hub.OfflineModeIsEnabled, hub.IncompleteSnapshotError):
        reason = (
            "no local path, not whole in the local cache, and the hub cannot be reached; "
            "check the name, the connection and HF_HUB_OFFLINE"
        )
    except hub.HFValidationError as error:
        reason = str(error)
    except OSError as error:
        reason = f"not downloaded from the hub: {error}"
    raise UserError(f"{name}: {' '.join(reason.split())}")
