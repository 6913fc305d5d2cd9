"""Upload a packed model to the Hugging Face hub, or say what would go where.

Nothing is uploaded unless a repository is named. Logging in is the hub's own business (`hf auth login`).
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from step import say

from espnet_ext.cli import ArgumentParser, run, str2bool
from espnet_ext.errors import UserError

HUB = "https://huggingface.co"


def contents(archive: Path) -> dict[str, int]:
    """Names and bytes of an archive's files. Raises UserError when it is missing or broken."""
    try:
        with ZipFile(archive) as packed:
            broken = packed.testzip()
            sizes = {info.filename: info.file_size for info in packed.infolist()}
    except FileNotFoundError:
        raise UserError(f"{archive}: no such file; run stage 14") from None
    except BadZipFile as error:
        raise UserError(f"{archive}: {error}; remove it and run stage 14 again") from None
    if broken:
        raise UserError(f"{archive}: {broken} is damaged; remove it and run stage 14 again")
    return sizes


def check_name(repository: str) -> None:
    """Raise UserError unless the hub takes `OWNER/NAME`."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(repository)
    except HFValidationError as error:
        raise UserError(f"--hf_repo {repository!r}: {error}") from None
    if repository.count("/") != 1:
        raise UserError(f"--hf_repo {repository!r}: give OWNER/NAME")


def upload(archive: Path, repository: str) -> str:
    """Put an archive's files into a repository, which is made if there is none; returns the commit's address."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    api = HfApi(library_name="espnet")
    try:
        with TemporaryDirectory(prefix="publish.") as directory:
            with ZipFile(archive) as packed:
                packed.extractall(directory)
            api.create_repo(repository, exist_ok=True)
            message = f"Upload {archive.stem}"
            return api.upload_folder(repo_id=repository, folder_path=directory, commit_message=message).commit_url
    except LocalTokenNotFoundError:
        raise UserError(f"{repository}: not logged in to {HUB}; run: hf auth login") from None
    except (HTTPError, OfflineModeIsEnabled) as error:
        raise UserError(f"{repository}: not uploaded: {error}") from None


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--archives", type=Path, nargs="+", required=True, help="what pack_models.py has written")
    parser.add_argument("--hf_repo", default="", help="OWNER/NAME on the hub; empty: nothing is uploaded")
    parser.add_argument("--dry_run", type=str2bool, default=False, help="true: only say what would go where")
    return parser


def main(argv: list[str] | None = None) -> None:
    """List every file, then upload if that is asked for."""
    args = get_parser().parse_args(argv)
    files = {archive: contents(archive) for archive in args.archives}
    if args.hf_repo:
        check_name(args.hf_repo)
        if len(files) > 1:
            raise UserError(
                f"--hf_repo {args.hf_repo}: a repository holds one model, and there are {len(files)}: choose one with "
                "--block_sizes and --tgt_lang"
            )
    where = f"{HUB}/{args.hf_repo}" if args.hf_repo else f"{HUB}/OWNER/NAME"
    for archive, sizes in files.items():
        say(f"{archive} to {where}: {len(sizes)} files, {sum(sizes.values()) / 1e6:.1f} MB")
        for name, size in sorted(sizes.items()):
            say(f"  {name} ({size} bytes)")
    if args.dry_run:
        say("dry run: nothing is uploaded")
    elif not args.hf_repo:
        say("nothing is uploaded: name a repository with --hf_repo OWNER/NAME")
    else:
        (archive,) = files
        say(f"uploaded: {upload(archive, args.hf_repo)}")


if __name__ == "__main__":
    run(main)
