"""One HTML page with everything inside: data, style, program and plotting library. Nothing is fetched."""

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from importlib import resources
from typing import Any

from voronaut.version import __version__

PROGRAM = ("start.js", "charts.js", "map.js", "controls.js")
# Nothing may be loaded from anywhere, and no script runs but the two whose hashes stand here.
POLICY = ("default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
          "base-uri 'none'; form-action 'none'")  # fmt: skip


def page(content: Mapping[str, Any], written: datetime) -> str:
    """The page as text. Every name from a run is escaped by the template; data is JSON that no tag can end."""
    library, template = _libraries()
    program = "(() => {\n'use strict';\n" + "\n".join(asset(name) for name in PROGRAM) + "\n})();\n"
    drawn = {key: content[key] for key in ("tasks", "methods", "maps", "costs")}
    return str(
        template.render(
            **content,
            policy=POLICY.format(hashes=" ".join(map(_hash, (library, program)))),
            style=asset("page.css"),
            library=library,
            program=program,
            data=embedded(drawn),
            written=written.strftime("%Y-%m-%d %H:%M UTC"),
            version=__version__,
        )
    )


def embedded(content: Any) -> str:
    """JSON for the inside of a script element: ASCII, and without the characters that HTML could read as a tag."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _libraries() -> tuple[str, Any]:
    """plotly.js, and the page's template."""
    import jinja2
    from plotly.offline import get_plotlyjs

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
                                     lstrip_blocks=True)  # fmt: skip
    return get_plotlyjs().replace("\r", ""), environment.from_string(asset("page.html"))


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def asset(name: str) -> str:
    return resources.files(__package__).joinpath("web", name).read_text(encoding="utf-8")
