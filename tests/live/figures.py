"""Takes the figures of docs/live.md: the page while a talk is translated, on a screen and on a telephone."""

import asyncio
import sys
import tempfile
from pathlib import Path

import soundfile
from browser import browser
from command import ROOT, served

FIGURES = ROOT / "docs" / "figures"


async def main(recipe: Path) -> None:
    """Translate the beginning of the recipe's first talk with its trained model."""
    model = recipe / "exp" / "st_block40.en-de"
    paths = {"st_train_config": model / "config.yaml", "st_model_file": model / "model.pth"}
    talk = (recipe / "data" / "dev.en-de_talks" / "wav.scp").read_text(encoding="utf-8").split()[1]
    samples, rate = soundfile.read(recipe / talk, dtype="int16")
    with tempfile.TemporaryDirectory() as directory:
        wav = Path(directory, "talk.wav")
        soundfile.write(wav, samples[: 40 * rate], rate)
        async with (
            served(paths, "--policy=hold_n", "--hold_n=6") as address,
            browser(Path(directory, "profile")) as page,
        ):
            for name, width, height, seconds in (("live", 1280, 800, 22), ("live_phone", 390, 844, 15)):
                await page.open(address, width, height)
                if width < 600:
                    await page.click("#show-delays")
                await page.choose_file("#file", wav)
                await page.wait_for(f"parseFloat(document.getElementById('figures').textContent) > {seconds}")
                await page.wait_for("document.getElementById('unstable').textContent")
                await page.screenshot(FIGURES / f"{name}.png")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]).resolve()))
