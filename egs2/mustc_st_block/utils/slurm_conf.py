"""Configurations of slurm.py, in the format of Kaldi's slurm.conf: options of the job program as options of sbatch."""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from job_call import die


@dataclass
class Config:
    """A configuration in Kaldi's format: the command that submits, defaults, and options by name and value."""

    command: list[str] = field(default_factory=lambda: ["sbatch"])
    defaults: dict[str, str] = field(default_factory=dict)
    options: dict[str, dict[str, str]] = field(default_factory=dict)

    def sbatch(self, given: dict[str, str]) -> list[str]:
        """The command that submits, with its options."""
        result = list(self.command)
        for name, value in (self.defaults | given).items():
            rules = self.options.get(name, {})
            if not rules:
                die(f"unknown option --{name.replace('_', '-')}; known: {', '.join(self.options)}, max_jobs_run")
            text = rules.get(value, rules.get("*"))
            if text is None:
                die(f"--{name.replace('_', '-')} {value}: not one of {', '.join(rules)}")
            result += [word.replace("$0", value) for word in shlex.split(text)]
        return result


def read_config(path: Path) -> Config:
    """Read a configuration; exits with one line that names file and line when it is wrong."""
    config = Config()
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        die(f"{path}: {error.strerror} (--config)")
    for number, line in enumerate(lines, start=1):
        kind, _, rest = line.split("#")[0].strip().partition(" ")
        setting = re.match(r"\s*(\w+)=(\S+)\s*(.*)", rest)
        if kind == "command" and rest.strip():
            config.command = shlex.split(rest)
        elif kind == "default" and setting and not setting[3]:
            config.defaults[setting[1]] = setting[2]
        elif kind == "option" and setting:
            config.options.setdefault(setting[1], {})[setting[2]] = setting[3]
        elif kind:
            die(f"{path}:{number}: expected `command ...`, `default NAME=VALUE` or `option NAME=VALUE ...`")
    return config
