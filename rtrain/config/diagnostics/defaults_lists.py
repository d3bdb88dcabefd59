"""What is wrong in a defaults list: the config's own, or that of an option that the command chooses."""

from __future__ import annotations

import re

from rtrain.config.compose.aliases import GROUPS
from rtrain.config.compose.request import Request
from rtrain.config.compose.sources.store import SCHEMA_GROUP
from rtrain.config.diagnostics.diagnostic import Diagnostic
from rtrain.config.diagnostics.screen import FileLocation
from rtrain.config.diagnostics.source_map import SourceMap
from rtrain.config.files.locations import shown


class DefaultsLists:
    """Explains Hydra's errors about defaults lists."""

    def __init__(self, request: Request, places: SourceMap) -> None:
        self.request, self.places = request, places

    def unused_override(self, match: re.Match[str], _: Exception) -> Diagnostic:
        """Explain ``override`` before a group that nothing has chosen."""
        config, group = match[1], match[2]
        place = self.places.word_in(config, group.rpartition("/")[2])
        message = f"'override {group}' has no effect: no earlier defaults list has this group"
        return Diagnostic(message, place, None, None, "remove the word 'override'")

    def two_choices(self, match: re.Match[str], _: Exception) -> Diagnostic:
        """Explain a group that two files choose an option of."""
        group, primary = match[1], self.request.primary.name
        options = list(self.request.options_after(group))
        for config in options:
            again = self.places.entry(config, f"/{primary}")
            if again is not None:
                return Diagnostic(f"'{config}' lists '{primary}', which is composed already", again, note="remove it")
        place = next(filter(None, (self._entry(config, group) for config in options)), None)
        place = place or self.places.word_in(primary, group.rpartition("/")[2])
        message = f"two defaults lists choose different options for '{group}'"
        return Diagnostic(message, place, None, None, f"write: - override /{group}: ...")

    def two_types(self, config: str, cause: Exception) -> Diagnostic | None:
        """Explain a section whose ``type`` a file sets, while a defaults list has chosen another one.

        Args:
            config: The schema that does not fit.
            cause: Why.
        """
        found = re.fullmatch(rf"{SCHEMA_GROUP}/(\w+)/(\w+)", config)
        place = None if found is None else self.places.of(f"{found[1]}.type")
        if found is None or "is not a subclass of" not in str(cause) or not isinstance(place, FileLocation):
            return None
        section, chosen = found.groups()
        entry = self.places.of_choice(section)
        is_own = entry is not None and entry.file == place.file
        message = f"{section}.type is {place.value}, but the defaults list chooses '{section}: {chosen}'"
        entry_of_now = f"- {'' if is_own else 'override '}{section}: {place.value}"
        return Diagnostic(message, place, note=f"choose it in the defaults list, {entry_of_now}, and remove the type")

    def bad(self, match: re.Match[str], error: Exception) -> Diagnostic:
        """Explain an entry that is none, or at the wrong place."""
        place = self.places.in_config(match[1], "defaults")
        if "is defined before" in " ".join(str(error).split()):
            return Diagnostic("entries with 'override' must be at the end of the defaults list", place)
        return Diagnostic("an entry of a defaults list must be '- group: option' or '- name'", place)

    def _entry(self, config: str, group: str) -> FileLocation | None:
        names = [group, *(short for short, full in GROUPS.items() if full == group)]
        return next(filter(None, (self.places.entry(config, f"/{name}") for name in names)), None)

    def without_package(self, key: str) -> Diagnostic | None:
        """Explain an unknown section, made by an option file without a header in a group that only the user has."""
        option = next((one for one in self.request.own_options if one.partition("/")[0] == key), None)
        path = None if option is None else self.places.file_of(option)
        if option is None or path is None:
            return None
        text = path.read_text(encoding="utf-8")
        place = FileLocation(shown(path), text, 0, 0, len(text.partition("\n")[0]))
        message = f"the keys of '{option}' are placed in a section '{key}', which does not exist"
        return Diagnostic(message, place, note="put this line at the top of the file: # @package _global_")
