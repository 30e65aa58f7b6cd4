"""Loads a file as YAML. An error names the line but never quotes the file, which might hold a password."""

from __future__ import annotations

from pathlib import Path

import yaml

from vgpuctl.files.bounded_yaml import TooLargeError, YamlDocument, load
from vgpuctl.files.opening import MAX_BYTES, SilentError, read_bounded
from vgpuctl.model.errors import UsageError


class NotYamlError(Exception):
    """The file is not readable YAML. `line`: where; `reason`: in words for people."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


def load_file(path: Path) -> YamlDocument:
    """Load a file. NotYamlError if it is not YAML that we accept; UsageError if it cannot be opened."""
    try:
        data = read_bounded(path)
    except FileNotFoundError as error:
        raise UsageError(
            f"There is no file {path}.",
            hint="Give --profiles FILE and --schedules FOLDER, or set VGPUCTL_PROFILES and VGPUCTL_SCHEDULES.",
        ) from error
    except SilentError as error:
        hint = "Start the command that writes into it, or give a file."
        raise UsageError(f"{path} cannot be read: {error.strerror}.", hint=hint) from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    text = _text(data)
    try:
        return load(text)
    except yaml.reader.ReaderError as error:
        raise NotYamlError(text.count("\n", 0, error.position) + 1, "contains a control character") from None
    except yaml.YAMLError as error:
        raise _not_yaml(error) from None


def _text(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise NotYamlError(data.count(b"\n", 0, MAX_BYTES) + 1, f"is larger than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotYamlError(data.count(b"\n", 0, error.start) + 1, "is not UTF-8 text") from None


def _not_yaml(error: yaml.YAMLError) -> NotYamlError:
    """Turn the parser's error into ours. Its own words are safe; the text after them may quote the file."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return NotYamlError(1, "is not YAML")
    line, column = error.problem_mark.line + 1, error.problem_mark.column + 1
    if isinstance(error, TooLargeError):
        return NotYamlError(line, str(error.problem))
    # PyYAML: only these two have problems in words of their own. The excerpt below a mark is the file's.
    plain = isinstance(error, yaml.parser.ParserError | yaml.scanner.ScannerError)
    return NotYamlError(line, f"is not YAML (column {column}){f': {error.problem}' if plain else ''}")
