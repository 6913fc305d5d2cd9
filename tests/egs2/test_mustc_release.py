import io
import os
import tarfile

import prepare_mustc
import pytest
from kaldi_dir import validate
from mustc_release import find_release

from espnet_ext.errors import UserError


def pack(release, archive, prefix=""):
    """A tar.gz of a release directory, with what else archives hold."""
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(release.root / "en-de", f"{prefix}en-de")
        for name in (f"{prefix}en-de/docs/README", f"{prefix}en-de/data/train/wav/._ted_1.wav", "../../outside"):
            member = tarfile.TarInfo(name)
            member.size = 4
            tar.addfile(member, io.BytesIO(b"text"))
    return archive


@pytest.fixture
def archive(release, tmp_path):
    (tmp_path / "archives").mkdir()
    return pack(release, tmp_path / "archives" / "MUSTC_v1.0_en-de.tar.gz")


def files(directory):
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("prefix", ["", "./", "MUSTC_v3.0/"])
def test_an_archive_is_unpacked_once_and_only_what_is_needed_of_it(release, tmp_path, capsys, prefix):
    archive = pack(release, tmp_path / "MUSTC_v1.0_en-de.tar.gz", prefix)
    found = find_release(tmp_path, "en-de", tmp_path / "downloads")
    assert found == tmp_path / "downloads" / "MUSTC_v1.0_en-de" / "en-de" / "data"
    assert files(found) == files(release.root / "en-de" / "data")
    assert not (tmp_path.parent / "outside").exists()
    capsys.readouterr()
    assert find_release(archive, "en-de", tmp_path / "downloads") == found
    assert capsys.readouterr().out.startswith("done already")
    (found / "dev" / "txt" / "dev.de").unlink()
    find_release(archive, "en-de", tmp_path / "downloads")
    assert files(found) == files(release.root / "en-de" / "data")


def test_stage_1_prepares_from_an_archive(archive, tmp_path):
    options = ["--data_dir", str(tmp_path / "data"), "--unpack_dir", str(tmp_path / "downloads")]
    prepare_mustc.main(["--mustc_dir", str(archive.parent), "--tgt_lang", "de", *options])
    assert validate(tmp_path / "data" / "train.en-de") == 2


def test_the_unpacked_pair_itself_may_be_given(release, tmp_path):
    assert find_release(release.root / "en-de", "en-de", tmp_path) == release.root / "en-de" / "data"
    with pytest.raises(UserError, match=r"no corpus in MuST-C's layout"):
        find_release(release.root / "en-de", "en-es", tmp_path)


def test_an_unpacked_release_goes_before_an_archive(release, archive):
    archive.rename(release.root / archive.name)
    assert find_release(release.root, "en-de", release.root / "downloads") == release.root / "en-de" / "data"


@pytest.mark.parametrize("damage", ["cut", "flipped", "checksum", "no gzip", "empty"])
def test_a_damaged_archive_is_never_believed(archive, tmp_path, damage):
    whole = archive.read_bytes()
    middle = len(whole) // 2
    archive.write_bytes(
        {
            "cut": whole[:middle],
            "flipped": whole[:middle] + bytes(255 - byte for byte in whole[middle : middle + 9]) + whole[middle + 9 :],
            "checksum": whole[:-8] + bytes(8),
            "no gzip": b"<html>sign in to download</html>",
            "empty": b"",
        }[damage]
    )
    with pytest.raises(UserError, match=r"en-de\.tar\.gz: damaged or cut short .*; download it again"):
        find_release(archive, "en-de", tmp_path / "downloads")
    assert not files(tmp_path / "downloads") or set(files(tmp_path / "downloads")) == {".MUSTC_v1.0_en-de.lock"}
    archive.write_bytes(whole)
    assert find_release(archive, "en-de", tmp_path / "downloads").is_dir()


def test_a_killed_unpacking_goes_on(archive, tmp_path, monkeypatch):
    import mustc_release

    written = []
    write = mustc_release._write

    def dies(content, size, path):
        if len(written) == 3:
            raise KeyboardInterrupt
        write(content, size, path)
        written.append((path, path.stat().st_mtime_ns))

    monkeypatch.setattr(mustc_release, "_write", dies)
    with pytest.raises(KeyboardInterrupt):
        find_release(archive, "en-de", tmp_path / "downloads")
    assert not (tmp_path / "downloads" / "MUSTC_v1.0_en-de").exists()
    monkeypatch.setattr(mustc_release, "_write", write)
    found = find_release(archive, "en-de", tmp_path / "downloads")
    partial = tmp_path / "downloads" / ".MUSTC_v1.0_en-de.partial" / "en-de" / "data"
    for path, written_at in written:
        assert (found / path.relative_to(partial)).stat().st_mtime_ns == written_at


def test_a_newer_archive_is_unpacked_anew(release, archive, tmp_path):
    find_release(archive, "en-de", tmp_path / "downloads")
    release.write_split("dev", [release.segment(0, 1)])
    pack(release, archive)
    os.utime(archive, ns=(1, 1))
    found = find_release(archive, "en-de", tmp_path / "downloads")
    assert files(found) == files(release.root / "en-de" / "data")


def test_links_and_devices_are_never_written(tmp_path):
    archive = tmp_path / "MUSTC_v1.0_en-de.tar.gz"
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE):
        with tarfile.open(archive, "w:gz") as tar:
            member = tarfile.TarInfo("en-de/data/train/wav/ted_1.wav")
            member.type, member.linkname = kind, "/etc/passwd"
            tar.addfile(member)
        with pytest.raises(UserError, match=r"ted_1\.wav is no plain file"):
            find_release(archive, "en-de", tmp_path / "downloads")
        assert not list((tmp_path / "downloads").rglob("ted_1.wav"))


def test_what_is_missing_or_not_clear_is_said(release, archive, tmp_path):
    downloads = tmp_path / "downloads"
    with pytest.raises(UserError, match=r"no corpus .* at .*/en-fr/data; .* download MUSTC_\*_en-fr\.tar\.gz"):
        find_release(archive.parent, "en-fr", downloads)
    with pytest.raises(UserError, match=r"en-de\.tar\.gz: not an archive of en-fr"):
        find_release(archive, "en-fr", downloads)
    pack(release, archive.with_name("MUSTC_v2.0_en-de.tar.gz"))
    with pytest.raises(
        UserError, match=r"holds MUSTC_v1\.0_en-de\.tar\.gz and MUSTC_v2\.0_en-de\.tar\.gz: give the one"
    ):
        find_release(archive.parent, "en-de", downloads)
    other = archive.with_name("other_en-fr.tar.gz")
    other.write_bytes(archive.read_bytes())
    with pytest.raises(UserError, match="holds no en-fr/data/SPLIT/txt or wav"):
        find_release(other, "en-fr", downloads)
