"""Fresh virtual environments, made as users make them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def fresh(folder: Path) -> Path:
    """Return the folder of programs of a new virtual environment."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder / "bin"


def alone(programs: Path) -> dict[str, str]:
    """Return environment variables under which `programs` are all there is, and no network is."""
    nobody = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    return {"HOME": os.environ["HOME"], "PATH": str(programs), **nobody}
