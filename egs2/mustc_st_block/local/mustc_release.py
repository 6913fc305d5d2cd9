"""Where a MuST-C release lies: a directory, or an archive that is unpacked once."""

import gzip
import re
import shutil
import tarfile
import zlib
from pathlib import Path
from typing import IO

from step import Step, say

from espnet_ext.errors import UserError
from espnet_ext.lock import locked

SPLITS = ("train", "dev", "tst-COMMON", "tst-HE")
SUFFIX = ".tar.gz"
BLOCK = 1 << 20


def find_release(mustc_dir: Path, pair: str, unpack_dir: Path) -> Path:
    """`PAIR/data` (en-de/data) in `mustc_dir`, or in its archive, which is unpacked below `unpack_dir`.

    `mustc_dir` may be the archive, or `PAIR`, itself. Raises UserError when there is no release, or more than one
    archive of it.
    """
    if (mustc_dir / pair / "data").is_dir():
        return mustc_dir / pair / "data"
    if mustc_dir.name == pair and (mustc_dir / "data").is_dir():
        return mustc_dir / "data"
    archives = [mustc_dir] if mustc_dir.is_file() else sorted(mustc_dir.glob(f"*{pair}{SUFFIX}"))
    if not archives:
        raise UserError(
            f"no corpus in MuST-C's layout at {mustc_dir / pair / 'data'}; for MuST-C download "
            f"MUSTC_*_{pair}{SUFFIX} from mt.fbk.eu/must-c (licence: CC BY-NC-ND 4.0) and give it, or the directory "
            f"that holds it or the unpacked {pair}, as --mustc_dir, or use --corpus mini"
        )
    if len(archives) > 1:
        names = " and ".join(path.name for path in archives)
        raise UserError(f"{mustc_dir} holds {names}: give the one that you mean as --mustc_dir")
    (archive,) = archives
    if not archive.name.endswith(f"{pair}{SUFFIX}"):
        raise UserError(f"--mustc_dir {archive}: not an archive of {pair} (*{pair}{SUFFIX})")
    return unpack(archive, pair, unpack_dir) / pair / "data"


def unpack(archive: Path, pair: str, unpack_dir: Path) -> Path:
    """Unpack wav and txt of every split into `unpack_dir`, in a directory of the archive's name; returns that.

    The directory appears when all of the archive has been read. What a killed run has unpacked is kept.
    Raises UserError when the archive is damaged, cut short, or holds no such release.
    """
    target = unpack_dir / archive.name.removesuffix(SUFFIX)
    state = archive.stat()
    settings = {"archive": str(archive.resolve()), "size": state.st_size, "mtime_ns": state.st_mtime_ns}
    with locked(target):
        step = Step(target.with_name(f".{target.name}.unpacked"), settings)
        if step.is_done(target):
            return target
        say(f"unpacking {archive} ({state.st_size / 1e9:.1f} GB) into {target}")
        partial = target.with_name(f".{target.name}.partial")
        step.resume(partial)
        try:
            files = [partial / name for name in _extract(archive, pair, partial)]
        except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            shutil.rmtree(partial)
            raise UserError(f"{archive}: damaged or cut short ({error}); download it again") from None
        except OSError as error:
            error.filename = error.filename or str(partial)
            raise
        if not files:
            shutil.rmtree(partial)
            raise UserError(f"{archive}: holds no {pair}/data/SPLIT/txt or wav; is it a MuST-C archive?")
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
        step.finish(target / path.relative_to(partial) for path in files)
    return target


def _extract(archive: Path, pair: str, directory: Path) -> list[str]:
    """Write the release's files that are not there yet; returns the names of all of them.

    Only plain files whose names end in `PAIR/data/SPLIT/{txt,wav}/NAME` are written, whatever else the archive holds.
    """
    wanted = re.compile(rf"(?:^|/)({pair}/data/(?:{'|'.join(SPLITS)})/(?:txt|wav)/[^/.][^/]*)$")
    names, tenth = [], 0
    size = archive.stat().st_size
    with open(archive, "rb") as file, gzip.open(file) as stream, tarfile.open(fileobj=stream, mode="r|") as members:
        for member in members:
            found = wanted.search(member.name)
            if found and not member.isdir():
                content = members.extractfile(member) if member.isfile() else None
                if content is None:
                    raise UserError(f"{archive}: {member.name} is no plain file; unpack the archive by hand")
                _write(content, member.size, directory / found[1])
                names.append(found[1])
            if file.tell() * 10 // size > tenth:
                tenth = file.tell() * 10 // size
                say(f"{tenth * 10} % of {archive.name}")
        while stream.read(BLOCK):  # to the end, where the checksum is
            pass
    return names


def _write(content: IO[bytes], size: int, path: Path) -> None:
    if path.exists() and path.stat().st_size == size:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")  # of one name, so that a killed run's is overwritten
    try:
        with open(temporary, "wb") as stream:
            shutil.copyfileobj(content, stream, BLOCK)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    temporary.rename(path)
